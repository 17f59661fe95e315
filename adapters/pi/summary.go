package pi

import (
	"context"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// summaryRequest asks the agent of a session for a summary, outside the conversation.
type summaryRequest struct {
	circuits *command.AgentCircuits
	task     *task.Task // nil until it is opened
	// stopped cancels the task once it is opened; nil unless the summary is no longer wanted.
	stopped func()
	// ended is called once, in a turn of the engine, with the summary or the reason why there
	// is none.
	ended func(text string, f *core.Fault)
}

// requestSummary asks the agent of the session in the name of the client that sent x.
// prepare returns the turns to summarize and the question; it runs outside the engine, since
// it reads a whole conversation. A session has one summary under way at a time, which
// [request.stopSummary] cancels. The error is the Fault of an open circuit; ended gets any
// other.
func (x *request) requestSummary(prepare func() (about []core.Turn, question string), deadline time.Time, ended func(text string, f *core.Fault)) error {
	s := x.client.server
	ss := x.target
	call, err := s.beginCall(x.client.principal, ss.agent)
	if err != nil {
		return err
	}
	a := &summaryRequest{circuits: s.circuits}
	a.ended = func(text string, f *core.Fault) {
		ss.summarizing = nil
		ended(text, f)
	}
	ss.summarizing = a
	req := core.Request{Intent: core.IntentAsk, To: ss.agent, Deadline: deadline}
	how := hub.OpenOptions{For: requester(x.client.principal), Keep: true, Unwatched: true, DefaultDeadline: true, Trace: x.trace()}
	known := ss.knowsAgent(ss.agent)
	s.summaries.Add(func(context.Context) {
		req.History, req.Content = prepare()
		task, err := s.openTask(req, how, known)
		s.engine.Lock()
		defer s.engine.Unlock()
		if err != nil {
			s.circuits.Bind(call, "")
			a.ended("", core.AsFault(err))
			return
		}
		a.task = task
		s.circuits.Bind(call, task.ID())
		_ = s.root.Watch(task, core.Cursor{}, a) // the beginning is a cursor of every task
		switch {
		case s.engine.Stopped(): // there will be no events
			a.finish()
		case a.stopped != nil:
			a.stopped()
		}
	})
	return nil
}

// follow handles the events of the task.
func (a *summaryRequest) follow(events []core.Event) {
	for _, e := range events {
		a.circuits.Observe(a.task.ID(), e)
		if e.Body.Kind().Ends() {
			a.finish()
			return
		}
	}
}

// finish ends a request whose task has ended, or has no more events because the hub stopped.
func (a *summaryRequest) finish() {
	answer := a.task.Answer()
	if answer.End == 0 {
		answer.Fault = errCutOff
	}
	a.ended(answer.Text, answer.Fault)
}

// errCutOff is the Fault of a task without an end: the hub tells the end only once it is
// recorded.
var errCutOff = core.NewFault(core.CodeUnreachable, "the hub stopped before the end of the answer was recorded")

// stopSummary cancels the summary under way in a session, if there is one, in the name of
// the client that sent x.
func (x *request) stopSummary(ss *session, why string) {
	a := ss.summarizing
	if a == nil {
		return
	}
	who := x.client.principal
	stop := func() { x.cancel(who, a.task.ID(), why) }
	if a.task == nil {
		a.stopped = stop
		return
	}
	stop()
}
