package pi

import (
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// recordAgent records the agent of the session in a new conversation, as pi does (facts,
// section 7.3).
func (ss *session) recordAgent(t *conversation.Tree) {
	if ss.agent.Agent() != "" {
		t.AppendEntry(ss.modelChange())
	}
}

// modelChange returns the entry that names the agent of the session for what follows.
func (ss *session) modelChange() sessionfile.ModelChange {
	if m := ss.currentModel(); m != nil {
		return sessionfile.ModelChange{Provider: m.Provider, ModelID: string(m.ID)}
	}
	return sessionfile.ModelChange{Provider: conversation.API, ModelID: string(ss.agent.Agent())} // it was never here, or may not be seen
}

// bindToLast binds a session to the last agent of the conversation in its file, also to one
// that is away: no other agent may see the conversation without the user's choice. The models
// of pi itself are not agents and bind nothing.
func (ss *session) bindToLast() {
	s := ss.server
	provider, id := ss.tree.Agent()
	a, here := s.hub.Agent(ss.viewer, id)
	ours := provider == conversation.API || slices.Contains(s.opts.Dialects, provider)
	switch {
	case id == "" || !ours && (!here || a.Dialect != provider):
	case here:
		ss.agent, ss.model = core.ToAgent(id), new(modelOf(a))
	default:
		ss.agent, ss.model = core.ToAgent(id), nil
		if provider != conversation.API {
			ss.model = new(modelOf(hub.AgentStatus{Card: core.Card{ID: id, Dialect: provider}}))
		}
	}
}

// openTask opens a task for the agent of a session, and returns the Fault of the hub if it
// refuses. known says that the agent was here and may come back. It needs no lock.
func (s *Server) openTask(req core.Request, o hub.OpenOptions, known bool) (*task.Task, error) {
	task, err := s.root.Open(req, o)
	if err != nil && known && core.AsFault(err).Code == core.CodeUnknownAgent {
		return nil, core.NewFault(core.CodeUnreachable, "agent %q is not connected: ask again once it is back, or choose another with set_model", req.To.Agent())
	}
	return task, err
}

// bindToAssigned binds the session to the agent that has taken its task, and so has the
// history before the thread.
func (ss *session) bindToAssigned(id core.AgentID) {
	changed := ss.agent.Agent() != id
	if ss.agent = core.ToAgent(id); ss.informedAgents == nil {
		ss.informedAgents = map[core.AgentID]bool{}
	}
	ss.informedAgents[id] = true
	if ss.currentModel(); changed {
		ss.watchQuestions()
		ss.addEntry(ss.modelChange())
	}
}

// priorHistory returns the conversation before the session's thread, for its agent. An agent
// that remembers threads gets it once.
func (ss *session) priorHistory() []core.Turn {
	s := ss.server
	if len(ss.history) == 0 {
		return nil
	}
	id := ss.agent.Agent()
	if a, ok := s.hub.Agent(ss.viewer, id); ok && a.Features.Has(core.FeatureSessions) && ss.informedAgents[id] {
		return nil
	}
	return ss.history
}

// newThread continues in another thread, with context as the history before it: the thread
// until now does not have the same messages.
func (ss *session) newThread(thread core.ThreadID, context []conversation.Message) {
	if ss.thread != thread {
		ss.leaveThread()
		ss.thread, ss.shared = thread, false
	}
	ss.followThread()
	ss.history, ss.informedAgents = conversation.Turns(context, ss.server.hub.Limits().HistoryBytes), nil
	ss.unreported = unreportedBash{} // the conversation has it
	ss.watchQuestions()
}
