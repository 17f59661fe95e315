package frame

import (
	"context"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// Turn is what a connection carries for one task that the hub has given to the agent behind it: for
// agents that the hub starts or connects to itself, whose connections have no session of the hub. A
// nil Turn does nothing.
type Turn struct {
	ring *Ring
	task core.TaskID

	shows *[]core.TaskID // of the request
	now   *kept          // what Begin was told; guarded by the mutex of the ring
}

// Turn returns a Turn for a task, whose request has earlier turns; nil for a nil Ring.
func (r *Ring) Turn(task core.TaskID, earlier []core.Turn) *Turn {
	if r == nil {
		return nil
	}
	return &Turn{ring: r, task: task, shows: shownOf(earlier)}
}

// turning is the key of the Turn in the contexts of [Turn.With].
type turning struct{}

// With returns a context of the Turn: see [TurnOf]. What is queued with it belongs to the task and is
// no event.
func (t *Turn) With(ctx context.Context) context.Context {
	if t == nil {
		return ctx
	}
	return t.Telling(context.WithValue(ctx, turning{}, t), 0)
}

// TurnOf returns the Turn of a context; nil if it has none.
func TurnOf(ctx context.Context) *Turn {
	t, _ := ctx.Value(turning{}).(*Turn)
	return t
}

// Telling returns a context with which the agent is told of an event of the task: what is queued
// with it is that event. A zero kind is none.
func (t *Turn) Telling(ctx context.Context, kind core.Kind) context.Context {
	if t == nil {
		return ctx
	}
	n := note{task: t.task, agent: true, kind: kind}
	if kind == core.KindAssigned {
		n.shows = t.shows
	}
	return context.WithValue(ctx, telling{}, n)
}

// Sent is [Ring.Queued] for a message that was sent at a time over a connection without a link.
func (t *Turn) Sent(ctx context.Context, at time.Time, message []byte) {
	if t == nil || len(message) == 0 {
		return
	}
	if o := t.ring.Outgoing(ctx, message); o.kept != nil {
		o.kept.at = at
		t.ring.mu.Lock()
		defer t.ring.mu.Unlock()
		t.ring.add(o.kept)
	}
}

// Received keeps a message of the agent, of a connection without a link, and begins with it.
func (t *Turn) Received(message []byte) {
	if t == nil {
		return
	}
	t.ring.mu.Lock()
	defer t.ring.mu.Unlock()
	t.now = t.keep(time.Now(), message)
}

// Incoming is a message of the agent that belongs to a Turn.
type Incoming struct{ kept *kept }

// Take keeps the message that the reader of the connection handles as one of the task.
func (t *Turn) Take() Incoming {
	if t == nil {
		return Incoming{}
	}
	r := t.ring
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.incoming.message == nil {
		return Incoming{}
	}
	return Incoming{t.keep(r.incoming.at, r.incoming.message)}
}

// keep keeps a message. Callers hold the mutex of the ring.
func (t *Turn) keep(at time.Time, message any) *kept {
	k := &kept{at: at, direction: In, message: t.ring.bytesOf(message), notes: []note{{task: t.task}}}
	t.ring.add(k)
	return k
}

// Begin says that what is reported from here on is what the message became.
func (t *Turn) Begin(in Incoming) {
	if t == nil {
		return
	}
	t.ring.mu.Lock()
	defer t.ring.mu.Unlock()
	t.now = in.kept
}

// BeginAs begins with what another Turn of the task has begun with.
func (t *Turn) BeginAs(other *Turn) {
	if t == nil {
		return
	}
	t.ring.mu.Lock()
	defer t.ring.mu.Unlock()
	t.now = other.now
}

// Reported says that an event was reported: what the message became that was begun with last. A
// refused one did not become an event.
func (t *Turn) Reported(kind core.Kind, refused bool) {
	if t == nil {
		return
	}
	r := t.ring
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.now != nil {
		r.noteKept(t.now, note{task: t.task, agent: true, kind: kind, refused: refused})
	}
}
