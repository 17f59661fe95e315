package pi

import (
	"slices"
	"sync"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/lru"
	"github.com/dragoman-hub/dragoman/core/task"
)

// recordAgent has a conversation that begins say with which agent it is had, as the real
// program does (facts, section 7.3).
func (ss *session) recordAgent(t *conversation.Tree) {
	s := ss.server
	if id := ss.agent.Agent(); id != "" {
		t.AppendEntry(s.modelChange(id))
	}
}

// modelChange is the entry that says that an agent is talked with from there on.
func (s *Server) modelChange(id core.AgentID) sessionfile.ModelChange {
	provider := conversation.API // of one that was never here
	if a, ok := s.hub.Agent(id); ok {
		provider, id = a.Dialect, a.ID
	} else if known := s.dialects.of(id); known != "" {
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
			s.dialects.note(id, provider)
			ss.model = new(modelOf(hub.AgentStatus{Card: core.Card{ID: id, Dialect: provider}}))
		}
	}
}

// openTask opens a task for the agent of a session. known says that the agent was here
// and may come back, so that an agent that is away can be asked again. It returns the
// Fault of the hub when it takes no task. It needs no lock.
func (s *Server) openTask(req core.Request, o hub.OpenOptions, known bool) (*task.Task, error) {
	task, err := s.root.Open(req, o)
	if err != nil && known && core.AsFault(err).Code == core.CodeUnknownAgent {
		return nil, core.NewFault(core.CodeUnreachable, "agent %q is not connected: ask again once it is back, or choose another with set_model", req.To.Agent())
	}
	return task, err
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
	if ss.currentModel(); changed {
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

// newThread goes on in a thread with a part of the conversation as what was said before:
// the thread until now has things in it that are no part of that, or lacks some.
func (ss *session) newThread(thread core.ThreadID, context []conversation.Message) {
	if ss.thread != thread {
		ss.leaveThread()
		ss.thread, ss.shared = thread, false
	}
	ss.followThread()
	ss.history, ss.informed = conversation.Turns(context, ss.server.hub.Limits().HistoryBytes), nil
	ss.untold = untoldBash{} // it stands in the conversation
	ss.watchQuestions()
}

// maxDialects is of how many agents the dialect is known when they have left.
const maxDialects = 4096

// dialects are those of the agents of the hub, also of some that have left. They are safe
// for concurrent use.
type dialects struct {
	hub *hub.Hub

	mu    sync.Mutex
	known *lru.Cache[core.AgentID, string]
}

func newDialects(h *hub.Hub) *dialects {
	return &dialects{hub: h, known: lru.New(lru.Options[core.AgentID, string]{Count: maxDialects})}
}

// note remembers the dialect of an agent.
func (d *dialects) note(id core.AgentID, name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known, ok := d.known.Get(id); !ok || known != name {
		d.known.Put(id, name)
	}
}

// of names the dialect of an agent; "" of one that was never here.
func (d *dialects) of(id core.AgentID) string {
	if a, ok := d.hub.Agent(id); ok {
		d.note(id, a.Dialect)
		return a.Dialect
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	name, _ := d.known.Get(id)
	return name
}
