package config

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/suggest"
)

// reporter takes what is wrong with a value and what to write instead. path is that of the
// value in a settings file: agents[2].env[0].
type reporter func(path, text string)

// read sets the setting of a key to a value of a source, and reports what is wrong with it. Null
// sets nothing.
func (t *table) read(key string, raw any, report reporter) {
	if s := t.find(key); s != nil {
		if raw != nil {
			s.read(key, raw, report)
		}
		return
	}
	known := t.keys()
	if at := slices.IndexFunc(known, func(one string) bool { return strings.HasPrefix(one, key+".") }); at >= 0 {
		if raw != nil {
			report(key, fmt.Sprintf("want settings below it, such as %s, got %s", known[at], shown(raw)))
		}
		return
	}
	if near := suggest.Nearest(key, known); near != "" {
		report(key, fmt.Sprintf("unknown setting: did you mean %s?", near))
	} else {
		report(key, "unknown setting: 'dragoman check --all' without it lists all there are")
	}
}

// read sets the field to a value, or reports what is wrong.
func (s *Setting) read(path string, raw any, report reporter) {
	switch field := s.field.(type) {
	case list:
		field.read(path, raw, report)
	case *[]string:
		s.readTexts(path, raw, report)
	default:
		if !s.set(raw) {
			s.refuse(path, raw, report)
		}
	}
}

// refuse reports a value that the setting does not accept.
func (s *Setting) refuse(path string, raw any, report reporter) {
	report(path, "want "+s.wanted()+", got "+shown(raw)+s.instead(raw))
}

// set sets the field if the value is allowed. Variables and flags are text; a file has text or
// the type.
func (s *Setting) set(raw any) (ok bool) {
	field := s.value()
	switch text, isText := raw.(string); field.Kind() {
	case reflect.String:
		if ok = isText && s.allows(text); isText { // what is refused is checked with the others
			field.SetString(text)
		}
	case reflect.Bool, reflect.Pointer:
		var b bool
		if b, ok = truth(raw); ok && field.Kind() == reflect.Bool {
			field.SetBool(b)
		} else if ok {
			field.Set(reflect.ValueOf(&b))
		}
	case reflect.Float64:
		if n := number(raw); n >= 0 && n <= s.mostNumber() {
			field.SetFloat(n)
			return true
		}
	default:
		var n int64
		if n, ok = s.whole(raw); ok && s.least <= n && n <= s.most {
			field.SetInt(n)
			return true
		}
		return false
	}
	return ok
}

// mostNumber is the largest number that is no whole one.
func (s *Setting) mostNumber() float64 {
	if s.isAmount {
		return core.MaxAmount
	}
	return 1
}

// allows reports whether a text is one of those that the setting accepts.
func (s *Setting) allows(text string) bool {
	return (text != "" || !s.filled) && (s.choices == nil || slices.Contains(s.choices, text)) && (s.pattern == nil || s.pattern.MatchString(text))
}

// truth reads true or false.
func truth(raw any) (b, ok bool) {
	if b, ok = raw.(bool); ok {
		return b, true
	}
	text, _ := raw.(string)
	b, err := strconv.ParseBool(text)
	return b, err == nil
}

// whole reads a whole number, a number of bytes or a time, as the setting has it.
func (s *Setting) whole(raw any) (n int64, ok bool) {
	text, isText := raw.(string)
	if s.isTime() {
		d, ok := ParseTime(text)
		return int64(d), ok
	}
	if isText && s.inBytes {
		if n, ok = ParseSize(text); ok {
			return n, true
		}
	}
	return wholeNumber(raw)
}

// number reads a number, or text that is one; what is none is NaN.
func number(raw any) float64 {
	if text, isText := raw.(string); isText {
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			return n
		}
	}
	switch n := raw.(type) {
	case int:
		return float64(n)
	case float64:
		return n
	}
	return math.NaN()
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

// readTexts sets the field to a list of texts, or to comma-separated text where the setting allows it. It reports each
// text that is refused.
func (s *Setting) readTexts(path string, raw any, report reporter) {
	items, ok := raw.([]any)
	if text, isText := raw.(string); isText && !s.onlyList {
		for item := range strings.SplitSeq(text, ",") {
			if item = strings.TrimSpace(item); item != "" {
				items = append(items, item)
			}
		}
		ok = true
	}
	if !ok {
		s.refuse(path, raw, report)
		return
	}
	all := []string{}
	for i, item := range items {
		at := fmt.Sprintf("%s[%d]", path, i)
		text, isText := item.(string)
		if !isText {
			(&Setting{field: new(string)}).refuse(at, item, report)
			ok = false
			continue
		}
		if s.clean != nil {
			clean, wrong := s.clean(text)
			if wrong != "" {
				report(at, "got "+shown(text)+": "+wrong)
				ok = false
			}
			text = clean
		}
		all = append(all, text)
	}
	if ok {
		s.value().Set(reflect.ValueOf(all))
	}
}

// wanted describes the values that the setting accepts.
func (s *Setting) wanted() string {
	switch s.field.(type) {
	case *bool, **bool:
		return "true or false"
	case *[]string:
		return "a list of texts"
	case *float64:
		if s.isAmount {
			return "an amount such as 2.50, at most a million"
		}
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
	}
	text, and := "a whole number", ""
	switch {
	case s.isTime():
		text = "a time such as " + TimeForms
	case s.inBytes:
		text = "a size such as " + SizeForms
	}
	if s.hasLeast {
		text, and = text+" of at least "+s.amount(s.least), " and at most "
	}
	if s.most != math.MaxInt64 {
		text += cmp.Or(and, " of at most ") + s.amount(s.most)
	}
	return text
}

// amount formats a number as the setting has it.
func (s *Setting) amount(n int64) string {
	switch {
	case s.isTime():
		return FormatTime(time.Duration(n))
	case s.inBytes:
		return FormatSize(n)
	}
	return strconv.FormatInt(n, 10)
}

// text returns the value of the field as somebody writes it.
func (s *Setting) text() string {
	if field := s.value(); field.CanInt() {
		return s.amount(field.Int())
	}
	return fmt.Sprint(s.plain())
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
		if other := s.others[text]; other != "" {
			return ": " + other
		}
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
	if own := n * int64(time.Second); 0 < n && n < 1_000_000 && s.least <= own && own <= s.most {
		return fmt.Sprintf("%ds", n)
	}
	return fmt.Sprintf("%.0fs", time.Duration(min(int64(90*time.Second), s.most)).Seconds())
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
		return strconv.Quote(cut(v, 60))
	}
	return fmt.Sprint(raw)
}

// cut returns the beginning of a text, with dots if it is longer.
func cut(text string, most int) string {
	if letters := []rune(text); len(letters) > most {
		return string(letters[:most]) + "..."
	}
	return text
}
