package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// maxFields bounds the members of a form, as each is a question of its own.
const maxFields = 16

// field is a member of a form (elicitation, "ElicitationPropertySchema").
type field struct {
	name     string
	required bool
	schema   fieldSchema
	labels   []string // of the choices, if there are any
	values   []string // what they stand for
}

// fieldSchema is the part of a member's schema that says how to ask for it.
type fieldSchema struct {
	Type        string       `json:"type"`
	Title       string       `json:"title"`
	Description string       `json:"description"`
	Enum        []string     `json:"enum"`
	OneOf       []enumOption `json:"oneOf"`
	Items       struct {
		Enum  []string     `json:"enum"`
		AnyOf []enumOption `json:"anyOf"`
	} `json:"items"`
}

type enumOption struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// askForm asks for the members of a form, one after the other.
func askForm(ctx context.Context, t agent.Turn, message string, fields []field) wire.ElicitationResponse {
	if len(fields) == 0 {
		return confirm(ctx, t, message)
	}
	content := []byte("{")
	for _, f := range fields {
		value, action := f.ask(ctx, t, message)
		switch {
		case action == wire.ElicitDecline && !f.required:
			continue // left out
		case action != wire.ElicitAccept:
			return wire.ElicitationResponse{Action: action}
		}
		if len(content) > 1 {
			content = append(content, ',')
		}
		content = append(append(strictjson.AppendString(content, f.name), ':'), value...)
	}
	return wire.ElicitationResponse{Action: wire.ElicitAccept, Content: append(content, '}')}
}

// confirm asks for a form without members: whether to go on.
func confirm(ctx context.Context, t agent.Turn, message string) wire.ElicitationResponse {
	f := field{schema: fieldSchema{Type: "boolean"}}
	f.choices()
	value, action := f.ask(ctx, t, message)
	switch {
	case action != wire.ElicitAccept:
		return wire.ElicitationResponse{Action: action}
	case string(value) == "true":
		return wire.ElicitationResponse{Action: wire.ElicitAccept, Content: json.RawMessage("{}")}
	}
	return wire.ElicitationResponse{Action: wire.ElicitDecline}
}

// readForm returns the members of a form in their order. The error begins with the member of the
// schema that cannot be asked, and says what can.
func readForm(schema json.RawMessage) (fields []field, err error) {
	whole := strictjson.ParseValid(schema)
	var required []string
	if r := whole.Get("required"); !r.Absent() && r.Decode(&required) != nil {
		return nil, errors.New("required: want a list of names")
	}
	for name, s := range whole.Get("properties").Members() {
		f := field{name: string(name), required: slices.Contains(required, string(name))}
		if s.Decode(&f.schema) != nil || !f.choices() {
			return nil, fmt.Errorf("properties.%.80s: want a string, number, integer or boolean, or an array whose items have enum or anyOf", name)
		}
		if len(fields) == maxFields {
			return nil, fmt.Errorf("properties: want at most %d: ask for the rest in another form", maxFields)
		}
		fields = append(fields, f)
	}
	return fields, nil
}

// choices finds the choices of the member. It fails for a type that is not known.
func (f *field) choices() bool {
	add := func(value, label string) {
		if label == "" || slices.Contains(f.labels, label) {
			label = value
		}
		f.labels, f.values = append(f.labels, label), append(f.values, value)
	}
	values, titled := f.schema.Enum, f.schema.OneOf
	switch f.schema.Type {
	case "boolean":
		add("true", "Yes")
		add("false", "No")
	case "array":
		if values, titled = f.schema.Items.Enum, f.schema.Items.AnyOf; len(values)+len(titled) == 0 {
			return false
		}
	case "string", "number", "integer":
	default:
		return false
	}
	for _, v := range values {
		add(v, v)
	}
	for _, o := range titled {
		add(o.Const, o.Title)
	}
	return true
}

// ask asks for the member and returns its value, or the action that the answer means. A number
// that is none is asked for once more.
func (f *field) ask(ctx context.Context, t agent.Turn, message string) (value json.RawMessage, action string) {
	q := question.Question{Text: f.text(message), Several: f.schema.Type == "array"}
	for _, label := range f.labels {
		q.Options = append(q.Options, question.Option{Label: label})
	}
	for range 2 {
		outcome, err := t.Ask(ctx, q)
		switch {
		case err != nil:
			return nil, wire.ElicitCancel
		case !outcome.Answered && outcome.Reason == reasonDismissed:
			return nil, wire.ElicitDecline
		case !outcome.Answered:
			return nil, wire.ElicitCancel
		}
		if value, ok := f.value(outcome); ok {
			return value, wire.ElicitAccept
		}
		q.Text = f.text(message) + "\n\n" + strconv.Quote(outcome.String()) + " does not fit: want " + f.want() + "."
	}
	return nil, wire.ElicitDecline
}

// text returns the question for the member.
func (f *field) text(message string) string {
	parts := []string{message}
	for _, part := range []string{f.schema.Title, f.schema.Description} {
		if part != "" && part != message {
			parts = append(parts, part)
		}
	}
	if f.schema.Title == "" && f.schema.Description == "" && f.name != "" {
		parts = append(parts, f.name)
	}
	return strings.Join(parts, "\n\n")
}

func (f *field) want() string {
	switch {
	case len(f.labels) > 0:
		return "one of " + strings.Join(f.labels, ", ")
	case f.schema.Type == "integer":
		return "a whole number"
	}
	return "a number"
}

// value returns an answer as the value of the member.
func (f *field) value(o question.Outcome) (json.RawMessage, bool) {
	if len(f.labels) == 0 {
		return f.typed(o.Text)
	}
	selected := o.Selected
	if len(selected) == 0 {
		selected = []string{strings.TrimSpace(o.Text)} // the text is one of the choices
	}
	values := make([]string, 0, len(selected))
	for _, label := range selected {
		i := slices.Index(f.labels, label)
		if i < 0 {
			i = slices.Index(f.values, label)
		}
		if i < 0 {
			return nil, false
		}
		values = append(values, f.values[i])
	}
	switch f.schema.Type {
	case "array":
		return strictjson.Encode(values), true
	case "string":
		return strictjson.Encode(values[0]), true
	}
	return f.typed(values[0])
}

// typed returns a text as a value of the member's type.
func (f *field) typed(text string) (json.RawMessage, bool) {
	trimmed := strings.TrimSpace(text)
	switch f.schema.Type {
	case "boolean":
		return json.RawMessage(trimmed), trimmed == "true" || trimmed == "false"
	case "integer":
		n, err := strconv.ParseInt(trimmed, 10, 64)
		return strconv.AppendInt(nil, n, 10), err == nil
	case "number":
		n, err := strconv.ParseFloat(trimmed, 64)
		out, wrong := json.Marshal(n)
		return out, err == nil && wrong == nil
	}
	return strictjson.Encode(text), true
}
