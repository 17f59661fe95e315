package a2a

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/task"
)

// goOn takes a message for a task that is there: it settles what the task waits for, or is
// context for the agent that works on it.
func (c *call) goOn(s *hub.Session, t *task.Task, r wire.SendRequest) error {
	m := r.Message
	switch {
	case m.ContextID != "" && m.ContextID != string(t.Thread()) && m.ContextID != string(t.Request().Thread):
		return core.NewFault(core.CodeInvalid, "message.contextId: task %s belongs to context %s: send that, or leave it out", t.ID(), t.Thread())
	case t.State() == task.Ended:
		return wire.NewError(wire.ReasonUnsupportedOperation, "task "+string(t.ID())+" has ended: send a new message with its contextId "+string(t.Thread())+" and without taskId")
	}
	settled := false
	for _, p := range m.Parts {
		if p.Kind != wire.PartData {
			continue
		}
		var in wire.Settlement
		if err := strictjson.ParseValid(p.Data).Decode(&in); err != nil {
			return core.NewFault(core.CodeInvalid, "message.parts: data: %s", err)
		}
		if in.Approval == nil && in.Answer == nil {
			continue
		}
		if err := c.settle(s, t, in); err != nil {
			return err
		}
		settled = true
	}
	if settled {
		return nil
	}
	return c.tellAgent(s, t, m)
}

// settle decides an approval or answers a question.
func (c *call) settle(s *hub.Session, t *task.Task, in wire.Settlement) error {
	if a := in.Approval; a != nil {
		if a.ID == "" || a.Approved == nil {
			return core.NewFault(core.CodeInvalid, `message.parts: data: an approval is {"approval":{"id":"...","approved":true}}`)
		}
		return s.Decide(c.r.Context(), t.ID(), core.ApprovalDecided{ID: a.ID, Approved: *a.Approved, All: a.All, Reason: a.Reason, InputSHA256: a.InputSHA256})
	}
	a := in.Answer
	open := c.openQuestions(t)
	if len(open) == 0 || a.ID != "" && !slices.ContainsFunc(open, func(q question.Question) bool { return q.ID == a.ID }) {
		return core.NewFault(core.CodeConflict, "the task waits for no question %s: it was answered, or its time is over", shorten(a.ID))
	}
	a.ID = cmp.Or(a.ID, open[0].ID)
	_, err := s.AnswerQuestion(c.r.Context(), core.Reply{Question: a.ID, Selected: a.Selected, Text: a.Text, Dismissed: a.Dismissed})
	return err
}

// openQuestions returns the questions that a task waits for and the sender may answer, the
// longest waiting first.
func (c *call) openQuestions(t *task.Task) (open []question.Question) {
	for _, q := range c.server.hub.Questions(c.from) {
		if slices.Contains(q.Tasks, t.ID()) {
			open = append(open, q)
		}
	}
	return open
}

// tellAgent takes a message that settles nothing by itself: text answers the question that
// waits, else all of it is context for the agent.
func (c *call) tellAgent(s *hub.Session, t *task.Task, m wire.Message) error {
	text := wire.RequestOf(wire.SendRequest{Message: m})
	if open := c.openQuestions(t); len(open) > 0 {
		if text.Content == "" {
			return core.NewFault(core.CodeInvalid, `message.parts: the task waits for an answer: send text, or a data part {"answer":{"id":%q,"selected":["..."]}}`, open[0].ID)
		}
		reply := core.Reply{Question: open[0].ID, Text: text.Content}
		for _, o := range open[0].Options {
			if o.Label == text.Content { // who types the label chooses it
				reply.Selected, reply.Text = []string{o.Label}, ""
			}
		}
		_, err := s.AnswerQuestion(c.r.Context(), reply)
		return err
	}
	if waiting := t.Approvals(); len(waiting) > 0 {
		example, _ := json.Marshal(waiting[0].ID) // a string always encodes
		return core.NewFault(core.CodeInvalid, `message.parts: the task waits for an approval: send a data part {"approval":{"id":%s,"approved":true}}`, example)
	}
	content := text.Content
	if len(text.Data) > 0 {
		if content != "" {
			content += "\n"
		}
		content += string(text.Data)
	}
	if content == "" || len(text.Attachments) > 0 {
		return wire.NewError(wire.ReasonUnsupportedOperation, "only text and data can be sent to a task that runs: send files with a new message, in the same context and without taskId")
	}
	err := s.Inject(c.r.Context(), t.ID(), core.Injected{ID: m.ID, Content: content, Trace: core.TraceOf(c.r.Header)})
	if f := core.AsFault(err); errors.Is(err, &core.Fault{Code: core.CodeUnsupported}) {
		return wire.NewError(wire.ReasonUnsupportedOperation, f.Message+"; wait for the end of the task, then send a message in its context without taskId")
	}
	return err
}
