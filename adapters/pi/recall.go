package pi

import (
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/core"
)

// say adds a message to the run and to the conversation of its session.
func (s *Server) say(r *run, m conversation.Message) {
	r.messages = append(r.messages, m)
	r.session.file.Append(r.session.tree.Say(m))
}

// gather takes over the messages that have ended in a step.
func (s *Server) gather(st *step) {
	for _, m := range st.record.TakeMessages() {
		s.say(st.run, m)
	}
}

// answers binds the session to the agent that has taken its task: it has been told
// what the session's thread does not have.
func (s *Server) answers(ss *session, id core.AgentID) {
	changed := ss.agent.Agent() != id
	if ss.agent = core.ToAgent(id); ss.knowing == nil {
		ss.knowing = map[core.AgentID]bool{}
	}
	ss.knowing[id] = true
	if s.refreshModel(ss); changed {
		s.look(ss)
		ss.add(s.modelChange(id))
	}
}

// toldBefore is what the agent of a session is to know of the conversation beside its
// thread: what was said before that began. One that remembers threads is told once.
func (s *Server) toldBefore(ss *session) []core.Turn {
	if len(ss.told) == 0 {
		return nil
	}
	id := ss.agent.Agent()
	if a, ok := s.hub.Agent(id); ok && a.Features.Has(core.FeatureSessions) && ss.knowing[id] {
		return nil
	}
	return ss.told
}

// recall begins a new thread with the conversation as it stands: the one before has
// things in it that are no part of that, or lacks some.
func (s *Server) recall(ss *session, thread core.ThreadID) {
	s.recallOf(ss, thread, ss.all())
}

// recallOf is recall with a part of the conversation: the rest is said again.
func (s *Server) recallOf(ss *session, thread core.ThreadID, context []conversation.Message) {
	if ss.thread != thread {
		s.depart(ss)
		ss.thread, ss.shared = thread, false
	}
	s.attend(ss)
	ss.told, ss.knowing = conversation.Turns(context, s.hub.Limits().HistoryBytes), nil
	ss.untold = untoldBash{} // it stands in the conversation
	s.look(ss)
}
