package notify

import (
	"cmp"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// self is who reads the tasks, stranger sees of them what others than their requester see.
var (
	self     = hub.ComponentIdentity("notify", "").Principal
	stranger = core.Principal{ID: self.ID}
)

// ofTask returns what is told of an event of a task, or of its end.
func (n *Notifier) ofTask(t *task.Task, h happening) []message {
	switch {
	case h.end != nil:
		return n.ofEnd(t, *h.end)
	case h.at == (core.Cursor{}):
		return n.ofEnd(t, t.Last())
	}
	log := t.Log()
	for e := range log.All() {
		if e.Cursor() != h.at {
			continue
		}
		switch b := n.opts.Redact().Event(e).Body.(type) {
		case core.ApprovalRequested:
			return n.ofApproval(t, b)
		case core.QuestionAsked:
			return n.ofQuestion(t, e, b)
		}
	}
	return nil
}

// of begins a message about a task.
func of(t *task.Task) data {
	return data{Task: t.ID(), Thread: t.Thread(), Agent: cmp.Or(t.Agent(), t.To().Preferred()), From: t.From().ID}
}

// ofApproval tells of a tool call unless it was decided meanwhile, as the hub does itself in a task all of whose
// tools were approved.
func (n *Notifier) ofApproval(t *task.Task, b core.ApprovalRequested) []message {
	all := n.hub.FormFor(stranger, t).Approvals()
	i := slices.IndexFunc(all, func(p task.PendingApproval) bool { return p.ID == b.ID && p.InputSHA256 == b.InputSHA256 })
	if i < 0 {
		return nil
	}
	p := all[i]
	m := newMessage(Waiting, p.Since, of(t))
	m.Data.Approval = &approval{ID: p.ID, Tool: cut(p.Name, maxName), InputSHA256: p.InputSHA256, Until: p.Until.UTC()}
	m.content.Input = p.Input
	return []message{m}
}

// ofQuestion tells of a question unless it was settled meanwhile. One may be asked in several tasks of its agent.
func (n *Notifier) ofQuestion(t *task.Task, asked core.Event, b core.QuestionAsked) []message {
	if _, told := n.asked.Get(b.ID); told {
		return nil
	}
	log := t.Log()
	for e := range log.All() {
		if s, is := e.Body.(core.QuestionAnswered); is && s.ID == b.ID || e.Body.Kind().Ends() {
			return nil
		}
	}
	n.asked.Put(b.ID, struct{}{})
	m := newMessage(Waiting, asked.At, of(t))
	m.Data.Question = &question{ID: b.ID, Until: b.Until.UTC()}
	m.content.Question = b.Text
	for _, o := range b.Options {
		if len(m.content.Options) < maxOptions {
			m.content.Options = append(m.content.Options, cut(o.Label, maxName))
		}
	}
	return []message{m}
}

// maxOptions is how many options of a question a message has at most.
const maxOptions = 20

// ofEnd tells how a task of a person has ended. Of one that was refused its requester was told at once, and of one
// that another task has caused the agent that asked for it.
func (n *Notifier) ofEnd(t *task.Task, last core.Event) []message {
	if !last.Body.Kind().Ends() || !isOfPerson(t) || t.Receipt().Stage == core.StageRefused {
		return nil
	}
	m := newMessage(Ended, last.At, of(t))
	m.Data.State = last.Body.Kind().String()
	if f, is := n.opts.Redact().Event(last).Body.(core.Failed); is && f.Fault != nil {
		m.Type, m.Data.Code, m.Data.Reason = Failed, f.Fault.Code, cut(f.Fault.Message, maxContent)
	}
	if n.tellsContent(m) {
		form := n.hub.FormFor(stranger, t)
		m.content.Asked, m.content.Answer = form.Request().Content, form.Answer().Text
	}
	return []message{m}
}

// tellsContent reports whether a webhook gets the content of a message.
func (n *Notifier) tellsContent(m message) bool {
	return slices.ContainsFunc(*n.hooks.Load(), func(w Webhook) bool { return w.Content && w.wants(m) })
}

// isOfPerson reports whether a person opened a task, as far as the hub knows: no task stands above it, and its
// requester's credential is not that of an agent or a service.
func isOfPerson(t *task.Task) bool {
	who := t.From().Credential
	return t.Hops() == 0 && t.Request().Cause == "" && !t.IsNotice() && (who == nil || who.Kind != core.KindAgent && who.Kind != core.KindService)
}
