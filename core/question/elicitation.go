package question

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// The labels that a person chooses from, beside those of a form.
const (
	labelDecline = "Decline to answer"
	labelAccept  = "Accept"
	labelDone    = "Done"
	labelYes     = "Yes"
	labelNo      = "No"
)

const (
	// maxTries is how often a person is asked for an answer that fits.
	maxTries = 3
	// maxElicited bounds what is shown to people, and maxAnswer what they answer in words.
	maxElicited = 16 << 10
	maxAnswer   = 64 << 10
	// dismissed is the reason of an outcome that somebody has dismissed.
	dismissed = "dismissed"
)

// The actions of an answer, as both protocols name them.
const (
	Accept  = "accept"
	Decline = "decline"
	Cancel  = "cancel"
)

// Answer is what a user has said. Only one that accepts a form has content.
type Answer struct {
	Action  string          `json:"action"`
	Content json.RawMessage `json:"content,omitempty"`
}

// ReadAnswer reads the answer of a user: its action, which is one of the three, and its
// content, if any. The error says what to change.
func ReadAnswer(v strictjson.Value) (action string, content strictjson.Value, err error) {
	var r struct {
		Action  string           `json:"action"`
		Content strictjson.Value `json:"content"`
	}
	if err := v.Decode(&r); err != nil {
		return "", r.Content, err
	}
	switch r.Action {
	case Accept, Decline, Cancel:
		return r.Action, r.Content, nil
	}
	return "", r.Content, fmt.Errorf("action: want accept, decline or cancel, got %.20q", r.Action)
}

// Elicitation is what an MCP server or the agent of an editor elicits from a user: to fill in a form, or to open a
// page. People are asked for it by a question, with the form for who can show one and in words for everybody else,
// until an answer fits.
type Elicitation struct {
	question Question
	name     string  // what the asker calls it; "" for nothing
	fields   []field // of a form
	page     bool
}

// Elicit reads the parameters of elicitation/create (MCP 2026-07-28, client/elicitation; protocol of editors, elicitation).
// It returns a Fault for what cannot be asked: too_large above 16 KiB, else invalid, with the name of the parameter.
func Elicit(params strictjson.Value, header, name string) (*Elicitation, error) {
	if len(params.Raw()) > maxElicited {
		return nil, core.NewFault(core.CodeTooLarge, "the question has %d bytes, the limit is %d", len(params.Raw()), maxElicited)
	}
	message, _ := params.Get("message").Text()
	e := &Elicitation{question: Question{Header: header, Text: cmp.Or(message, "it does not say what")}, name: name}
	switch mode, _ := params.Get("mode").Text(); mode {
	case "url":
		e.page = true
		return e, e.readPage(params)
	case "", "form":
		return e, e.readForm(params.Get("requestedSchema"))
	default:
		return nil, core.NewFault(core.CodeInvalid, "mode: %.40q is unknown, want form or url", mode)
	}
}

// readPage asks to open an address. What happens there is between that person and who asks.
func (e *Elicitation) readPage(params strictjson.Value) error {
	address, _ := params.Get("url").Text()
	if u, err := url.Parse(address); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return core.NewFault(core.CodeInvalid, "url: %.80q is no http or https address", address)
	}
	e.question.Text += "\nOpen this address if you trust it: " + address
	e.question.Options = options(labelDone)
	return nil
}

// readForm asks for a form: for its only field as that is, for several in lines.
func (e *Elicitation) readForm(schema strictjson.Value) error {
	fields, err := readForm(schema)
	if err != nil {
		return core.NewFault(core.CodeInvalid, "requestedSchema: %s", err)
	}
	e.fields = fields
	q := &e.question
	if schema.Exists() {
		q.Form = &Form{Name: e.name, Message: q.Text, Schema: schema.Clone(), Decline: labelDecline}
	}
	switch len(fields) {
	case 0:
		q.Options = options(labelAccept)
	case 1:
		fields[0].askIn(q)
	default:
		lines := []string{q.Text, "", "Answer with one line for each field:"}
		for _, f := range fields {
			lines = append(lines, f.name+": "+joined(f.title, f.description, "("+f.hint()+")"))
		}
		q.Text, q.Options = strings.Join(lines, "\n"), options()
	}
	return nil
}

