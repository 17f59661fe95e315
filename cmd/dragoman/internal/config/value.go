package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core/suggest"
)

// reporter takes what is wrong with a value and what to write instead. path is that of the
// value in a settings file: agents[2].env[0].
type reporter func(path, text string)

// read sets the setting of a key to a value of a source, and reports what is wrong with it. Null
// sets nothing.
func (t *table) read(key string, raw any, report reporter) {
	var known []string
	for _, s := range *t.all {
		switch {
		case s.Key == key && raw == nil:
			return
		case s.Key == key:
			s.read(key, raw, report)
			return
		case strings.HasPrefix(s.Key, key+"."):
			if raw != nil {
				report(key, fmt.Sprintf("want settings below it, such as %s, got %s", s.Key, shown(raw)))
			}
			return
		}
		known = append(known, s.Key)
	}
	if near := suggest.Nearest(key, known); near != "" {
		report(key, fmt.Sprintf("unknown setting: did you mean %s?", near))
	} else {
		report(key, "unknown setting: 'dragoman check' without it lists all there are")
	}
}

// has reports whether a key is that of a setting.
func (t *table) has(key string) bool {
	return slices.ContainsFunc(*t.all, func(s *Setting) bool { return s.Key == key })
}

// read sets the field to a value, or reports what is wrong.
func (s *Setting) read(path string, raw any, report reporter) {
	switch field := s.field.(type) {
	case list:
		field.read(path, raw, report)
	case *[]string:
		if all, ok := s.texts(path, raw, report); ok && s.cleaned(path, all, report) {
			*field = all
		}
	default:
		if !s.set(raw) {
			report(path, "want "+s.wanted()+", got "+shown(raw)+s.instead(raw))
		}
	}
}

// set sets the field if the value is allowed. Variables and flags are text; a file has text or
// the type.
func (s *Setting) set(raw any) (ok bool) {
	text, isText := raw.(string)
	switch field := s.field.(type) {
	case *string:
		return isText && s.allows(text) && store(field, text)
	case *bool:
		b, ok := truth(raw)
		return ok && store(field, b)
	case **bool:
		b, ok := truth(raw)
		return ok && store(field, &b)
	case *int:
		n, ok := s.number(raw)
		return ok && store(field, int(n))
	case *int64:
		n, ok := s.number(raw)
		return ok && store(field, n)
	case *float64:
		n, ok := shareOf(raw)
		return ok && store(field, n)
	case *time.Duration:
		d, ok := ParseTime(text)
		return ok && s.allowsTime(d) && store(field, d)
	}
	return false
}

func store[T value](field *T, v T) bool {
	*field = v
	return true
}

// allows reports whether a text is one of those that the setting accepts.
func (s *Setting) allows(text string) bool {
	return (text != "" || !s.filled) && (s.choices == nil || slices.Contains(s.choices, text)) && (s.pattern == nil || s.pattern.MatchString(text))
}

func (s *Setting) allowsTime(d time.Duration) bool { return s.shortest <= d && d <= s.longest }

// truth reads true or false.
func truth(raw any) (b, ok bool) {
	if b, ok = raw.(bool); ok {
		return b, true
	}
	text, _ := raw.(string)
	b, err := strconv.ParseBool(text)
	return b, err == nil
}

// number reads a number within the limits of the setting.
func (s *Setting) number(raw any) (n int64, ok bool) {
	if text, isText := raw.(string); isText && s.inBytes {
		n, ok = ParseSize(text)
	}
	if !ok {
		n, ok = wholeNumber(raw)
	}
	return n, ok && s.least <= n && n <= s.most
}

