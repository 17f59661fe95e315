package host

import (
	"context"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// Start gives the agent the tasks of a session, which has joined, until stop is called: that
// waits until every Work has returned, whose contexts end with ctx, so the caller ends ctx
// first. The session stays open: tasks that come when nobody serves it wait. Only one Start, and
// nobody else, reads the session at a time. No goroutine waits for an agent without tasks.
//
// lost, if it is not nil, is called before a task is reported as failed for [agent.Lost]: the
// caller then says by [hub.Session.SetChild] that the agent takes nothing for now. over is called
// with the reason if the session ends.
func Start(ctx context.Context, s *hub.Session, a agent.Agent, lost, over func(error)) (stop func()) {
	h := &host{session: s, agent: a, lost: lost, turns: map[core.TaskID]*turn{}}
	end := s.Consume(ctx, func(b hub.Batch, err error) bool {
		if err != nil {
			over(err)
			return false
		}
		if b.Task != nil && b.Role == task.Agent {
			for _, e := range b.Events {
				_ = e.DeliverToAgent(sink{h, ctx, b.Task}) // it returns no errors
			}
		}
		return true
	})
	return func() {
		end()
		h.workers.Wait()
	}
}

// host is the state of one Start.
type host struct {
	session *hub.Session
	agent   agent.Agent
	lost    func(error)
	workers sync.WaitGroup

	mu    sync.Mutex
	turns map[core.TaskID]*turn
	seen  time.Time // when the hub was last told that the agent is alive
}

// seenEvery is how often the hub is told that an agent is alive.
const seenEvery = time.Second

// heard tells the hub that the agent has said something.
func (h *host) heard() {
	now := time.Now()
	h.mu.Lock()
	due := now.Sub(h.seen) >= seenEvery
	if due {
		h.seen = now
	}
	h.mu.Unlock()
	if due {
		h.session.Seen()
	}
}

// start begins to work on a task.
func (h *host) start(ctx context.Context, t *task.Task) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &turn{host: h, session: h.session, task: t, request: t.AgentRequest(), ctx: ctx, cancel: cancel, mail: fifo.NewMailbox[core.Body](0, nil)}
	h.mu.Lock()
	h.turns[t.ID()] = w
	h.mu.Unlock()
	h.workers.Go(func() {
		defer cancel(nil)
		err := h.agent.Work(ctx, w)
		h.mu.Lock()
		if h.turns[t.ID()] == w {
			delete(h.turns, t.ID())
		}
		h.mu.Unlock()
		if h.lost != nil && agent.IsLost(err) {
			h.lost(err)
		}
		w.finish(err)
	})
}

// find returns the turn of a task that the agent works on, or nil.
func (h *host) find(id core.TaskID) *turn {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.turns[id]
}

// sink takes the events of one task for its agent.
type sink struct {
	*host
	ctx  context.Context //nolint:containedctx // of the works that it starts
	task *task.Task
}

var _ core.AgentSink = sink{}

func (s sink) tell(body core.Body) error {
	if w := s.find(s.task.ID()); w != nil {
		w.tell(body)
	}
	return nil
}

// end ends the context of a turn whose task ended without its agent.
func (s sink) end(why *core.Fault) error {
	if w := s.find(s.task.ID()); w != nil {
		w.cancel(why)
	}
	return nil
}

func (s sink) Assigned(_ core.Event, b core.Assigned) error {
	if b.Agent == s.session.AgentID() {
		s.start(s.ctx, s.task)
	}
	return nil
}

func (s sink) ApprovalDecided(_ core.Event, b core.ApprovalDecided) error { return s.tell(b) }
func (s sink) Injected(_ core.Event, b core.Injected) error               { return s.tell(b) }
func (s sink) CancelRequested(_ core.Event, b core.CancelRequested) error { return s.tell(b) }

// Done ends no notice: it is done once it was delivered, and the agent begins with it then.
func (s sink) Done(core.Event, core.Done) error {
	if s.task.IsNotice() {
		return nil
	}
	return s.end(core.NewFault(core.CodeConflict, "the task has ended"))
}

func (s sink) Failed(_ core.Event, b core.Failed) error { return s.end(b.Fault) }

func (s sink) Cancelled(_ core.Event, b core.Cancelled) error {
	return s.end(core.NewFault(core.CodeCancelled, "%s", b.Reason))
}
