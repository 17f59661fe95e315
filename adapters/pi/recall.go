package pi

import (
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/core"
)

// say adds a message to the run and to the conversation of its session.
func (r *run) say(m conversation.Message) {
	r.messages = append(r.messages, m)
	r.session.file.Append(r.session.tree.Say(m))
}

// gather takes over the messages that have ended in a step.
func (st *step) gather() {
	for _, m := range st.record.TakeMessages() {
		st.run.say(m)
	}
}

// answeredBy binds the session to the agent that has taken its task: it has been told
// what the session's thread does not have.
func (ss *session) answeredBy(id core.AgentID) {
	s := ss.server
	changed := ss.agent.Agent() != id
	if ss.agent = core.ToAgent(id); ss.informed == nil {
		ss.informed = map[core.AgentID]bool{}
	}
	ss.informed[id] = true
	if ss.refreshModel(); changed {
		ss.watchQuestions()
		ss.add(s.modelChange(id))
	}
}

// historyToTell is what the agent of a session is to know of the conversation beside its
// thread: what was said before that began. One that remembers threads is told once.
func (ss *session) historyToTell() []core.Turn {
	s := ss.server
	if len(ss.history) == 0 {
		return nil
	}
	id := ss.agent.Agent()
	if a, ok := s.hub.Agent(id); ok && a.Features.Has(core.FeatureSessions) && ss.informed[id] {
		return nil
	}
	return ss.history
}

// recall begins a new thread with the conversation as it stands: the one before has
// things in it that are no part of that, or lacks some.
func (ss *session) recall(thread core.ThreadID) {
	ss.recallOf(thread, ss.tree.Messages())
}

// recallOf is recall with a part of the conversation: the rest is said again.
func (ss *session) recallOf(thread core.ThreadID, context []conversation.Message) {
	s := ss.server
	if ss.thread != thread {
		ss.leaveThread()
		ss.thread, ss.shared = thread, false
	}
	ss.followThread()
	ss.history, ss.informed = conversation.Turns(context, s.hub.Limits().HistoryBytes), nil
	ss.untold = untoldBash{} // it stands in the conversation
	ss.watchQuestions()
}
