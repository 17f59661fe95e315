package editor

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/visible"
)

// answerField is the member of a form that has the answer.
const answerField = "answer"

// showQuestion asks the user what an agent asks people, or closes the question. An editor
// without forms shows a message that says where to answer.
func (c *connection) showQuestion(ctx context.Context, u *question.Update) error {
	conv, _ := u.Tag.(*conversation)
	if u.Outcome != nil {
		return c.withdraw(ctx, func(a *asked) bool { return a.question == u.Question.ID })
	}
	if conv == nil || !c.isOpen(conv) {
		return nil
	}
	c.mu.Lock()
	form := c.form
	c.mu.Unlock()
	q := u.Question
	if !form {
		c.count("folded.question")
		return c.send(ctx, wire.AppendChunk(nil, string(conv.id), wire.UpdateAgentMessageChunk, questionText(q), nil))
	}
	a := &asked{question: q.ID, choices: len(q.Options) > 0, form: q.Form}
	if len(q.Tasks) > 0 {
		a.task = q.Tasks[0]
	}
	request := wire.ElicitationRequest{SessionID: string(conv.id), Mode: wire.ElicitForm, Message: visible.Text(q.Text)}
	if q.Form != nil {
		request.Message, request.RequestedSchema = visible.Text(q.Form.Message), q.Form.Schema
	} else {
		request.RequestedSchema = formOf(q)
	}
	return c.request(ctx, a, wire.MethodElicitationCreate, strictjson.Encode(request))
}

// formOf returns the schema of the form for a question: one member, with a choice if there are
// options.
func formOf(q question.Question) json.RawMessage {
	type choice struct {
		Const string `json:"const"`
		Title string `json:"title"`
	}
	type items struct {
		AnyOf []choice `json:"anyOf"`
	}
	field := struct {
		Type      string   `json:"type"`
		Title     string   `json:"title,omitempty"`
		OneOf     []choice `json:"oneOf,omitempty"`
		Items     *items   `json:"items,omitempty"`
		MinItems  int      `json:"minItems,omitempty"`
		MinLength int      `json:"minLength,omitempty"`
	}{Type: "string", Title: visible.Line(q.Header)}
	var choices []choice
	for _, o := range q.Options {
		title := o.Label
		if o.Description != "" {
			title += ": " + o.Description
		}
		title = visible.Text(title)
		choices = append(choices, choice{o.Label, title})
	}
	switch {
	case q.Several:
		field.Type, field.Items, field.MinItems = "array", &items{choices}, 1
	case len(choices) > 0:
		field.OneOf = choices
	default:
		field.MinLength = 1
	}
	return strictjson.Encode(struct {
		Type       string         `json:"type"`
		Properties map[string]any `json:"properties"`
		Required   []string       `json:"required"`
	}{"object", map[string]any{answerField: field}, []string{answerField}})
}

// questionText is a question for an editor without forms.
func questionText(q question.Question) string {
	var b strings.Builder
	b.WriteString("\n" + q.Text + "\n")
	for _, o := range q.Options {
		b.WriteString("- " + o.Label)
		if o.Description != "" {
			b.WriteString(": " + o.Description)
		}
		b.WriteByte('\n')
	}
	how := "OPTION"
	if len(q.Options) == 0 {
		how = "--text WORDS"
	}
	b.WriteString("\nThis editor has no forms. Answer in a terminal: dragoman answer " + q.ID + " " + how + "\n")
	return visible.Text(b.String())
}

// settleQuestion answers a question as the user has filled in the form.
func (c *connection) settleQuestion(a *asked, m jsonrpc.Message) {
	reply, ok := c.replyIn(a, m)
	if !ok {
		return // the question stays open
	}
	if _, err := c.self.AnswerQuestion(hub.NoWait, reply); err != nil && !errors.Is(err, context.Canceled) {
		c.log.Info("an answer of an editor was not taken", "question", a.question, "error", err)
	}
}

// replyIn reads the answer in a form, false if there is none. A question that the user closes is dismissed, and
// so is one that the user declines if it has no option for that.
func (c *connection) replyIn(a *asked, m jsonrpc.Message) (reply core.Reply, ok bool) {
	r, fault := wire.Read[wire.ElicitationResponse](m.Result)
	reply = core.Reply{Question: a.question, Dismissed: true}
	switch {
	case fault != nil:
		c.count("refused.response")
	case r.Action == wire.ElicitAccept && a.form != nil:
		content := strictjson.ParseValid(r.Content)
		switch {
		case content.Absent():
			reply.Dismissed, reply.Content = false, json.RawMessage("{}") // who asks checks whether that is enough
		case content.Kind() == strictjson.Object:
			reply.Dismissed, reply.Content = false, r.Content
		default:
			c.count("refused.response")
		}
	case r.Action == wire.ElicitDecline && a.form != nil && a.form.Decline != "":
		reply.Dismissed, reply.Selected = false, []string{a.form.Decline}
	case r.Action == wire.ElicitAccept:
		answer := strictjson.ParseValid(r.Content).Get(answerField)
		reply.Dismissed = false
		text, is := answer.Text()
		switch {
		case is && a.choices:
			reply.Selected = []string{text}
		case is:
			reply.Text = text
		case answer.Decode(&reply.Selected) != nil:
			c.count("refused.response")
			return reply, false
		}
	}
	return reply, true
}
