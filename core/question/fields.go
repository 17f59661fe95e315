package question

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// field is a property of the schema of an elicitation: a flat object of strings, numbers,
// booleans and choices (2026-07-28, client/elicitation, "Requested Schema").
type field struct {
	name, title, description string
	kind                     string // string, number, integer, boolean or array
	required                 bool
	// choices are the values that are allowed, and several says that any number may be chosen.
	choices []choice
	several bool
	// The limits of a text, a number or a number of choices; nil for none.
	least, most *float64
	format      string
	pattern     *regexp.Regexp
	preset      json.RawMessage // its default, for the person to read
}

// choice is a value, and the words that a person reads for it.
type choice struct{ value, label string }

// maxFields bounds a form. Nobody answers a longer one.
const maxFields = 50

// readForm reads the fields of a form in the order of the schema. The error says what cannot
// be asked.
func readForm(schema strictjson.Value) ([]field, error) {
	if !schema.Absent() && schema.Kind() != strictjson.Object {
		return nil, fmt.Errorf("requestedSchema is %.40s, want an object", schema.Raw())
	}
	var required []string
	if names := schema.Get("required"); !names.Absent() && names.Decode(&required) != nil {
		return nil, errors.New("required: want a list of names")
	}
	var form []field
	for name, property := range schema.Get("properties").Members() {
		f, err := readField(string(name), property)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		f.required = slices.Contains(required, f.name)
		if form = append(form, f); len(form) > maxFields {
			return nil, fmt.Errorf("more than %d fields", maxFields)
		}
	}
	return form, nil
}

func readField(name string, p strictjson.Value) (field, error) {
	f := field{name: name, preset: p.Get("default").Clone()}
	f.kind, _ = p.Get("type").Text()
	f.title, _ = p.Get("title").Text()
	f.description, _ = p.Get("description").Text()
	f.format, _ = p.Get("format").Text()
	from, low, high := p, "minimum", "maximum"
	switch f.kind {
	case "string":
		low, high = "minLength", "maxLength"
	case "number", "integer", "boolean":
	case "array":
		from, low, high, f.several = p.Get("items"), "minItems", "maxItems", true
	default:
		return f, fmt.Errorf("the type is %.40s, want string, number, integer, boolean or array", cmp.Or(string(p.Get("type").Raw()), "missing"))
	}
	f.least, f.most = limit(p.Get(low)), limit(p.Get(high))
	if f.kind == "string" || f.several {
		f.choices = readChoices(from)
	}
	if f.several && len(f.choices) == 0 {
		return f, errors.New("an array wants items with an enum or anyOf")
	}
	if pattern, ok := p.Get("pattern").Text(); ok {
		f.pattern, _ = regexp.Compile(pattern) // one that Go does not know is left to the server
	}
	return f, nil
}

// readChoices returns the values of an enum, with or without titles.
func readChoices(p strictjson.Value) []choice {
	var all []choice
	for _, key := range []string{"oneOf", "anyOf"} {
		for one := range p.Get(key).Items() {
			value, ok := one.Get("const").Text()
			label, _ := one.Get("title").Text()
			if ok && value != "" {
				all = append(all, choice{value, cmp.Or(label, value)})
			}
		}
	}
	var labels []string // of drafts before titles
	for l := range p.Get("enumNames").Items() {
		text, _ := l.Text()
		labels = append(labels, text)
	}
	for v := range p.Get("enum").Items() {
		value, ok := v.Text()
		if !ok || value == "" {
			continue
		}
		c := choice{value, value}
		if i := len(all); i < len(labels) && labels[i] != "" {
			c.label = labels[i]
		}
		all = append(all, c)
	}
	return all
}

// limit returns a limit; nil for none.
func limit(v strictjson.Value) *float64 {
	if n, ok := v.Number(); ok {
		return &n
	}
	return nil
}

// label names the field to a person.
func (f field) label() string { return cmp.Or(f.title, f.name) }

// hint says what a person may write into the field.
func (f field) hint() string {
	var parts []string
	switch {
	case f.several:
		parts = append(parts, "any of "+strings.Join(f.labels(), ", ")+", separated by commas")
	case len(f.choices) > 0:
		parts = append(parts, "one of "+strings.Join(f.labels(), ", "))
	case f.kind == "boolean":
		parts = append(parts, "yes or no")
	case f.kind == "integer":
		parts = append(parts, "a whole number")
	case f.kind == "number":
		parts = append(parts, "a number")
	case f.format != "":
		parts = append(parts, "a text of the format "+f.format)
	}
	if !f.required {
		parts = append(parts, "optional")
	}
	if len(f.preset) > 0 {
		parts = append(parts, "usually "+string(f.preset))
	}
	return strings.Join(parts, "; ")
}

func (f field) labels() []string {
	all := make([]string, 0, len(f.choices))
	for _, c := range f.choices {
		all = append(all, c.label)
	}
	return all
}

