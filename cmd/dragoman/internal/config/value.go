package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core/suggest"
	"github.com/dragoman-hub/dragoman/schemas"
)

// Setting is one thing that can be set.
type Setting struct {
	Key  string
	kind reflect.Type // of its field in Config
	Rule rule
}

// rule is what schemas/config.json says of a setting or of a group of them.
type rule struct {
	Description string          `json:"description"`
	Properties  map[string]rule `json:"properties"`

	Enum    []string `json:"enum"`
	Minimum *int64   `json:"minimum"`
	Pattern string   `json:"pattern"`
	// Least and Most bound a time, for which JSON Schema has no words. Without
	// Least it has to be more than nothing.
	Least string `json:"x-least"`
	Most  string `json:"x-most"`
}

// All are all there are, in the order of Config.
var All = sync.OnceValue(func() []Setting {
	var root rule
	if err := json.Unmarshal(schemas.ConfigSource(), &root); err != nil {
		panic(fmt.Sprintf("schemas/config.json: %v", err)) // a test reads it
	}
	return settingsOf("", reflect.TypeFor[Config](), root)
})

// settingsOf lists the settings in a struct.
func settingsOf(prefix string, of reflect.Type, group rule) []Setting {
	var all []Setting
	for i := range of.NumField() {
		f := of.Field(i)
		name := f.Tag.Get("koanf")
		if name == noSetting {
			continue
		}
		if f.Type.Kind() == reflect.Struct {
			all = append(all, settingsOf(prefix+name+".", f.Type, group.Properties[name])...)
			continue
		}
		all = append(all, Setting{prefix + name, f.Type, group.Properties[name]})
	}
	return all
}

// readSetting makes the value of a setting of what a source says; nil of what it
// leaves empty.
func readSetting(key string, raw any) (any, error) {
	var known []string
	for _, s := range All() {
		switch {
		case s.Key == key && raw == nil:
			return nil, nil
		case s.Key == key:
			return s.read(raw)
		case strings.HasPrefix(s.Key, key+"."):
			if raw == nil {
				return nil, nil
			}
			return nil, fmt.Errorf("want settings below it, such as %s, got %s", s.Key, shown(raw))
		}
		known = append(known, s.Key)
	}
	near := suggest.Nearest(key, known)
	if near == "" {
		return nil, errors.New("unknown setting: 'dragoman check' without it lists all there are")
	}
	return nil, fmt.Errorf("unknown setting: did you mean %s?", near)
}

// read makes a value that the setting allows of what a source says. The error says
// what is allowed and repeats what was said.
func (s Setting) read(raw any) (any, error) {
	value, ok := s.convert(raw)
	if !ok || !s.allows(value) {
		return nil, fmt.Errorf("want %s, got %s", s.wanted(), shown(raw))
	}
	return value, nil
}

// convert makes a value of the setting's type. A variable is text, a flag text or
// of the type already, and a file may have either.
func (s Setting) convert(raw any) (value any, ok bool) {
	text, isText := raw.(string)
	switch reflect.Zero(s.kind).Interface().(type) {
	case string:
		return text, isText
	case bool:
		if b, ok := raw.(bool); ok {
			return b, true
		}
		b, err := strconv.ParseBool(text)
		return b, err == nil
	case time.Duration:
		return ParseTime(text)
	case []string:
		return texts(raw)
	case Budgets:
		return readBudgets(raw)
	}
	switch n := raw.(type) {
	case int:
		return int64(n), true
	case float64: // such as 1e6
		whole := int64(n)
		return whole, float64(whole) == n && -1<<53 < whole && whole < 1<<53
	}
	if n, ok := readSize(text); ok && s.inBytes() {
		return n, true
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// inBytes reports whether the setting is a number of bytes.
func (s Setting) inBytes() bool { return strings.HasSuffix(s.Key, "bytes") }

// texts reads a list, or text with commas between.
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
	case []string:
		return v, true
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

// allows holds a value of the right type against the rule.
func (s Setting) allows(value any) bool {
	if d, ok := value.(time.Duration); ok {
		least, most := bound(s.Rule.Least, 1), bound(s.Rule.Most, 1<<63-1)
		return least <= d && d <= most
	}
	groups := strings.Split(s.Key, ".")
	for i := len(groups) - 1; i >= 0; i-- {
		value = map[string]any{groups[i]: value}
	}
	data, err := json.Marshal(value)
	return err == nil && schemas.Config().Validate(data) == nil
}

// bound reads a bound of a time, which the schema may leave out.
func bound(text string, otherwise time.Duration) time.Duration {
	if d, err := time.ParseDuration(text); err == nil {
		return d
	}
	return otherwise
}

// wanted says what the setting allows.
func (s Setting) wanted() string {
	r := s.Rule
	switch reflect.Zero(s.kind).Interface().(type) {
	case bool:
		return "true or false"
	case []string:
		return "a list of texts"
	case Budgets:
		return budgetsWanted
	case string:
		if n := len(r.Enum) - 1; n > 0 {
			return strings.Join(r.Enum[:n], ", ") + " or " + r.Enum[n]
		}
		if r.Pattern != "" {
			return "text of the form " + r.Pattern
		}
		return "text"
	case time.Duration:
		text := "a time such as 30s, 5m or 7d"
		switch {
		case r.Least != "" && r.Most != "":
			text += " from " + r.Least + " to " + r.Most
		case r.Least != "":
			text += " of at least " + r.Least
		case r.Most != "":
			text += " of at most " + r.Most
		}
		return text
	}
	text := "a whole number"
	if s.inBytes() {
		text = "a number of bytes such as 1000000 or 64MiB"
	}
	if r.Minimum != nil {
		text += fmt.Sprintf(" of at least %d", *r.Minimum)
	}
	return text
}

// shown is what a source says, as an error repeats it.
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
