package question

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

const (
	// maxOptions is how many options a question may have.
	maxOptions = 100
	// maxFormBytes bounds the schema of a form and what answers it: the one is compiled to check the other.
	maxFormBytes = 64 << 10
)

// Question is what an agent asks people.
type Question struct {
	// ID names it: letters, digits and dashes.
	ID string `json:"id"`
	// Agent is the agent that asks, or that called the tool which asks; "" for a tool that no agent called. The
	// text names the tool.
	Agent core.AgentID `json:"agent"`
	// Tasks are those that the agent works on, if any. The question ends with the last one.
	Tasks []core.TaskID `json:"tasks"`
	// Text is the question, Header a word or two about its subject.
	Text   string `json:"question"`
	Header string `json:"header,omitempty"`
	// Options are the choices: one may be selected, or with Several any number. Without
	// options the answer is text.
	Options []core.Option `json:"options,omitempty"`
	Several bool          `json:"multi_select,omitempty"`
	// Form is the question for who can show a form; nil for none. Text and Options ask the same.
	Form *Form `json:"form,omitempty"`
	// Since is when it was asked, Until when it times out.
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
}

// Size estimates the memory of the question in bytes.
func (q Question) Size() int {
	n := 256 + len(q.Text) + len(q.Header)
	for _, o := range q.Options {
		n += 32 + len(o.Label) + len(o.Description)
	}
	if f := q.Form; f != nil {
		n += 96 + len(f.Name) + len(f.Message) + len(f.Schema) + len(f.Decline)
	}
	return n
}

// Event returns the question as an event of its tasks.
func (q Question) Event() core.QuestionAsked {
	return core.QuestionAsked{ID: q.ID, Text: q.Text, Header: q.Header, Options: q.Options, Several: q.Several, Until: q.Until}
}

// AskedBy puts the name of the tool that asks in front of what is asked (promise P7): the question is known as one
// of the agent that called it, or of nobody.
func (q *Question) AskedBy(tool string) {
	q.Text = tool + " asks: " + q.Text
	if q.Form != nil {
		form := *q.Form
		form.Message = tool + " asks: " + form.Message
		q.Form = &form
	}
}

// Form is a question that is answered with an object.
type Form struct {
	// Name is the name that its asker has for it; "" for none.
	Name string `json:"name,omitempty"`
	// Message is what is asked, Schema the JSON Schema of the answer: an object whose members are texts, numbers,
	// booleans, choices, or lists of choices.
	Message string          `json:"message"`
	Schema  json.RawMessage `json:"schema"`
	// Decline is the option that declines to answer; "" for none.
	Decline string `json:"decline,omitempty"`
}

// Outcome is how a question ended, as its asker gets it.
type Outcome struct {
	Answered bool     `json:"answered"`
	Selected []string `json:"selected,omitempty"`
	Text     string   `json:"custom_text,omitempty"`
	// Content is the answer to the form of the question, in place of the two above.
	Content json.RawMessage `json:"content,omitempty"`
	// Reason says why there is no answer.
	Reason string `json:"reason,omitempty"`
	// By is who answered or dismissed it.
	By core.Principal `json:"-"`
}

// String returns the outcome in words: see [core.QuestionAnswered.Words].
func (o Outcome) String() string { return o.Event("").Words() }

// Event returns the outcome of a question with the id as an event of its tasks.
func (o Outcome) Event(id string) core.QuestionAnswered {
	return core.QuestionAnswered{ID: id, Answered: o.Answered, Selected: o.Selected, Text: o.Text, Content: o.Content, Reason: o.Reason, By: o.By.ID}
}

