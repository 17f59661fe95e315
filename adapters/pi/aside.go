package pi

import (
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// aside is a question to the agent of a session beside its conversation: for a
// summary. Server.mu guards it.
type aside struct {
	task *hub.Task
	// ended is called once, with Server.mu held, when the agent has answered or will
	// not: then with the reason.
	ended func(text string, f *core.Fault)
}

// askAside asks the agent of the session in the name of who sent x; what it is to
// look at goes along as a conversation. A session has one such question at a time;
// [Server.stopAside] ends it early. It returns the Fault of the hub when it takes no
// task, or of the agent's circuit. Server.mu is held.
func (s *Server) askAside(x *execution, about []core.Turn, question string, deadline time.Time, ended func(string, *core.Fault)) error {
	ss := x.on
	call, err := s.agents.allow(ss.agent)
	if err != nil {
		s.reject(breakerOpen)
		return err
	}
	task, err := s.openTask(ss, core.Request{
		Intent: core.IntentAsk, To: ss.agent, Content: question, Deadline: deadline, History: about,
	}, hub.Opening{For: x.client.principal, Keep: true, Unwatched: true})
	if err != nil {
		s.agents.asked(call, "")
		return err
	}
	s.agents.asked(call, task.ID())
	ss.aside = &aside{task: task}
	ss.aside.ended = func(text string, f *core.Fault) {
		ss.aside = nil
		ended(text, f)
	}
	_ = s.root.Watch(task, core.Cursor{}, ss.aside) // the beginning is a cursor of every task
	return nil
}

// hear takes in what has come of a question. Server.mu is held.
func (s *Server) hear(a *aside, events []core.Event) {
	for _, e := range events {
		s.agents.follow(a.task.ID(), e)
		if e.Body.Kind().Ends() {
			answer := a.task.Answer()
			a.ended(answer.Text, answer.Fault)
			return
		}
	}
}

// stopAside ends the question of a session, if there is one, in the name of who sent
// x. Server.mu is held.
func (s *Server) stopAside(x *execution, ss *session, why string) {
	if ss.aside == nil {
		return
	}
	as := s.as(x.client.principal)
	defer as.Close(nil)
	_ = as.Cancel(ss.aside.task.ID(), why) // a conflict: it has ended by itself
}
