package pack

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/schemas"
)

// The labels that a person chooses from, beside those of the server.
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
	// maxOptions is how many options a question may have.
	maxOptions = 100
	// maxQuestion bounds what a server may show to people.
	maxQuestion = 16 << 10
	// declineBefore is how long before the end of a call its questions end, so that the server
	// learns of it.
	declineBefore = time.Second
)

// ask puts a question to people and waits for what they say.
type ask func(ctx context.Context, q question.Question) (question.Outcome, error)

// elicit asks the people of a call what the server wants to know. An error means that the
// server's question is wrong; where nobody answers, it is declined. asker names the server, and key is
// the server's name of the question, or "".
func elicit(ctx context.Context, asker, key string, params strictjson.Value, ask ask) (wire.ElicitResult, error) {
	message, _ := params.Get("message").Text()
	if len(params.Raw()) > maxQuestion {
		return wire.ElicitResult{}, core.NewFault(core.CodeTooLarge, "the question has %d bytes, the limit is %d", len(params.Raw()), maxQuestion)
	}
	q := question.Question{Header: asker, Text: asker + " asks: " + cmp.Or(message, "it says nothing more")}
	switch mode, _ := params.Get("mode").Text(); mode {
	case wire.ModeURL:
		return elicitURL(ctx, q, params, ask)
	case "", wire.ModeForm:
	default:
		return wire.ElicitResult{}, core.NewFault(core.CodeInvalid, "mode: %.40q is unknown, want form or url", mode)
	}
	schema := params.Get("requestedSchema")
	form, err := readForm(schema)
	if err != nil {
		return wire.ElicitResult{}, core.NewFault(core.CodeInvalid, "requestedSchema: %s", err)
	}
	if schema.Exists() {
		q.Form = &question.Form{Name: key, Message: q.Text, Schema: schema.Clone(), Decline: labelDecline}
	}
	switch len(form) {
	case 0:
		q.Options = options(labelAccept)
		return askUntil(ctx, q, ask, func(question.Outcome) (json.RawMessage, error) { return json.RawMessage("{}"), nil })
	case 1:
		return elicitField(ctx, q, form[0], ask)
	}
	lines := []string{q.Text, "", "Answer with one line for each field:"}
	for _, f := range form {
		lines = append(lines, f.name+": "+joined(f.title, f.description, "("+f.hint()+")"))
	}
	q.Text = strings.Join(lines, "\n")
	q.Options = options()
	return askUntil(ctx, q, ask, func(o question.Outcome) (json.RawMessage, error) { return parseForm(form, o.Text) })
}

// elicitField asks for the only field of a form.
func elicitField(ctx context.Context, q question.Question, f field, ask ask) (wire.ElicitResult, error) {
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
	return askUntil(ctx, q, ask, func(o question.Outcome) (json.RawMessage, error) {
		var value json.RawMessage
		var err error
		switch {
		case len(o.Selected) > 0 && len(f.choices) > 0:
			value, err = f.pick(o.Selected)
		default:
			value, err = f.parse(cmp.Or(o.Text, strings.Join(o.Selected, ",")))
		}
		if err != nil {
			return nil, err
		}
		return strictjson.Encode(map[string]json.RawMessage{f.name: value}), nil
	})
}

// elicitURL asks a person to open an address. What happens there is between that person
// and the server.
func elicitURL(ctx context.Context, q question.Question, params strictjson.Value, ask ask) (wire.ElicitResult, error) {
	address, _ := params.Get("url").Text()
	if u, err := url.Parse(address); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return wire.ElicitResult{}, core.NewFault(core.CodeInvalid, "url: %.80q is no http or https address", address)
	}
	q.Text += "\nOpen this address if you trust it: " + address
	q.Options = options(labelDone)
	return askUntil(ctx, q, ask, func(question.Outcome) (json.RawMessage, error) { return nil, nil })
}

// options are the labels and the one that declines.
func options(labels ...string) []question.Option {
	all := make([]question.Option, 0, len(labels)+1)
	for _, l := range labels {
		all = append(all, question.Option{Label: l})
	}
	return append(all, question.Option{Label: labelDecline})
}

// askUntil asks until an answer fits, at most maxTries times.
func askUntil(ctx context.Context, q question.Question, ask ask, read func(question.Outcome) (json.RawMessage, error)) (wire.ElicitResult, error) {
	text, form := q.Text, q.Form
	for range maxTries {
		o, err := ask(ctx, q)
		switch {
		case ctx.Err() != nil:
			return wire.ElicitResult{Action: wire.ActionCancel}, nil
		case err != nil:
			return wire.ElicitResult{Action: wire.ActionDecline}, nil // there is nobody to ask
		case !o.Answered && o.Reason == "dismissed":
			return wire.ElicitResult{Action: wire.ActionCancel}, nil
		case !o.Answered, slices.Contains(o.Selected, labelDecline):
			return wire.ElicitResult{Action: wire.ActionDecline}, nil
		}
		content, err := o.Content, error(nil)
		if content == nil {
			content, err = read(o)
		} else if form != nil {
			err = fits(form.Schema, content)
		}
		if err == nil {
			return wire.ElicitResult{Action: wire.ActionAccept, Content: content}, nil
		}
		misfit := fmt.Sprintf("\n\nThe last answer did not fit: %s", err)
		if q.Text = text + misfit; form != nil {
			again := *form
			again.Message += misfit
			q.Form = &again
		}
	}
	return wire.ElicitResult{Action: wire.ActionDecline}, nil
}

// fits checks an answer against the schema of a form. With a schema that cannot be compiled the server has to check.
func fits(schema, content json.RawMessage) error {
	check, err := schemas.Compile(schema)
	if err != nil {
		return nil
	}
	return check(content)
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