// Check returns an invalid Fault for a question that nobody could answer, and a too_large one for a form whose
// schema has more than 64 KiB. Its message starts with the name of the JSON member.
func (q Question) Check() error {
	switch {
	case q.Text == "":
		return core.NewFault(core.CodeInvalid, "question: missing; say what is asked")
	case q.Options != nil && len(q.Options) == 0:
		return core.NewFault(core.CodeInvalid, "options: want at least one, or leave them out and the answer is a text")
	case len(q.Options) > maxOptions:
		return core.NewFault(core.CodeInvalid, "options: want at most %d", maxOptions)
	case slices.ContainsFunc(q.Options, func(o core.Option) bool { return o.Label == "" }):
		return core.NewFault(core.CodeInvalid, "options: each wants a label")
	case q.Several && len(q.Options) == 0:
		return core.NewFault(core.CodeInvalid, "multi_select: there are no options to select")
	case q.Form != nil:
		return q.Form.check(q.labels())
	}
	return nil
}

// check returns what is wrong with the form of a question whose options have these labels.
func (f *Form) check(labels []string) error {
	switch {
	case f.Message == "":
		return core.NewFault(core.CodeInvalid, "form.message: missing; say what is asked")
	case !isObject(f.Schema):
		return core.NewFault(core.CodeInvalid, "form.schema: want the JSON Schema of the answer, an object")
	case len(f.Schema) > maxFormBytes:
		return core.NewFault(core.CodeTooLarge, "form.schema: it has %d bytes, the limit is %d: ask for less at once", len(f.Schema), maxFormBytes)
	case f.Decline != "" && !slices.Contains(labels, f.Decline):
		return core.NewFault(core.CodeInvalid, "form.decline: %.100q is none of the options", f.Decline)
	}
	return nil
}

// outcome returns how an answer ends the question, or an invalid Fault for an answer that
// does not fit, and a too_large one for a content of more than 64 KiB.
func (q Question) outcome(a core.Reply, by core.Principal) (Outcome, error) {
	switch {
	case a.Dismissed:
		return Outcome{Reason: core.QuestionDismissed, By: by}, nil
	case len(a.Content) > 0 && string(a.Content) != "null":
		return q.filledIn(a, by)
	case len(a.Selected) == 0 && a.Text == "" && q.Form != nil:
		return Outcome{}, core.NewFault(core.CodeInvalid, "at least one selection, custom_text or content is required")
	case len(a.Selected) == 0 && a.Text == "":
		return Outcome{}, core.NewFault(core.CodeInvalid, "at least one selection or custom_text is required")
	case len(a.Selected) > 1 && !q.Several:
		return Outcome{}, core.NewFault(core.CodeInvalid, "one selection is allowed")
	case len(a.Selected) > 0 && len(q.Options) == 0:
		return Outcome{}, core.NewFault(core.CodeInvalid, "the question has no options: answer in words of your own")
	}
	labels := q.labels()
	for _, label := range a.Selected {
		if !slices.Contains(labels, label) {
			return Outcome{}, core.NewFault(core.CodeInvalid, "%q is none of the options: %.500s", label, strings.Join(labels, ", "))
		}
	}
	return Outcome{Answered: true, Selected: a.Selected, Text: a.Text, By: by}, nil
}

// filledIn is outcome for an answer with a content, which is that of a form.
func (q Question) filledIn(a core.Reply, by core.Principal) (Outcome, error) {
	switch {
	case len(a.Selected) > 0 || a.Text != "":
		return Outcome{}, core.NewFault(core.CodeInvalid, "content: it is a whole answer: send either that or a selection and text")
	case q.Form == nil:
		return Outcome{}, core.NewFault(core.CodeInvalid, "content: the question has no form: answer with a selection or text")
	case len(a.Content) > maxFormBytes:
		return Outcome{}, core.NewFault(core.CodeTooLarge, "content: it has %d bytes, the limit is %d", len(a.Content), maxFormBytes)
	case !isObject(a.Content):
		return Outcome{}, core.NewFault(core.CodeInvalid, "content: want an object with the fields of the form")
	}
	return Outcome{Answered: true, Content: a.Content, By: by}, nil
}

// labels returns the labels of the options.
func (q Question) labels() []string {
	all := make([]string, 0, len(q.Options))
	for _, o := range q.Options {
		all = append(all, o.Label)
	}
	return all
}

// isObject reports whether valid JSON is an object.
func isObject(text json.RawMessage) bool { return bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) }
