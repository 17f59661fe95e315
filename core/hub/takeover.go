package hub

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/task"
)

// settleAgain is how long after a look into the journal the next one is, while the heir of a hub has
// not stored the end of a task, or where it goes on.
const settleAgain = 250 * time.Millisecond

// Settled says that the life of a hub that is gone was taken over. The mirrors that it left behind get
// what the journal says of their tasks; what was said and not stored is gone: readers that have seen
// it get a gap. It has no effect once the hub is back.
func (h *Hub) Settled(hub string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, gone := h.others.gone[hub]
	if gone || !h.others.up[hub] && hub != h.others.name { // it may have been gone before this hub started
		h.others.gone[hub] = true
		h.others.legacies[hub] = newLegacy(hub, h.shared)
		h.settleSoon()
	}
}

// settleSoon lets the mirrors of hubs that are gone be looked at.
func (h *Hub) settleSoon() { fifo.Signal(h.others.settling) }

// settle gives mirrors of hubs that are gone, or silent, what the journal says, until ctx ends.
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
		silent := h.settleSilent(ctx)
		switch {
		case !h.settleAll(ctx):
			again.Reset(settleAgain)
		case silent:
			again.Reset(silenceTime)
		}
	}
}

// settleAll reports whether the journal has said enough of all mirrors of hubs that are gone.
func (h *Hub) settleAll(ctx context.Context) (all bool) {
	h.mu.Lock()
	var taken []string
	for name, is := range h.others.gone {
		if is {
			taken = append(taken, name)
		}
	}
	h.mu.Unlock()
	slices.Sort(taken)
	all = true
	for _, name := range taken {
		if ctx.Err() != nil {
			return false
		}
		if err := h.settleExpected(ctx, name); err != nil {
			h.log.Warn("tasks of a hub that is gone could not be read yet", "hub", name, "error", err)
			all = false
		}
		h.mu.Lock()
		left := h.mirrorsOf(name)
		h.mu.Unlock()
		all = h.settleMirrors(ctx, left) && all
	}
	return all
}

// readsAtOnce is how many tasks of a hub that is gone are read in the journal at once: a request that goes
// to a server which is gone takes its time, and the readers of all of them wait.
const readsAtOnce = 16

// eachAtOnce calls do for each of all, for readsAtOnce of them at once, and waits.
func eachAtOnce[T any](all []T, do func(i int, one T)) {
	var reading sync.WaitGroup
	next := make(chan int)
	for range min(readsAtOnce, len(all)) {
		reading.Go(func() {
			for i := range next {
				do(i, all[i])
			}
		})
	}
	for i := range all {
		next <- i
	}
	close(next)
	reading.Wait()
}

// settleMirrors is settleMirror for several mirrors.
func (h *Hub) settleMirrors(ctx context.Context, mirrors []*task.Task) bool {
	var open atomic.Bool
	eachAtOnce(mirrors, func(_ int, t *task.Task) {
		if ctx.Err() != nil || !h.settleMirror(ctx, t) {
			open.Store(true)
		}
	})
	return !open.Load()
}

// settleMirror gives a mirror what the journal says of its task. It reports whether the task has an
// end, or another owner, then.
func (h *Hub) settleMirror(ctx context.Context, t *task.Task) bool {
	before := t.Owner()
	events, _, err := h.stored(ctx, t.ID())
	var gap *journal.GapError
	switch {
	case errors.Is(err, journal.ErrUnknown) && !t.IsRecorded():
		return false // this hub has handed it over, and waits for the journal with all that says so
	case errors.Is(err, journal.ErrUnknown):
		h.endUnstored(t)
		return true
	case err != nil && !errors.As(err, &gap):
		h.log.Warn("a task of a hub that is gone could not be read yet", "task", t.ID(), "error", err)
		return false
	}
	h.extend(t, events)
	return t.HasEnded() || !t.IsMirror() || t.Owner() != before
}

// endOf returns the end of a task that was cut off, in a new epoch.
func endOf(head journal.Head, why *core.Fault) journal.Record {
	return journal.Record{Task: head.Task, Event: core.Event{
		Seq: head.Last.End() + 1, Epoch: head.Last.Epoch + 1, At: time.Now(), Body: core.Failed{Fault: why},
	}}
}

// endUnstored ends a mirror of which its owner has stored nothing. The hub that has opened the task takes it
// back, and stores it. If that is gone, too, or was the owner, nobody finds the task once it is out of memory:
// no list or thread has it from then on.
func (h *Hub) endUnstored(t *task.Task) {
	maker, elsewhere := h.makerOf(t.ID())
	if maker == h.others.name && h.takeBack(t) {
		return
	}
	h.mu.Lock()
	if !elsewhere || !h.others.up[maker] {
		t.SetUnstored()
	}
	h.mu.Unlock()
	h.extend(t, []core.Event{neverStored(t)})
}

// makerOf returns the hub that has opened a task for another one to own, and whether it is not this one; "" if
// a hub has opened it for itself, or none of the cluster has.
func (h *Hub) makerOf(id core.TaskID) (hub string, elsewhere bool) {
	l, _ := task.LineOf(id)
	switch {
	case l.Maker() == l.Owner() || h.others.peers == nil:
		return "", false
	case l.Maker() == h.ownIndex:
		return h.others.name, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ownerOf(l.Maker())
}

// takeBack makes a task that was opened here this hub's own, and ends it: its requester was told that it was accepted,
// and its owner has stored nothing of it. It reports false for a task that is no mirror any more, and for one of which
// the part of this hub may have a copy, since the task was to move here.
func (h *Hub) takeBack(t *task.Task) bool {
	h.mu.Lock()
	if a := h.others.arriving[t.ID()]; a != nil && a.copied.Load() {
		h.mu.Unlock()
		return false
	}
	j := &job{Task: t, opener: h.mirrors[t.ID()]}
	if j.opener == nil {
		j.opener = h.standFor(h.others.name)
	}
	if !t.TakeBack(h.others.name, neverStored(t)) {
		h.mu.Unlock()
		return false
	}
	h.recorder.Record(t)
	delete(h.mirrors, t.ID())
	h.jobs[t.ID()] = j
	h.tellOpened(t)
	h.mu.Unlock()
	h.Count("task.taken_back")
	h.ended(j)
	return true
}

// neverStored returns the end of a task of which its owner has stored nothing. It is the same at
// every hub, which may show it before the one that takes the task back has stored it.
func neverStored(t *task.Task) core.Event {
	r := endOf(journal.Head{Task: t.ID(), Last: core.Event{Seq: 1, Epoch: 1}}, core.NewFault(core.CodeUnreachable, "the hub that was to have the task has stored nothing of it, and does not have it any more: ask again"))
	if first := t.Log(); first.Len() > 0 {
		r.Event.At = first.At(0).At
	}
	return r.Event
}