// askIn makes a question ask for the field alone.
func (f field) askIn(q *Question) {
	if more := joined(f.title, f.description); more != "" {
		q.Text += "\n" + more
	}
	switch {
	case len(f.choices) > 0 && len(f.choices) < maxOptions:
		q.Options, q.Several = options(f.labels()...), f.several
	case f.kind == "boolean":
		q.Options = options(labelYes, labelNo)
	default:
		q.Options = options()
		if hint := f.hint(); hint != "" {
			q.Text += "\n(" + hint + ")"
		}
	}
}

// options are the labels and the one that declines.
func options(labels ...string) []core.Option {
	all := make([]core.Option, 0, len(labels)+1)
	for _, l := range labels {
		all = append(all, core.Option{Label: l})
	}
	return append(all, core.Option{Label: labelDecline})
}

// Ask puts the elicitation to people by ask, again where an answer does not fit, and at most three times. It returns the
// error of ask, and an unreachable Fault where nobody has answered; then it is up to the caller what to say.
func (e *Elicitation) Ask(ctx context.Context, ask func(context.Context, Question) (Outcome, error)) (Answer, error) {
	misfit := ""
	for range maxTries {
		q := e.question
		q.Text += misfit
		if f := q.Form; f != nil {
			form := *f
			form.Message += misfit
			q.Form = &form
		}
		o, err := ask(ctx, q)
		switch {
		case err != nil:
			return Answer{}, err
		case !o.Answered && o.Reason == dismissed:
			return Answer{Action: Cancel}, nil
		case !o.Answered:
			return Answer{}, core.NewFault(core.CodeUnreachable, "nobody has answered: %s", o.Reason)
		case slices.Contains(o.Selected, labelDecline):
			return Answer{Action: Decline}, nil
		case e.page:
			return Answer{Action: Accept}, nil
		}
		content, err := e.content(o)
		if err == nil {
			return Answer{Action: Accept, Content: content}, nil
		}
		misfit = fmt.Sprintf("\n\nThe last answer did not fit: %s", err)
	}
	return Answer{Action: Decline}, nil
}

// Content returns the content of an answer to a form that was given in words, as [Elicitation.Ask] reads it: the value of
// its only field, or a line of "field: value" for each. It returns o.Content if there is one. The error is for the person.
func Content(f Form, o Outcome) (json.RawMessage, error) {
	schema, err := strictjson.Parse(f.Schema, strictjson.Limits{Bytes: len(f.Schema)})
	if err != nil {
		return nil, err
	}
	fields, err := readForm(schema)
	if err != nil {
		return nil, err
	}
	if len(fields) > 1 && o.Text == "" {
		o.Text, o.Selected = strings.Join(o.Selected, "\n"), nil
	}
	return (&Elicitation{fields: fields}).content(o)
}

// content returns an answer as the object that the form asks for. The error is for the person.
func (e *Elicitation) content(o Outcome) (json.RawMessage, error) {
	switch {
	case len(o.Content) > 0:
		return o.Content, nil // the hub has checked it
	case len(e.fields) == 0:
		return json.RawMessage("{}"), nil
	case len(e.fields) > 1:
		return parseForm(e.fields, o.Text)
	}
	f := e.fields[0]
	var value json.RawMessage
	var err error
	if len(o.Selected) > 0 && len(f.choices) > 0 {
		value, err = f.pick(o.Selected)
	} else {
		value, err = f.parse(cmp.Or(o.Text, strings.Join(o.Selected, ",")))
	}
	if err != nil {
		return nil, err
	}
	return strictjson.Encode(map[string]json.RawMessage{f.name: value}), nil
}

func joined(parts ...string) string {
	var all []string
	for _, p := range parts {
		if p != "" && p != "()" {
			all = append(all, p)
		}
	}
	return strings.Join(all, ". ")
}
