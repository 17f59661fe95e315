package pi

import (
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// noteAgent has a conversation that begins say with which agent it is had, as the real
// program does (facts, section 7.3). Server.mu is held.
func (s *Server) noteAgent(ss *session, t *tree) {
	if id := ss.agent.Agent(); id != "" {
		t.grow(s.modelChange(id))
	}
}

// modelChange is the entry that says that an agent is talked with from there on.
func (s *Server) modelChange(id core.AgentID) sessionfile.ModelChange {
	provider := api // of one that was never here
	if a, ok := s.hub.Agent(id); ok {
		provider, id = a.Dialect, a.ID
	} else if known := s.provider(id); known != "" {
		provider = known
	}
	return sessionfile.ModelChange{Provider: provider, ModelID: string(id)}
}

// goOnWith binds a session to the agent with which the conversation of its file was had
// last: one that is here, or one of this hub that is away, since nobody else is to be told
// what was said to it. Models that the real program talked with itself bind nobody.
// Server.mu is held.
func (s *Server) goOnWith(ss *session) {
	provider, id, _ := ss.tree.settings()
	a, here := s.hub.Agent(id)
	ours := provider == api || slices.Contains(s.opts.Dialects, provider)
	switch {
	case id == "" || !ours && (!here || a.Dialect != provider):
	case here:
		ss.agent, ss.model = core.ToAgent(id), new(modelOf(a))
	default:
		ss.agent, ss.model = core.ToAgent(id), nil
		if provider != api {
			s.noteDialect(id, provider)
			ss.model = new(modelOf(hub.AgentStatus{Card: core.Card{ID: id, Dialect: provider}}))
		}
	}
}

// openTask opens a task for the agent of a session. One that is away may come back, so
// that this can be tried again. It returns the Fault of the hub when it takes no task.
func (s *Server) openTask(ss *session, req core.Request, o hub.Opening) (*hub.Task, error) {
	task, err := s.root.Open(req, o)
	if err != nil && core.AsFault(err).Code == core.CodeUnknownAgent && ss.model != nil && ss.model.ID == req.To.Agent() {
		return nil, core.NewFault(core.CodeUnreachable, "agent %q is not connected: ask again once it is back, or choose another with set_model", ss.model.ID)
	}
	return task, err
}
