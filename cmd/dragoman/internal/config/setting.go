package config

import (
	"math"
	"reflect"
	"regexp"
	"strings"
	"time"
)

// Setting is one setting, and the field of a Config that holds it.
type Setting struct {
	Key         string // dotted, as in the file
	Description string
	// Flag is the name of its flag, if it has one, and Placeholder that of the value in the
	// help text.
	Flag, Placeholder string

	field    any // a pointer
	standard any
	reset    func() // sets the field to its default
	inBytes  bool
	isAmount bool
	isPath   bool
	onlyList bool // commas do not separate texts
	// clean returns a text of a list as the field has it, or what is wrong with it; cleanPattern
	// is what the schema says of it.
	clean        func(text string) (clean, wrong string)
	cleanPattern string
	choices      []string
	others       map[string]string // what is no choice, and what to write instead
	pattern      *regexp.Regexp
	what         string // what the pattern matches
	filled       bool   // the empty text is not allowed
	// least and most limit a number, or a time in nanoseconds. A time without atLeast is more than nothing.
	least, most int64
	hasLeast    bool
}

// value lists the types of settings.
type value interface {
	string | bool | *bool | int | int64 | float64 | time.Duration | []string | Budgets | Prices | Agents | Packs | Issuers | Options | Webhooks
}

// table collects the settings of one group; all groups share all and groups.
type table struct {
	prefix string
	all    *[]*Setting
	groups *[]group
}

// group is a prefix of keys.
type group struct{ prefix, description string }

// add declares a setting.
func add[T value](t *table, name string, field *T, standard T, description string) *Setting {
	if t.all == nil {
		t.all, t.groups = &[]*Setting{}, &[]group{}
	}
	s := &Setting{
		Key: t.prefix + name, Description: description, field: field, standard: standard, reset: func() { *field = standard },
		least: math.MinInt64, most: math.MaxInt64,
	}
	if s.isTime() {
		s.least = 1
	}
	*t.all = append(*t.all, s)
	return s
}

// group begins a group of settings.
func (t *table) group(name, description string) *table {
	*t.groups = append(*t.groups, group{t.prefix + name + ".", description})
	return &table{t.prefix + name + ".", t.all, t.groups}
}

// find returns the setting of a key, nil if there is none.
func (t *table) find(key string) *Setting {
	for _, s := range *t.all {
		if s.Key == key {
			return s
		}
	}
	return nil
}

// keys returns those of all settings.
func (t *table) keys() (all []string) {
	for _, s := range *t.all {
		all = append(all, s.Key)
	}
	return all
}

func (s *Setting) flag(name, placeholder string) *Setting {
	s.Flag, s.Placeholder = name, placeholder
	return s
}

// path allows ~ for the home directory, in a list at the beginning of its first text.
func (s *Setting) path() *Setting {
	s.isPath = true
	return s
}

// bytes allows units, such as MiB.
func (s *Setting) bytes() *Setting {
	s.inBytes = true
	return s
}

// amounts allows a number up to a million, instead of one from 0 to 1.
func (s *Setting) amounts() *Setting {
	s.isAmount = true
	return s
}

// noCommas allows only a list: text with commas is one of its texts.
func (s *Setting) noCommas() *Setting {
	s.onlyList = true
	return s
}

// each checks and cleans the texts of a list, which have a pattern.
func (s *Setting) each(clean func(text string) (clean, wrong string), pattern string) *Setting {
	s.clean, s.cleanPattern = clean, pattern
	return s
}

func (s *Setting) oneOf(choices ...string) *Setting {
	s.choices = choices
	return s
}

// but says what to write instead of a text that is no choice.
func (s *Setting) but(text, instead string) *Setting {
	s.others = map[string]string{text: instead}
	return s
}

// matching allows only text of a pattern, which what describes.
func (s *Setting) matching(pattern, what string) *Setting {
	s.pattern, s.what = regexp.MustCompile(pattern), what
	return s
}

// notEmpty allows any text but the empty one.
func (s *Setting) notEmpty() *Setting {
	s.filled = true
	return s
}

// atLeast bounds a number, or a time in nanoseconds, as atMost does.
func (s *Setting) atLeast(n int64) *Setting {
	s.least, s.hasLeast = n, true
	return s
}

func (s *Setting) atMost(n int64) *Setting {
	s.most = n
	return s
}

// Choices returns the values that the setting accepts, if they are few.
func (s *Setting) Choices() []string { return s.choices }

// value returns the field.
func (s *Setting) value() reflect.Value { return reflect.ValueOf(s.field).Elem() }

func (s *Setting) isTime() bool {
	_, is := s.field.(*time.Duration)
	return is
}

// plain returns the value of the field, in a type of a settings file.
func (s *Setting) plain() any {
	field := s.value()
	switch {
	case s.isTime():
		return FormatTime(time.Duration(field.Int()))
	case field.Kind() == reflect.Slice && field.IsNil():
		return reflect.MakeSlice(field.Type(), 0, 0).Interface()
	}
	return field.Interface()
}

// All returns all settings, in the order of the documentation.
func All() []*Setting { return *new(Config).settings().all }

// FlagOf returns the flag of a setting, "" if it has none.
func FlagOf(key string) string {
	if s := new(Config).settings().find(key); s != nil {
		return s.Flag
	}
	return ""
}

// Plain returns the settings in the structure of a settings file.
func (c Config) Plain() map[string]any {
	root := map[string]any{}
	for _, s := range *c.settings().all {
		group, rest := root, s.Key
		for name, below, inside := strings.Cut(rest, "."); inside; name, below, inside = strings.Cut(rest, ".") {
			if group[name] == nil {
				group[name] = map[string]any{}
			}
			group, rest = group[name].(map[string]any), below
		}
		group[rest] = s.plain()
	}
	return root
}

// Values returns the values of all settings as text, by key.
func (c Config) Values() map[string]string {
	all := map[string]string{}
	for _, s := range *c.settings().all {
		all[s.Key] = s.text()
	}
	return all
}