// parse returns what a person wrote as the JSON of the field. The error is for that person.
func (f field) parse(text string) (json.RawMessage, error) {
	text = strings.TrimSpace(text)
	switch {
	case f.several:
		var picked []string
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); part != "" {
				picked = append(picked, part)
			}
		}
		return f.pick(picked)
	case len(f.choices) > 0:
		return f.pick([]string{text})
	case f.kind == "boolean":
		switch strings.ToLower(text) {
		case "yes", "y", "true", "on":
			return json.RawMessage("true"), nil
		case "no", "n", "false", "off":
			return json.RawMessage("false"), nil
		}
		return nil, errors.New("want yes or no")
	case f.kind == "number" || f.kind == "integer":
		return f.parseNumber(text)
	}
	if n := float64(utf8.RuneCountInString(text)); f.least != nil && n < *f.least || f.most != nil && n > *f.most {
		return nil, fmt.Errorf("want %s characters, got %v", f.between(), n)
	}
	if err := f.checkFormat(text); err != nil {
		return nil, err
	}
	return strictjson.Encode(text), nil
}

// pick returns the values of labels or values that were chosen.
func (f field) pick(chosen []string) (json.RawMessage, error) {
	values := []string{}
	for _, text := range chosen {
		i := slices.IndexFunc(f.choices, func(c choice) bool { return c.label == text || c.value == text })
		if i < 0 {
			i = slices.IndexFunc(f.choices, func(c choice) bool { return strings.EqualFold(c.label, text) })
		}
		if i < 0 {
			return nil, fmt.Errorf("%.80q is none of %s", text, strings.Join(f.labels(), ", "))
		}
		if !slices.Contains(values, f.choices[i].value) {
			values = append(values, f.choices[i].value)
		}
	}
	if !f.several {
		return strictjson.Encode(values[0]), nil
	}
	if n := float64(len(values)); f.least != nil && n < *f.least || f.most != nil && n > *f.most {
		return nil, fmt.Errorf("choose %s, got %d", f.between(), len(values))
	}
	return strictjson.Encode(values), nil
}

func (f field) parseNumber(text string) (json.RawMessage, error) {
	n, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.IsInf(n, 0) || math.IsNaN(n) || strictjson.Check([]byte(text), strictjson.Limits{}) != nil:
		return nil, errors.New("want a number")
	case f.kind == "integer" && n != math.Trunc(n):
		return nil, errors.New("want a whole number")
	case f.least != nil && n < *f.least || f.most != nil && n > *f.most:
		return nil, fmt.Errorf("want %s", f.between())
	}
	return json.RawMessage(text), nil
}

// between names the limits of the field.
func (f field) between() string {
	switch {
	case f.least == nil:
		return fmt.Sprintf("at most %v", *f.most)
	case f.most == nil:
		return fmt.Sprintf("at least %v", *f.least)
	}
	return fmt.Sprintf("%v to %v", *f.least, *f.most)
}

// checkFormat checks the four formats of the specification; others are left to the server.
func (f field) checkFormat(text string) (err error) {
	switch f.format {
	case "email":
		_, err = mail.ParseAddress(text)
	case "uri":
		var u *url.URL
		if u, err = url.Parse(text); err == nil && u.Scheme == "" {
			err = errors.New("no scheme")
		}
	case "date":
		_, err = time.Parse(time.DateOnly, text)
	case "date-time":
		_, err = time.Parse(time.RFC3339, text)
	}
	if err != nil {
		return fmt.Errorf("want a text of the format %s", f.format)
	}
	if f.pattern != nil && !f.pattern.MatchString(text) {
		return fmt.Errorf("want a text that matches %s", f.pattern)
	}
	return nil
}

// parseForm reads the answer to a form of several fields: lines of "name: value", or a JSON
// object. Optional fields may be missing. The error is for the person.
func parseForm(form []field, text string) (json.RawMessage, error) {
	given := map[string]string{}
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		if err := readObject(text, given); err != nil {
			return nil, err
		}
	} else if err := readLines(form, text, given); err != nil {
		return nil, err
	}
	members := map[string]json.RawMessage{}
	for _, f := range form {
		text := given[f.name]
		delete(given, f.name)
		switch missing := strings.TrimSpace(text) == ""; {
		case missing && f.required && len(f.preset) > 0:
			members[f.name] = f.preset
			continue
		case missing && f.required:
			return nil, fmt.Errorf("%s is missing", f.label())
		case missing:
			continue
		}
		value, err := f.parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.label(), err)
		}
		members[f.name] = value
	}
	for name := range given {
		return nil, fmt.Errorf("%.80s is no field of the form", name)
	}
	return strictjson.Encode(members), nil
}

// readObject reads a JSON object whose values are texts, numbers, booleans or lists of
// texts.
func readObject(text string, given map[string]string) error {
	v, err := strictjson.Parse([]byte(strings.TrimSpace(text)), strictjson.Limits{Bytes: maxAnswer})
	if err != nil {
		return err
	}
	for name, value := range v.Members() {
		if one, ok := value.Text(); ok {
			given[string(name)] = one
			continue
		}
		if value.Kind() != strictjson.Array {
			given[string(name)] = string(value.Raw())
			continue
		}
		var all []string
		for item := range value.Items() {
			one, _ := item.Text()
			all = append(all, one)
		}
		given[string(name)] = strings.Join(all, ",")
	}
	return nil
}

// readLines reads lines of "name: value", where the name is that of a field or its title.
func readLines(form []field, text string, given map[string]string) error {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		name = strings.TrimSpace(name)
		i := slices.IndexFunc(form, func(f field) bool { return strings.EqualFold(f.name, name) || strings.EqualFold(f.title, name) })
		if !ok || i < 0 {
			return fmt.Errorf("the line %.80q names no field: write one line for each field, as in %s: value", line, form[0].name)
		}
		given[form[i].name] = strings.TrimSpace(value)
	}
	return nil
}
