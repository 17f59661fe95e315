package config

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core/suggest"
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
	isPath   bool
	choices  []string
	pattern  *regexp.Regexp
	// least and most limit a number, shortest and longest a time.
	least, most       int64
	shortest, longest time.Duration
}

// value lists the types of settings.
type value interface {
	string | bool | int | int64 | time.Duration | []string | Budgets | Agents | Packs
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
		least: math.MinInt64, most: math.MaxInt64, shortest: 1, longest: math.MaxInt64,
	}
	*t.all = append(*t.all, s)
	return s
}

// group begins a group of settings.
func (t *table) group(name, description string) *table {
	*t.groups = append(*t.groups, group{t.prefix + name + ".", description})
	return &table{t.prefix + name + ".", t.all, t.groups}
}

func (s *Setting) flag(name, placeholder string) *Setting {
	s.Flag, s.Placeholder = name, placeholder
	return s
}

// path allows ~ for the home directory.
func (s *Setting) path() *Setting {
	s.isPath = true
	return s
}

// bytes allows units, such as MiB.
func (s *Setting) bytes() *Setting {
	s.inBytes = true
	return s
}

func (s *Setting) oneOf(choices ...string) *Setting {
	s.choices = choices
	return s
}

func (s *Setting) matching(pattern string) *Setting {
	s.pattern = regexp.MustCompile(pattern)
	return s
}

func (s *Setting) atLeast(n int64) *Setting {
	s.least = n
	return s
}

func (s *Setting) atMost(n int64) *Setting {
	s.most = n
	return s
}

func (s *Setting) noShorter(d time.Duration) *Setting {
	s.shortest = d
	return s
}

func (s *Setting) noLonger(d time.Duration) *Setting {
	s.longest = d
	return s
}

// All returns all settings, in the order of the documentation.
func All() []*Setting { return *new(Config).settings().all }

// FlagOf returns the flag of a setting, "" if it has none.
func FlagOf(key string) string {
	for _, s := range All() {
		if s.Key == key {
			return s.Flag
		}
	}
	return ""
}

// read sets a setting to a value of a source. It reports whether the value is set: null is
// not. The error has the allowed values and the given one.
func (t *table) read(key string, raw any) (set bool, err error) {
	var known []string
	for _, s := range *t.all {
		switch {
		case s.Key == key && raw == nil:
			return false, nil
		case s.Key == key && s.isList():
			err := s.field.(list).read(raw)
			return err == nil, err
		case s.Key == key && s.set(raw):
			return true, nil
		case s.Key == key:
			return false, fmt.Errorf("want %s, got %s", s.wanted(), shown(raw))
		case strings.HasPrefix(s.Key, key+"."):
			if raw == nil {
				return false, nil
			}
			return false, fmt.Errorf("want settings below it, such as %s, got %s", s.Key, shown(raw))
		}
		known = append(known, s.Key)
	}
	near := suggest.Nearest(key, known)
	if near == "" {
		return false, errors.New("unknown setting: 'dragoman check' without it lists all there are")
	}
	return false, fmt.Errorf("unknown setting: did you mean %s?", near)
}

// set sets the field if the value is allowed. Variables and flags are text; a file has text or
// the type.
func (s *Setting) set(raw any) (ok bool) {
	text, isText := raw.(string)
	switch field := s.field.(type) {
	case *string:
		ok = isText && (s.choices == nil || slices.Contains(s.choices, text)) && (s.pattern == nil || s.pattern.MatchString(text))
		return ok && store(field, text)
	case *bool:
		b, ok := raw.(bool)
		if !ok {
			var err error
			b, err = strconv.ParseBool(text)
			ok = err == nil
		}
		return ok && store(field, b)
	case *int:
		n, ok := s.number(raw)
		return ok && store(field, int(n))
	case *int64:
		n, ok := s.number(raw)
		return ok && store(field, n)
	case *time.Duration:
		d, ok := ParseTime(text)
		return ok && s.shortest <= d && d <= s.longest && store(field, d)
	case *[]string:
		list, ok := texts(raw)
		return ok && store(field, list)
	case *Budgets:
		list, ok := readBudgets(raw)
		return ok && store(field, list)
	}
	return false
}

// isList reports whether the setting is a list of objects, which says itself what is wrong.
func (s *Setting) isList() bool {
	_, is := s.field.(list)
	return is
}

func store[T value](field *T, v T) bool {
	*field = v
	return true
}

// number reads a number within the limits of the setting.
func (s *Setting) number(raw any) (n int64, ok bool) {
	if text, isText := raw.(string); isText && s.inBytes {
		n, ok = readSize(text)
	}
	if !ok {
		n, ok = wholeNumber(raw)
	}
	return n, ok && s.least <= n && n <= s.most
}

// wholeNumber reads a whole number, or text that is one.
func wholeNumber(raw any) (int64, bool) {
	switch n := raw.(type) {
	case int:
		return int64(n), true
	case int64:
		return n, true
	case float64: // such as 1e6
		whole := int64(n)
		return whole, float64(whole) == n && -1<<53 < whole && whole < 1<<53
	case string:
		whole, err := strconv.ParseInt(n, 10, 64)
		return whole, err == nil
	}
	return 0, false
}

// texts reads a list, or comma-separated text.
func texts(raw any) (list []string, ok bool) {
	list = []string{}
	switch v := raw.(type) {
	case string:
		for item := range strings.SplitSeq(v, ",") {
			if item = strings.TrimSpace(item); item != "" {
				list = append(list, item)
			}
		}
		return list, true
	case []any:
		for _, item := range v {
			text, ok := item.(string)
			if !ok {
				return nil, false
			}
			list = append(list, text)
		}
		return list, true
	}
	return nil, false
}

// wanted describes the values that the setting accepts.
func (s *Setting) wanted() string {
	switch s.field.(type) {
	case *bool:
		return "true or false"
	case *[]string:
		return "a list of texts"
	case *Budgets:
		return budgetsWanted
	case *string:
		if n := len(s.choices) - 1; n > 0 {
			return strings.Join(s.choices[:n], ", ") + " or " + s.choices[n]
		}
		if s.pattern != nil {
			return "text of the form " + s.pattern.String()
		}
		return "text"
	case *time.Duration:
		text := "a time such as 30s, 5m or 7d"
		if s.shortest != 1 {
			text += " of at least " + shortTime(s.shortest)
		}
		if s.longest != math.MaxInt64 {
			text += " of at most " + shortTime(s.longest)
		}
		return text
	}
	text := "a whole number"
	if s.inBytes {
		text = "a number of bytes such as 1000000 or 64MiB"
	}
	if s.least != math.MinInt64 {
		text += fmt.Sprintf(" of at least %d", s.least)
	}
	if s.most != math.MaxInt64 {
		text += fmt.Sprintf(" and at most %d", s.most)
	}
	return text
}

// shown formats a given value for an error.
func shown(raw any) string {
	switch v := raw.(type) {
	case int, float64, bool:
		return fmt.Sprint(v)
	}
	const most = 60
	text := []rune(fmt.Sprint(raw))
	if len(text) > most {
		text = append(text[:most], '.', '.', '.')
	}
	return strconv.Quote(string(text))
}
