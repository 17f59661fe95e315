package pi

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/question"
)

// dialogs are the open questions that the subscribers of a session are asked, and the ids
// of those settled last.
type dialogs struct {
	open    map[string]question.Question
	settled []string
}

// maxSettled bounds the settled questions whose ids a session remembers.
const maxSettled = 64

// watchQuestions updates which questions the session is asked: those of its conversation
// while it has subscribers, with the open ones again when the first subscriber comes.
func (ss *session) watchQuestions() {
	s := ss.server
	if len(ss.subscribers) == 0 {
		s.root.UnwatchQuestions(ss)
		clear(ss.dialogs.open)
		return
	}
	_ = s.root.WatchQuestions(question.View{Tag: ss, Thread: ss.thread, Agent: ss.agent.Agent(), For: ss.viewer})
}

// questionChanged handles a new question, or the outcome of one. Subscribers are told who
// answered; that nobody did is not sent (facts, section 7.1).
func (ss *session) questionChanged(q question.Question, given *question.Outcome) {
	_, known := ss.dialogs.open[q.ID]
	switch {
	case len(ss.subscribers) == 0 || known == (given == nil):
		return
	case given == nil:
		if ss.dialogs.open == nil {
			ss.dialogs.open = map[string]question.Question{}
		}
		ss.dialogs.open[q.ID] = q
		ss.subscribers.send(ss.envelope.Dialog(q, q.Until.Sub(q.Since)))
		return
	}
	delete(ss.dialogs.open, q.ID)
	if n := len(ss.dialogs.settled); n == maxSettled {
		ss.dialogs.settled = slices.Delete(ss.dialogs.settled, 0, 1)
	}
	ss.dialogs.settled = append(ss.dialogs.settled, q.ID)
	if given.By.ID != "" {
		ss.subscribers.send(ss.envelope.Notice(time.Now(), render.NoticeInfo, q.Text+" answered by "+given.By.ID+": "+given.String()))
	}
}

// resendQuestions sends the open questions to a client that subscribes late.
func (c *connection) resendQuestions(ss *session) {
	open := slices.SortedFunc(maps.Values(ss.dialogs.open), func(a, b question.Question) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID))
	})
	for _, q := range open {
		c.push(item{frame: ss.envelope.Dialog(q, time.Until(q.Until))})
	}
}

// answer handles the response to an approval or a question (section 18.2). The first
// response to an approval counts.
func answer(s *Server, x *request) command.Outcome {
	id, _ := x.Text("requestId")
	task, at, isApproval := render.ParseRequestID(id)
	if !isApproval {
		return x.reply(id)
	}
	here := s.runs[task]
	i := slices.IndexFunc(here, func(st *step) bool { return st.run.session.key.Scope == x.client.Scope })
	if i < 0 {
		return command.Failed("No pending UI request with id " + id)
	}
	asked, ok := approvalAt(here[i].task.Events(), at)
	switch {
	case !ok:
		return command.Failed("No pending UI request with id " + id)
	case here[i].run.session != x.target:
		return command.Failed("Session ID mismatch for request " + id)
	}
	r, _ := x.Object("response")
	d := core.ApprovalDecided{ID: asked.ID, InputSHA256: asked.InputSHA256, Approved: r.Is("method", `"confirm"`) && r.Is("confirmed", "true")}
	if r.Is("method", `"cancelled"`) {
		d.Reason = "dismissed"
	}
	err := s.act(x.client.principal, core.Decide{Task: task, Decision: d})
	x.became(task, core.KindApprovalDecided, err)
	return unsettled(id, err)
}

// unsettled is the outcome of a response: that of a client which may not give it says so, and
// any other error that somebody else was first.
func unsettled(id string, err error) command.Outcome {
	switch f := core.AsFault(err); {
	case err == nil:
		return command.Outcome{}
	case f.Code == core.CodeNotAuthorized:
		return command.Failed(f.Message)
	}
	return command.Failed("Request " + id + " already settled")
}

// approvalAt returns the approval request at a place.
func approvalAt(events []core.Event, at core.Cursor) (core.ApprovalRequested, bool) {
	for _, e := range events {
		if e.Cursor() == at {
			a, ok := e.Body.(core.ApprovalRequested)
			return a, ok
		}
	}
	return core.ApprovalRequested{}, false
}

// reply answers a question (section 18.2).
func (x *request) reply(id string) command.Outcome {
	s := x.client.server
	q, here := x.target.dialogs.open[id]
	if !here {
		if slices.Contains(x.target.dialogs.settled, id) {
			return command.Failed("Request " + id + " already settled")
		}
		for key, ss := range s.sessions {
			if _, there := ss.dialogs.open[id]; there && key.Scope == x.client.Scope {
				return command.Failed("Session ID mismatch for request " + id)
			}
		}
		return command.Failed("No pending UI request with id " + id)
	}
	r, _ := x.Object("response")
	method, _ := r.Text("method")
	value, _ := r.Text("value")
	answer := render.DialogAnswer(q, method, value)
	answer.Question = id
	err := s.act(x.client.principal, answer) // it fits the question
	if errors.Is(err, context.Canceled) {
		err = nil // the hub that asked has it: what it says comes as for everybody
	}
	return unsettled(id, err)
}
