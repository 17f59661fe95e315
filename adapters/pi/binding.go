package pi

import (
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// recordAgent has a conversation that begins say with which agent it is had, as the real
// program does (facts, section 7.3).
func (ss *session) recordAgent(t *conversation.Tree) {
	s := ss.server
	if id := ss.agent.Agent(); id != "" {
		t.Add(s.modelChange(id))
	}
}

// modelChange is the entry that says that an agent is talked with from there on.
func (s *Server) modelChange(id core.AgentID) sessionfile.ModelChange {
	provider := conversation.API // of one that was never here
	if a, ok := s.hub.Agent(id); ok {
		provider, id = a.Dialect, a.ID
	} else if known := s.provider(id); known != "" {
		provider = known
	}
	return sessionfile.ModelChange{Provider: provider, ModelID: string(id)}
}

// bindToLast binds a session to the agent with which the conversation of its file was had
// last: one that is here, or one of this hub that is away, since nobody else is to be told
// what was said to it. Models that the real program talked with itself bind nobody.
func (ss *session) bindToLast() {
	s := ss.server
	provider, id := ss.tree.Agent()
	a, here := s.hub.Agent(id)
	ours := provider == conversation.API || slices.Contains(s.opts.Dialects, provider)
	switch {
	case id == "" || !ours && (!here || a.Dialect != provider):
	case here:
		ss.agent, ss.model = core.ToAgent(id), new(modelOf(a))
	default:
		ss.agent, ss.model = core.ToAgent(id), nil
		if provider != conversation.API {
			s.noteDialect(id, provider)
			ss.model = new(modelOf(hub.AgentStatus{Card: core.Card{ID: id, Dialect: provider}}))
		}
	}
}

// openTask opens a task for the agent of a session. known says that the agent was here
// and may come back, so that an agent that is away can be asked again. It returns the
// Fault of the hub when it takes no task. It needs no lock.
func (s *Server) openTask(req core.Request, o hub.Opening, known bool) (*hub.Task, error) {
	task, err := s.root.Open(req, o)
	if err != nil && known && core.AsFault(err).Code == core.CodeUnknownAgent {
		return nil, core.NewFault(core.CodeUnreachable, "agent %q is not connected: ask again once it is back, or choose another with set_model", req.To.Agent())
	}
	return task, err
}

// hasTalkedWith reports whether the address names the agent that the session has talked with.
func (ss *session) hasTalkedWith(to core.Address) bool {
	return ss.model != nil && ss.model.ID == to.Agent()
}
