package pi

import (
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
)

// retrying is what a run knows of its own retries (facts, section 5, Run grammar):
// what failed in a way that may pass (see passes) is asked again, of the same agent, behind a
// delay. The hub's own retries, with another match, come before and are none of
// these.
type retrying struct {
	attempt int // the retry under way, or 0
	// timer is set while the next attempt is waited for.
	timer *time.Timer
	// since is where the messages of the attempt begin.
	since int
	// compacted says that the conversation has been compacted for it.
	compacted bool
}

// retry has a step that failed asked again, if that can help. It reports whether it
// does: then the run goes on. A failure behind a tool call is final, since asking
// again would use the tool twice.
func (st *step) retry(f *core.Fault) bool {
	s := st.run.session.server
	r := st.run
	ss := r.session
	n := r.retrying.attempt + 1
	if !passes(f) || r.aborted || ss.deleted || ss.noRetry || s.engine.Draining() || n > s.opts.Retries || calledTools(st) {
		return false
	}
	delay := s.opts.RetryDelay << (n - 1)
	deadline := st.task.Request().Deadline
	if delay <= 0 || !time.Now().Add(delay).Before(deadline) {
		return false
	}
	r.retrying.attempt = n
	r.tellBetween(ss.envelope.AgentEnd(r.messages[r.retrying.since:]), ss.envelope.RetryStart(n, s.opts.Retries, delay, render.FaultMessage(f)))
	r.retrying.timer = time.AfterFunc(delay, func() {
		s.engine.Lock()
		defer s.engine.Unlock()
		if r.retrying.timer != nil && r.retrying.attempt == n {
			r.askAgain(st, deadline)
		}
	})
	return true
}

// passes reports whether the agent that failed may succeed when it is asked again: what is
// retryable for another reason is for another agent, whom the hub has asked already where
// the address allows it.
func passes(f *core.Fault) bool {
	if f == nil || !f.Retryable {
		return false
	}
	switch f.Code {
	case core.CodeOverloaded, core.CodeUnreachable, core.CodeRateLimited, core.CodeTimeout:
		return true
	}
	return false
}

// calledTools reports whether the agent has used tools in the step.
func calledTools(st *step) bool {
	return slices.ContainsFunc(st.task.Events(), func(e core.Event) bool { return e.Body.Kind() == core.KindToolCall })
}

// askAgain asks once more what the step did, with what was pushed into it.
func (r *run) askAgain(st *step, deadline time.Time) {
	said := st.said
	for _, e := range st.task.Events() {
		if in, ok := e.Body.(core.Injected); ok && !refused(st.task.Events(), in.ID) {
			said = append(slices.Clip(said), queued{text: in.Content, from: said[0].from})
		}
	}
	task, err := r.session.ask(said, deadline)
	if err != nil {
		r.giveUp(core.AsFault(err).Message)
		return
	}
	r.retrying.timer = nil
	// What the agent said in the attempt is gone with it, but for a branch of the tree.
	pushed := slices.DeleteFunc(slices.Clone(r.messages[st.from:]), func(m conversation.Message) bool { return m.Role != conversation.RoleUser })
	r.messages = r.messages[:st.from]
	r.session.tree.Move(st.leaf)
	for _, m := range pushed {
		r.say(m)
	}
	r.retrying.since = len(r.messages)
	r.begin(nil, task, nil).said = said
}

func refused(events []core.Event, injection string) bool {
	return slices.ContainsFunc(events, func(e core.Event) bool {
		b, ok := e.Body.(core.InjectionAnswered)
		return ok && b.ID == injection && !b.Accepted
	})
}

// giveUp ends a run that waits for its next attempt, or has come to it in vain.
func (r *run) giveUp(why string) {
	if r.retrying.timer != nil {
		r.retrying.timer.Stop()
		r.retrying.timer = nil
	}
	r.endRetries(why)
	r.closeRun()
	r.over(command.Outcome{})
}

// stopRetrying ends the runs that wait for their next attempt: the hub is stopping.
func (s *Server) stopRetrying() {
	for _, ss := range s.sessions {
		if r := ss.run; r != nil && r.retrying.timer != nil {
			r.giveUp("Server is shutting down")
		}
	}
}

// endRetries tells how the retries of a run ended: with success, or why without.
func (r *run) endRetries(problem string) {
	n := r.retrying.attempt
	if n == 0 {
		return
	}
	r.retrying.attempt = 0
	r.tellBetween(r.session.envelope.RetryEnd(n, problem))
}

// tellBetween tells clients something between two tasks of a run, also those that come
// later.
func (r *run) tellBetween(frames ...[]byte) {
	st := &step{run: r, before: r.last(), opening: frames, answer: func(*render.View) {}}
	r.steps = append(r.steps, st)
	r.session.readers.tellStep(st)
}

func setAutoRetry(_ *Server, x *request) command.Outcome {
	x.on.noRetry = x.Is("enabled", "false")
	return command.Outcome{}
}

// abortRetry ends the run that waits for its next attempt, if one does.
func abortRetry(s *Server, x *request) command.Outcome {
	if r := x.on.run; r != nil && r.retrying.timer != nil {
		r.giveUp(render.RetryCancelled)
	}
	return command.Outcome{}
}
