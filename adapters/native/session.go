package native

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/core"
	coreagent "github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
)

// session is the state of one connection. The reader loop, the pumps and the goroutine of
// later use it.
type session struct {
	ctx  context.Context //nolint:containedctx // the lifetime of the connection
	hub  *hub.Hub
	link *link.Link[[]byte, []byte]
	opts Options
	log  *slog.Logger

	// agent is the session that joins and works, asks the one that gives all other commands.
	// They are one, except where the agent's session outlives the connection.
	agent, asks *hub.Session
	supervised  bool
	noise       *coreagent.Noise // of a supervised child
	probe       func(ctx context.Context) error
	goroutines  sync.WaitGroup

	lastSeen     time.Time // when the hub was last told that the agent is alive; the reader's own
	watchesTools bool      // the reader's own

	mu            sync.Mutex
	held          map[core.TaskID]*heldTask  // the tasks that the peer was given and has not ended
	conversations map[conversation]*watching // whose questions it watches
	later         later
	all           *hub.Session // that of a watch_all with positions; else nil
	asking        int          // how many questions of the peer wait for people
}

func newSession(h *hub.Hub, conn link.Conn[[]byte, []byte], opts Options, agent, asks *hub.Session) *session {
	return &session{
		hub: h, link: link.New(conn, opts.Link), opts: opts, log: opts.Log.With("peer", agent.Identity().Principal.ID),
		agent: agent, asks: asks, held: map[core.TaskID]*heldTask{},
	}
}

// ownID returns the id with which the peer joins; "" if it may choose.
func (s *session) ownID() core.AgentID {
	if s.supervised {
		return s.opts.Card.ID
	}
	return s.opts.AgentID
}

func (s *session) principal() core.Principal { return s.asks.Identity().Principal }

// send queues a frame.
func (s *session) send(ctx context.Context, kind string, value any) error {
	frame, err := wire.Encode(kind, value)
	if err != nil {
		return err
	}
	return s.link.Send(ctx, frame, len(frame))
}

// refuse answers a frame with an error.
func (s *session) refuse(ctx context.Context, r wire.Refusal) error {
	s.hub.Count("native.error." + string(r.Fault.Code))
	return s.send(ctx, "error", r)
}

// reply answers a call: with the result, whose value has a member id, or with the error.
func (s *session) reply(ctx context.Context, id string, result any, err error) error {
	if err == nil {
		return s.send(ctx, "result", result)
	}
	return s.refuse(ctx, wire.Refusal{ID: id, Fault: s.fault(err)})
}

// fault returns the Fault for the peer, and logs what it hides.
func (s *session) fault(err error) *core.Fault {
	f := core.AsFault(err)
	if f.Code == core.CodeInternal {
		s.log.Error("a command of a native peer failed", "error", err)
	}
	return f
}

// done is the result of a command that has none.
type done struct {
	ID string `json:"id"`
}

// heldTask is a task of the peer.
type heldTask struct{ pieces coreagent.Pieces } // of the reader loop

// hold notes that the peer was given a task.
func (s *session) hold(id core.TaskID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[id] = &heldTask{}
}

// holds reports whether the peer has a task.
func (s *session) holds(id core.TaskID) bool { return s.heldTask(id) != nil }

// heldTask returns a task that the peer has, or nil.
func (s *session) heldTask(id core.TaskID) *heldTask {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[id]
}

// drop notes that a task has ended, and reports whether the peer had it.
func (s *session) drop(id core.TaskID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.held[id]
	delete(s.held, id)
	return ok
}

// failHeld fails the tasks of a peer that is gone while its session stays.
func (s *session) failHeld(why *core.Fault) {
	for id := range s.held {
		gone := core.NewFault(core.CodeUnreachable, "agent %s was lost: %s", s.ownID(), why.Message).Because(why)
		_ = s.agent.Report(id, core.Failed{Fault: gone}, nil) // it may have ended
	}
}
