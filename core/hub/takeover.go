package hub

import (
	"context"
	"errors"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/task"
)

// goneHub is a hub that is gone. Hub.mu guards it.
type goneHub struct {
	// orphans are the mirrors of its tasks, until they have their ends or another owner.
	orphans []*task.Task
	// taken says that another hub has taken its life over: from now on the journal says what
	// becomes of its tasks.
	taken bool
}

// settleAgain is how long after a look into the journal the next one is, while the heir of a hub has
// not stored the end of a task, or where it goes on.
const settleAgain = 250 * time.Millisecond

// Settled says that the life of a hub that is gone was taken over. The mirrors that it left behind get
// what the journal says of their tasks; what was said and not stored is gone: readers that have seen
// it get a gap. It has no effect once the hub is back.
func (h *Hub) Settled(hub string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if g := h.others.gone[hub]; g != nil {
		g.taken = true
		h.settleSoon()
	}
}

// settleSoon lets the mirrors of hubs that are gone be looked at. Callers hold mu.
func (h *Hub) settleSoon() {
	select {
	case h.others.settling <- struct{}{}:
	default:
	}
}

// settle gives mirrors of hubs that are gone what the journal says, until ctx ends.
func (h *Hub) settle(ctx context.Context) {
	again := time.NewTimer(time.Hour)
	defer again.Stop()
	for {
		select {
		case <-h.others.settling:
		case <-again.C:
		case <-ctx.Done():
			return
		}
		h.mu.Lock()
		all := map[*goneHub][]*task.Task{}
		for _, g := range h.others.gone {
			if g.taken && len(g.orphans) > 0 {
				all[g], g.orphans = g.orphans, nil
			}
		}
		h.mu.Unlock()
		for g, orphans := range all {
			left := h.settleEach(ctx, orphans)
			if len(left) == 0 {
				continue
			}
			h.mu.Lock()
			g.orphans = append(g.orphans, left...)
			h.mu.Unlock()
			again.Reset(settleAgain)
		}
	}
}

// settleEach returns those of the mirrors of which the journal does not say enough yet.
func (h *Hub) settleEach(ctx context.Context, orphans []*task.Task) (left []*task.Task) {
	for _, t := range orphans {
		if t.HasEnded() || !t.IsMirror() {
			continue
		}
		before := t.Owner()
		events, _, err := h.stored(ctx, t.ID())
		var gap *journal.GapError
		switch {
		case errors.Is(err, journal.ErrUnknown):
			events = []core.Event{neverStored(t)}
		case err != nil && !errors.As(err, &gap):
			h.log.Warn("a task of a hub that is gone could not be read yet", "task", t.ID(), "error", err)
			left = append(left, t)
			continue
		}
		h.extend(t, events)
		if !t.HasEnded() && t.IsMirror() && t.Owner() == before {
			left = append(left, t)
		}
	}
	return left
}

// endOf returns the end of a task that was cut off, in a new epoch.
func endOf(head journal.Head, why *core.Fault) journal.Record {
	return journal.Record{Task: head.Task, Event: core.Event{
		Seq: head.Last.End() + 1, Epoch: head.Last.Epoch + 1, At: time.Now(), Body: core.Failed{Fault: why},
	}}
}

// neverStored returns the end of a task of which its owner has stored nothing. It is the same at
// every hub.
func neverStored(t *task.Task) core.Event {
	r := endOf(journal.Head{Task: t.ID(), Last: core.Event{Seq: 1, Epoch: 1}}, core.NewFault(core.CodeUnreachable, "the hub that was to have the task has stored nothing of it, and does not have it any more: ask again"))
	if first := t.Log(); first.Len() > 0 {
		r.Event.At = first.At(0).At
	}
	return r.Event
}