// shareOf reads a number from 0 to 1, or text that is one.
func shareOf(raw any) (n float64, ok bool) {
	switch v := raw.(type) {
	case int:
		n, ok = float64(v), true
	case float64:
		n, ok = v, true
	case string:
		var err error
		n, err = strconv.ParseFloat(v, 64)
		ok = err == nil
	}
	return n, ok && 0 <= n && n <= 1
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

// texts reads a list of texts, or comma-separated text where the setting allows it.
func (s *Setting) texts(path string, raw any, report reporter) (all []string, ok bool) {
	all = []string{}
	switch v := raw.(type) {
	case string:
		if s.onlyList {
			report(path, "want "+s.wanted()+", got "+shown(raw)+s.instead(raw))
			return nil, false
		}
		for item := range strings.SplitSeq(v, ",") {
			if item = strings.TrimSpace(item); item != "" {
				all = append(all, item)
			}
		}
		return all, true
	case []any:
		ok = true
		for i, item := range v {
			text, isText := item.(string)
			if !isText {
				one := Setting{field: new(string)}
				report(fmt.Sprintf("%s[%d]", path, i), "want text, got "+shown(item)+one.instead(item))
				ok = false
			}
			all = append(all, text)
		}
		return all, ok
	}
	report(path, "want "+s.wanted()+", got "+shown(raw)+s.instead(raw))
	return nil, false
}

// cleaned cleans texts in place. It reports those that are refused, and whether there are none.
func (s *Setting) cleaned(path string, all []string, report reporter) bool {
	ok := true
	for i, text := range all {
		if s.clean == nil {
			break
		}
		clean, wrong := s.clean(text)
		if wrong != "" {
			report(fmt.Sprintf("%s[%d]", path, i), "got "+shown(text)+": "+wrong)
			ok = false
		}
		all[i] = clean
	}
	return ok
}

// wanted describes the values that the setting accepts.
func (s *Setting) wanted() string {
	switch s.field.(type) {
	case *bool, **bool:
		return "true or false"
	case *[]string:
		return "a list of texts"
	case *float64:
		return "a number from 0 to 1"
	case *string:
		switch {
		case s.choices != nil:
			return oneOf(s.choices)
		case s.pattern != nil:
			return s.what
		case s.filled:
			return "text that is not empty"
		}
		return "text"
	case *time.Duration:
		text := "a time such as " + TimeForms
		if s.shortest != 1 {
			text += " of at least " + FormatTime(s.shortest)
		}
		if s.longest != math.MaxInt64 {
			text += " of at most " + FormatTime(s.longest)
		}
		return text
	}
	text := "a whole number"
	if s.inBytes {
		text = "a size such as " + SizeForms
	}
	if s.least != math.MinInt64 {
		text += " of at least " + s.amount(s.least)
	}
	if s.most != math.MaxInt64 {
		text += " and at most " + s.amount(s.most)
	}
	return text
}

// amount formats a number as the setting has it.
func (s *Setting) amount(n int64) string {
	if s.inBytes {
		return FormatSize(n)
	}
	return strconv.FormatInt(n, 10)
}

// oneOf lists choices: "a, b or c".
func oneOf(choices []string) string {
	last := len(choices) - 1
	if last == 0 {
		return choices[0]
	}
	return strings.Join(choices[:last], ", ") + " or " + choices[last]
}

// instead says how to write a refused value so that it is accepted, as the end of an error; ""
// if that cannot be told.
func (s *Setting) instead(raw any) string {
	text, isText := raw.(string)
	switch s.field.(type) {
	case *time.Duration:
		if n, isNumber := wholeNumber(raw); isNumber {
			return ": write it with its unit, such as " + s.seconds(n)
		}
	case *bool, **bool:
		switch strings.ToLower(text) {
		case "yes", "y", "on":
			return ": write true"
		case "no", "n", "off":
			return ": write false"
		}
	case *string:
		if near := suggest.Nearest(text, s.choices); isText && near != "" {
			return ": did you mean " + near + "?"
		}
		switch raw.(type) {
		case int, int64, uint64, float64, bool, time.Time:
			if s.choices == nil {
				return ": put it in quotes"
			}
		}
	case *[]string:
		if isText {
			return insteadOfWords(text)
		}
	}
	return ""
}

// seconds returns a number of seconds with its unit if the setting allows that, else an example that it allows.
func (s *Setting) seconds(n int64) string {
	if own := time.Duration(n) * time.Second; 0 < n && n < 1_000_000 && s.allowsTime(own) {
		return fmt.Sprintf("%ds", n)
	}
	example := 90 * time.Second
	if !s.allowsTime(example) {
		example = s.longest
	}
	return fmt.Sprintf("%.0fs", example.Seconds())
}

// insteadOfWords says how to write words as a list; "" if they need more than that.
func insteadOfWords(text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' })
	if len(words) == 0 || len(text) >= 60 || strings.ContainsAny(text, "'\"\\[]{}#:&*!|>%@`\n") {
		return ""
	}
	return ": write [" + strings.Join(words, ", ") + "]"
}

// shown formats a given value for an error.
func shown(raw any) string {
	const most = 60
	switch v := raw.(type) {
	case nil:
		return "nothing"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case time.Time:
		return "a date"
	case string:
		text := []rune(v)
		if len(text) > most {
			text = append(text[:most:most], '.', '.', '.')
		}
		return strconv.Quote(string(text))
	}
	return fmt.Sprint(raw)
}
