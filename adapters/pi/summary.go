package pi

import (
	"context"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// summaryRequest is a question to the agent of a session beside its conversation: for a
// summary.
type summaryRequest struct {
	circuits *command.AgentCircuits
	task     *task.Task // nil until it is opened
	// stopped ends the question once its task is opened, for those who no longer want
	// it; nil while it is wanted.
	stopped func()
	// ended is called once, in a turn of the engine, when the agent has answered or will
	// not: then with the reason.
	ended func(text string, f *core.Fault)
}

// requestSummary asks the agent of the session in the name of who sent x. prepare returns
// what the agent is to look at and the question; it runs beside the engine, since it
// reads a whole conversation. A session has one such question at a time;
// [Server.stopAside] ends it early. It returns the Fault of the agent's circuit when
// that is open; whatever else goes wrong is told to ended.
func (x *request) requestSummary(prepare func() (about []core.Turn, question string), deadline time.Time, ended func(text string, f *core.Fault)) error {
	s := x.client.server
	ss := x.on
	call, err := s.circuits.Allow(ss.agent)
	if err != nil {
		s.engine.Reject(command.BreakerOpen)
		return err
	}
	a := &summaryRequest{circuits: s.circuits}
	a.ended = func(text string, f *core.Fault) {
		ss.summarizing = nil
		ended(text, f)
	}
	ss.summarizing = a
	req := core.Request{Intent: core.IntentAsk, To: ss.agent, Deadline: deadline}
	how := hub.OpenOptions{For: requester(x.client.principal), Keep: true, Unwatched: true}
	known := ss.hasTalkedWith(ss.agent)
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
		case s.engine.Stopped(): // nothing more is heard
			a.over()
		case a.stopped != nil:
			a.stopped()
		}
	})
	return nil
}

// follow takes in what has come of a question.
func (a *summaryRequest) follow(events []core.Event) {
	for _, e := range events {
		a.circuits.Observe(a.task.ID(), e)
		if e.Body.Kind().Ends() {
			a.over()
			return
		}
	}
}

// over ends a question whose task has ended, or of which the hub tells no more.
func (a *summaryRequest) over() {
	answer := a.task.Answer()
	if answer.End == 0 {
		answer.Fault = cutOff
	}
	a.ended(answer.Text, answer.Fault)
}

// cutOff is why nothing comes of what is asked: the end of its task is told only once it
// is recorded.
var cutOff = core.NewFault(core.CodeUnreachable, "the hub stopped before the end of the answer was recorded")

// stopSummary ends the question of a session, if there is one, in the name of who sent
// x.
func (x *request) stopSummary(ss *session, why string) {
	s := x.client.server
	a := ss.summarizing
	if a == nil {
		return
	}
	who := x.client.principal
	stop := func() {
		as := s.actAs(who)
		defer as.Close(nil)
		_ = as.Cancel(a.task.ID(), why) // a conflict: it has ended by itself
	}
	if a.task == nil {
		a.stopped = stop
		return
	}
	stop()
}
