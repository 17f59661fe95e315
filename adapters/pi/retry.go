package pi

import (
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
)

// retrying is the state of the retries of a run (facts, section 5, Run grammar): after a
// failure that may pass the same agent is asked again, after a delay. The hub's own retries,
// with other agents, come before.
type retrying struct {
	attempt int // the number of the retry under way, or 0
	// timer is set while the run waits for the next attempt.
	timer *time.Timer
	// since is the index of the first message of the attempt.
	since int
	// compacted says that the conversation was compacted for this run.
	compacted bool
}

// retry schedules another attempt of a step that failed, if that can help, and reports
// whether it does: then the run goes on. A failure after a tool call is final, since another
// attempt would use the tool twice.
func (st *step) retry(f *core.Fault) bool {
	s := st.run.session.server
	r := st.run
	ss := r.session
	n := r.retrying.attempt + 1
	if !mayPass(f) || r.aborted || ss.deleted || ss.noRetry || s.engine.Draining() || n > s.opts.Retries || calledTools(st) {
		return false
	}
	delay := s.opts.RetryDelay << (n - 1)
	deadline := st.task.Deadline()
	if delay <= 0 || !time.Now().Add(delay).Before(deadline) {
		return false
	}
	r.retrying.attempt = n
	r.sendBetween(ss.envelope.AgentEnd(r.messages[r.retrying.since:]), ss.envelope.RetryStart(n, s.opts.Retries, delay, render.FaultMessage(f)))
	r.retrying.timer = time.AfterFunc(delay, func() {
		s.engine.Lock()
		defer s.engine.Unlock()
		if r.retrying.timer != nil && r.retrying.attempt == n {
			r.repeatStep(st, deadline)
		}
	})
	return true
}

// mayPass reports whether the same agent may succeed when it is asked again. Other retryable
// faults are for another agent, which the hub has asked already if the address allows it.
func mayPass(f *core.Fault) bool {
	if f == nil || !f.Retryable {
		return false
	}
	switch f.Code {
	case core.CodeOverloaded, core.CodeUnreachable, core.CodeRateLimited, core.CodeTimeout:
		return true
	}
	return false
}

// calledTools reports whether the agent has called tools in the step.
func calledTools(st *step) bool {
	return slices.ContainsFunc(st.task.Events(), func(e core.Event) bool { return e.Body.Kind() == core.KindToolCall })
}

// repeatStep makes another attempt of the step, with the messages injected into it.
func (r *run) repeatStep(st *step, deadline time.Time) {
	input := st.input
	for _, e := range st.task.Events() {
		if in, ok := e.Body.(core.Injected); ok && !refused(st.task.Events(), in.ID) {
			input = append(slices.Clip(input), userMessage{text: in.Content, from: input[0].from})
		}
	}
	task, err := r.session.ask(input, deadline)
	if err != nil {
		r.giveUp(core.AsFault(err).Message)
		return
	}
	r.retrying.timer = nil
	// The answer of the failed attempt stays in the tree only, as a branch.
	injected := slices.DeleteFunc(slices.Clone(r.messages[st.from:]), func(m conversation.Message) bool { return m.Role != conversation.RoleUser })
	r.messages = r.messages[:st.from]
	r.session.tree.Move(st.leaf)
	for _, m := range injected {
		r.addMessage(m)
	}
	r.retrying.since = len(r.messages)
	r.begin(nil, task, nil).input = input
}

func refused(events []core.Event, injection string) bool {
	return slices.ContainsFunc(events, func(e core.Event) bool {
		b, ok := e.Body.(core.InjectionAnswered)
		return ok && b.ID == injection && !b.Accepted
	})
}

// giveUp ends a run whose next attempt is not made.
func (r *run) giveUp(why string) {
	if r.retrying.timer != nil {
		r.retrying.timer.Stop()
		r.retrying.timer = nil
	}
	r.endRetries(why)
	r.closeRun()
	r.finish(command.Outcome{})
}

// stopRetrying ends the runs that wait for their next attempt, because the hub is stopping.
func (s *Server) stopRetrying() {
	for _, ss := range s.sessions {
		if r := ss.run; r != nil && r.retrying.timer != nil {
			r.giveUp("Server is shutting down")
		}
	}
}

// endRetries tells clients how the retries of a run ended: a success if problem is "".
func (r *run) endRetries(problem string) {
	n := r.retrying.attempt
	if n == 0 {
		return
	}
	r.retrying.attempt = 0
	r.sendBetween(r.session.envelope.RetryEnd(n, problem))
}

// sendBetween sends frames between two tasks of a run, also to later subscribers.
func (r *run) sendBetween(frames ...[]byte) {
	st := &step{run: r, before: r.last(), opening: frames, answer: func(*render.View) {}}
	r.steps = append(r.steps, st)
	r.session.subscribers.sendStep(st)
}

func setAutoRetry(_ *Server, x *request) command.Outcome {
	x.target.noRetry = x.Is("enabled", "false")
	return command.Outcome{}
}

// abortRetry ends a run that waits for its next attempt.
func abortRetry(s *Server, x *request) command.Outcome {
	if r := x.target.run; r != nil && r.retrying.timer != nil {
		r.giveUp(render.RetryCancelled)
	}
	return command.Outcome{}
}
