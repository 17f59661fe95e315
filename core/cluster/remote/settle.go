package remote

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/task"
)

// settleAgain is how long after a look into the journal the next one is, while the heir of a hub has
// not stored the end of a task, or where it goes on.
const settleAgain = 250 * time.Millisecond

// TakenOver says that the life of a hub that is gone was taken over. The copies of its tasks get what the journal
// says of them. It has no effect once the hub is back.
func (r *Hubs) TakenOver(name string) {
	r.Lock()
	defer r.Unlock()
	if o := r.view.get(name); !o.gone && (o.up || name == r.name) {
		return
	} // else it may have been gone before this hub started
	r.view.change(name, func(o *other) { o.gone, o.taken, o.goneSince = true, true, time.Now() })
	r.remains[name] = newRemains(name, r.shared)
	r.settleSoon()
}

// settleSoon lets the copies of tasks of hubs that are gone be looked at.
func (r *Hubs) settleSoon() { fifo.Signal(r.settling) }

// settle gives copies of tasks of hubs that are gone, or silent, what the journal says, until ctx ends.
func (r *Hubs) settle(ctx context.Context) {
	again := time.NewTimer(time.Hour)
	defer again.Stop()
	for {
		select {
		case <-r.settling:
		case <-again.C:
		case <-ctx.Done():
			return
		}
		silent := r.settleSilent(ctx)
		switch {
		case !r.settleAll(ctx):
			again.Reset(settleAgain)
		case silent:
			again.Reset(silenceTime)
		}
	}
}

// settleAll reports whether the journal has said enough of all copies of tasks of hubs that are gone, and of those that
// lives which have ended were handing over.
func (r *Hubs) settleAll(ctx context.Context) (all bool) {
	all = r.settleArrivals(ctx)
	for _, name := range r.view.where(func(o *other) bool { return o.gone && o.taken }) {
		if ctx.Err() != nil {
			return false
		}
		if err := r.settleExpected(ctx, name); err != nil {
			r.log.Warn("tasks of a hub that is gone could not be read yet", "hub", name, "error", err)
			all = false
		}
		all = r.settleCopies(ctx, r.copiesOf(name)) && all
	}
	return all
}

// settleArrivals gives tasks that were handed over by a life which has ended what the journal says, and reports whether
// that was enough. One of which it says nothing is left to who ends it: the life may be the present one, which was not
// heard for a while.
func (r *Hubs) settleArrivals(ctx context.Context) bool {
	task.EachAtOnce(r.arrivalsAlone(), func(_ int, t *task.Task) {
		events, _, err := r.stored(ctx, t.ID())
		var gap *journal.GapError
		if err == nil || errors.As(err, &gap) {
			r.extend(t, events)
		}
	})
	return len(r.arrivalsAlone()) == 0
}

// settleCopies is settleCopy for several copies.
func (r *Hubs) settleCopies(ctx context.Context, copies []*task.Task) bool {
	var open atomic.Bool
	task.EachAtOnce(copies, func(_ int, t *task.Task) {
		if ctx.Err() != nil || !r.settleCopy(ctx, t) {
			open.Store(true)
		}
	})
	return !open.Load()
}

// settleCopy gives a copy what the journal says of its task. It reports whether the task has an
// end, or another owner, then.
func (r *Hubs) settleCopy(ctx context.Context, t *task.Task) bool {
	before := t.Owner()
	events, _, err := r.stored(ctx, t.ID())
	var gap *journal.GapError
	switch {
	case errors.Is(err, journal.ErrUnknown) && !t.IsRecorded():
		return false // this hub has handed it over, and waits for the journal with all that says so
	case errors.Is(err, journal.ErrUnknown):
		r.endUnstored(t)
		return true
	case err != nil && !errors.As(err, &gap):
		r.log.Warn("a task of a hub that is gone could not be read yet", "task", t.ID(), "error", err)
		return false
	}
	r.extend(t, events)
	return t.HasEnded() || !t.IsRemote() || t.Owner() != before
}

// endUnstored ends a copy of which its owner has stored nothing. The hub that has opened the task takes it
// back, and stores it. If that is gone, too, or was the owner, nobody finds the task once it is out of memory:
// no list or thread has it from then on.
func (r *Hubs) endUnstored(t *task.Task) {
	maker, remote := r.makerOf(t.ID())
	if maker == r.name && (r.waitsForCopy(t) || r.takeBack(t)) {
		return
	}
	if !remote || !r.view.get(maker).up {
		t.SetUnstored()
	}
	r.extend(t, []core.Event{neverStored(t)})
}

// makerOf returns the hub that has opened a task for another one to own, and whether it is not this one; "" if
// a hub has opened it for itself, or none of the cluster has.
func (r *Hubs) makerOf(id core.TaskID) (hub string, remote bool) {
	l, _ := task.LineOf(id)
	switch {
	case l.Maker() == l.Owner():
		return "", false
	case l.Maker() == r.index:
		return r.name, false
	}
	return r.ownerOf(l.Maker())
}

// takeBack makes a task that was opened here this hub's own, and ends it: its requester was told that it was accepted,
// and its owner has stored nothing of it. It reports false for a task that is another hub's no more, and for one of which
// the part of this hub may have a copy, since the task was to come here.
func (r *Hubs) takeBack(t *task.Task) bool {
	r.Lock()
	if r.copied[t.ID()] != nil || !t.TakeBack(r.name, neverStored(t)) {
		r.Unlock()
		return false
	}
	delete(r.cancels, t.ID())
	r.Own(t, r.standFor(r.name))
	r.Unlock()
	r.Count("task.taken_back")
	r.Finish(t)
	return true
}

// neverStored returns the end of a task of which its owner has stored nothing. It is the same at
// every hub, which may show it before the one that takes the task back has stored it.
func neverStored(t *task.Task) core.Event {
	r := task.EndOf(journal.Head{Task: t.ID(), Last: core.Event{Seq: 1, Epoch: 1}}, core.NewFault(core.CodeUnreachable, "the hub that was to have the task has stored nothing of it, and does not have it any more: ask again"))
	if first := t.Log(); first.Len() > 0 {
		r.Event.At = first.At(0).At
	}
	return r.Event
}

// settleSilent gives the copies of tasks of hubs that are silent what the journal says, and wakes those who wait
// for a task of them. It reports whether there are hubs that are not heard. Such a hub is not gone: nobody takes its
// tasks over, and this may last. Until it is heard again it is asked for nothing.
func (r *Hubs) settleSilent(ctx context.Context) (more bool) {
	for _, name := range r.view.where(func(o *other) bool { return o.isSilent() }) {
		r.Lock()
		for id, f := range r.fetched {
			if f.from == name {
				r.wake(id, notHeard(name))
			}
		}
		r.Unlock()
		for _, t := range r.copiesOf(name) {
			if ctx.Err() != nil {
				return false
			}
			r.settleUnheard(ctx, t)
		}
	}
	return len(r.view.where(func(o *other) bool { return !o.since.IsZero() })) > 0
}

// settleUnheard gives a copy what the journal says of its task. One that was opened here, and that its
// owner cannot have any more, ends.
func (r *Hubs) settleUnheard(ctx context.Context, t *task.Task) {
	events, _, err := r.stored(ctx, t.ID())
	switch {
	case err == nil:
		r.extend(t, events)
	case !errors.Is(err, journal.ErrUnknown):
		r.log.Info("a task of a hub that is not heard could not be read yet", "task", t.ID(), "error", err)
	case t.Last().Body.Kind() == core.KindOpened && time.Since(t.Deadline()) > 2*hub.LatestOpening:
		r.endUnstored(t)
	}
}
