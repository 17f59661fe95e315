package remote

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/timer"
)

// This is the side of the hub to which a task is transferred: it stores a copy, and runs the task once the
// record is stored where the task was before. Until then it has a copy like that of any task of another hub, which
// learns the record like any other event, also from the journal if the former owner is gone.

const (
	// mostArrivals bounds the tasks whose copies are to be stored.
	mostArrivals = 1024
	// persistTime is how long storing a copy may take.
	persistTime = 4 * time.Second
	// mostBuffered bounds the commands on a task that wait until it is here.
	mostBuffered = 64
)

// arrival is a task that is transferred to this hub.
type arrival struct {
	Transfer
	from string // the hub that hands it over; "" for one that is gone
	came time.Time
	task *task.Task
	held []core.Call // commands on it

	// alone says that the life which hands it over has ended, or was away: whether it has stored the record, the journal tells.
	alone bool
	// unstored says that its owner has stored nothing of it, and closed that its copy here, if any, has its end.
	unstored, closed bool
}

func (a *arrival) name() Record { return Record{a.task.ID(), a.record().Seq} }

// Accept takes a task that a hub hands over. It does not wait: [Links.Took] tells what becomes of it.
func (r *Hubs) Accept(from string, o Transfer) {
	if len(o.Events) < 2 {
		r.Count("peer.invalid")
		return
	}
	opened, ok := o.Events[0].Body.(core.Opened)
	to, named := o.record().Body.(core.Retrying)
	if !ok || !named || to.Hub != r.name {
		r.Count("peer.invalid")
		return
	}
	opened.From = o.From
	o.Events[0].Body = opened
	if a := r.expectTransfer(opened.Task, from, o); a != nil {
		select {
		case r.arrivals <- a:
			return
		default:
			r.reject(a)
		}
	}
	_ = r.links.Took(from, Record{opened.Task, o.record().Seq}, false)
}

// Kept says that a task is not transferred here although this hub has stored it: see [Links.Hand].
func (r *Hubs) Kept(by string, m Record) {
	r.Lock()
	a := r.arriving[m.Task]
	r.Unlock()
	if a != nil && a.from == by && a.name() == m {
		r.passBuffered(a.task, r.reject(a))
	}
}

// expectTransfer makes a copy of a task that is to be transferred here; nil if this hub takes none now, is the owner,
// or expects the task from a later life.
func (r *Hubs) expectTransfer(id core.TaskID, from string, o Transfer) *arrival {
	r.Lock()
	defer r.Unlock()
	if r.TakesNothing() || r.shared == nil {
		return nil
	}
	before := r.arriving[id]
	if before != nil && before.record().Epoch > o.record().Epoch {
		return nil // a life that does not know yet that another hub has taken it over
	}
	var followed string
	if t := r.Tasks.Get(id); t != nil {
		followed, _ = r.owner(t)
	}
	a := &arrival{Transfer: o, from: from, came: time.Now(), task: r.Tasks.Remote(id, o.Events[0])}
	if !a.task.IsRemote() {
		return nil
	}
	a.task.Extend(slices.DeleteFunc(slices.Clone(o.Events), func(e core.Event) bool { return e.End() > o.Stored }))
	if from != followed && from != "" {
		r.follow(from, a.task)
	}
	if before != nil {
		a.held, before.held = before.held, nil
	}
	r.arriving[id] = a
	r.Coming(len(r.arriving))
	return a
}

// reject forgets a task that does not come, or has come, and returns the commands that waited. A copy
// that was stored gets an end.
func (r *Hubs) reject(a *arrival) []core.Call {
	r.Lock()
	defer r.Unlock()
	if id := a.task.ID(); r.arriving[id] == a {
		delete(r.arriving, id)
		r.Coming(len(r.arriving))
		if stored := r.copied[id]; stored != nil {
			r.endCopySoon(stored)
		}
	}
	held := a.held
	a.held = nil
	return held
}

// arrivalsAlone returns the tasks that are transferred here by lives that have ended, in order.
func (r *Hubs) arrivalsAlone() (all []*task.Task) {
	r.Lock()
	defer r.Unlock()
	for _, id := range slices.Sorted(maps.Keys(r.arriving)) {
		if a := r.arriving[id]; a.alone {
			all = append(all, a.task)
		}
	}
	return all
}

// takeArrivals stores copies of the tasks that move here, and ends those that were rejected, until ctx
// ends.
func (r *Hubs) takeArrivals(ctx context.Context) {
	for {
		var a *arrival
		select {
		case a = <-r.arrivals:
		case a = <-r.rejected:
			r.endCopy(ctx, a)
			continue
		case <-ctx.Done():
			return
		}
		err := errTooLate
		if time.Since(a.came) < handTime {
			err = r.persist(ctx, a)
		}
		if err != nil && ctx.Err() == nil {
			r.log.Warn("a task that another hub hands over could not be stored", "task", a.task.ID(), "hub", a.from, "error", err)
			r.passBuffered(a.task, r.reject(a))
		}
		_ = r.links.Took(a.from, a.name(), err == nil)
	}
}

// persist stores copies of tasks in the part of this hub.
func (r *Hubs) persist(ctx context.Context, all ...*arrival) error {
	ctx, cancel := context.WithTimeout(ctx, persistTime)
	defer cancel()
	var records []journal.Record
	for _, a := range all {
		rest, err := r.unstored(ctx, a)
		if err != nil {
			return err
		}
		records = append(records, rest...)
		if !r.mayCopy(a) {
			return errTakenBack
		}
	}
	if len(records) == 0 {
		return nil
	}
	return r.shared.Append(ctx, records...)
}

// mayCopy notes that this hub may have a copy of a task from now on, unless it has taken the task back, or the task
// does not come any more.
func (r *Hubs) mayCopy(a *arrival) bool {
	r.Lock()
	defer r.Unlock()
	id := a.task.ID()
	if !a.task.IsRemote() || r.arriving[id] != a {
		return false
	}
	r.copied[id] = a
	return true
}

// endCopy stores an end of the copy of a task that did not move here. The copy does not count, but a
// takeover of this hub reads its part from the first task without an end on. If its end cannot be stored,
// the copy ends with this life, as others do.
func (r *Hubs) endCopy(ctx context.Context, a *arrival) {
	id := a.task.ID()
	kept, err := r.readCopy(ctx, id, a.record().Seq-1)
	var gap *journal.GapError
	switch none := errors.Is(err, journal.ErrUnknown); {
	case err != nil && !none && !errors.As(err, &gap):
		r.Go(func(ctx context.Context) {
			if timer.Sleep(ctx, settleAgain) == nil {
				r.endCopySoon(a)
			}
		})
		return
	case len(kept) == 1 && isSame(kept[0], a.record()): // else nothing, or another course that may count
		ctx, cancel := context.WithTimeout(ctx, persistTime)
		defer cancel()
		why := core.NewFault(core.CodeUnreachable, "the task was to move to hub %s, and did not: ask again", r.name)
		_ = r.shared.Append(ctx, task.EndOf(journal.Head{Task: id, Last: kept[0]}, why))
	case none:
		r.Lock()
		if r.copied[id] == a {
			delete(r.copied, id)
		}
		r.Unlock()
	}
	r.Lock()
	a.closed = true
	unstored := a.unstored
	r.Unlock()
	if unstored {
		r.endUnstored(a.task)
	}
}

// readCopy returns what the part of this hub has of a task after a sequence number.
func (r *Hubs) readCopy(ctx context.Context, id core.TaskID, after uint64) ([]core.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, persistTime)
	defer cancel()
	return r.shared.Read(ctx, id, after, 0)
}

// endCopySoon has the copy of a task that does not come ended.
func (r *Hubs) endCopySoon(a *arrival) {
	select {
	case r.rejected <- a:
	default: // the copy stays open until this life ends
	}
}

// waitsForCopy reports whether a task of which its owner has stored nothing ends later: once it is known whether this
// hub has stored a copy of it, since it was to come here.
func (r *Hubs) waitsForCopy(t *task.Task) bool {
	r.Lock()
	a := r.copied[t.ID()]
	if a == nil || a.closed {
		r.Unlock()
		return false
	}
	a.unstored = true
	coming := r.arriving[t.ID()]
	r.Unlock()
	if coming == nil {
		r.endCopySoon(a)
	} else {
		r.passBuffered(t, r.reject(coming))
	}
	return true
}

var (
	errOtherCopy = errors.New("this hub has stored another course of the task, which did not come to count")
	errTakenBack = errors.New("the task does not come here any more: it was taken back, or goes on elsewhere")
	errTooLate   = errors.New("others were stored before it for so long that the hub which has it waits no more")
)

// unstored returns what the part of this hub lacks of a task that moves here. It has the beginning if
// it has owned the task before, and another course of it if the task was to move here before and did
// not: that cannot be mended.
func (r *Hubs) unstored(ctx context.Context, a *arrival) (all []journal.Record, err error) {
	id := a.task.ID()
	kept, err := r.shared.Read(ctx, id, 0, 0)
	var gap *journal.GapError
	if err != nil && !errors.Is(err, journal.ErrUnknown) && !errors.As(err, &gap) {
		return nil, err
	}
	last := core.Event{}
	if len(kept) > 0 {
		last = kept[len(kept)-1]
		i := slices.IndexFunc(a.Events, func(e core.Event) bool { return e.Seq == last.Seq })
		if i < 0 || !isSame(a.Events[i], last) {
			return nil, errOtherCopy
		}
	}
	for _, e := range a.Events {
		if e.Seq <= last.Seq {
			continue
		}
		if r.Redact != nil {
			e = r.Redact().Event(e)
		}
		all = append(all, journal.Record{Task: id, Event: e})
	}
	return all, nil
}

// isSame reports whether two events with one number are of one course of a task.
func isSame(a, b core.Event) bool {
	one, _ := a.Body.(core.Retrying)
	other, _ := b.Body.(core.Retrying)
	return a.Epoch == b.Epoch && a.Body.Kind() == b.Body.Kind() && a.At.Equal(b.At) && one.Hub == other.Hub
}

// accept runs a task whose copy has the record of its transfer here. It does nothing for any other, and
// rejects one that goes on elsewhere.
func (r *Hubs) accept(t *task.Task) {
	r.Lock()
	a := r.arriving[t.ID()]
	if a == nil {
		r.Unlock()
		return
	}
	record := a.record()
	if r.Tasks.Arrive(t, record) {
		held := r.own(a)
		r.Unlock()
		r.run(a, held)
		return
	}
	r.Unlock()
	last := t.Last() // of an epoch before: it was said and not stored
	if t.HasEnded() || last.Epoch > record.Epoch || last.Epoch == record.Epoch && last.Seq >= record.Seq {
		r.passBuffered(t, r.reject(a))
	}
}

// own makes this hub the owner of a task that was transferred here, and returns the commands that have waited. Callers
// hold the lock, since before the task was this hub's: it may end at once.
func (r *Hubs) own(a *arrival) (held []core.Call) {
	r.Resume(a.task, hub.Resumption{From: a.From, Tried: a.Tried, Opener: r.standFor(cmp.Or(a.Opener, r.name)), Keep: a.Keep, Stored: a.record().Seq})
	r.came(a.task.ID()) // else it was shown here before
	delete(r.arriving, a.task.ID())
	delete(r.copied, a.task.ID())
	r.Coming(len(r.arriving))
	r.Count("move.arrived")
	return a.held
}

// run gives a task that was transferred here to an agent, and executes the commands that have waited.
func (r *Hubs) run(a *arrival, held []core.Call) {
	why := core.NewFault(core.CodeUnreachable, "no agent took the task where it has moved: ask again")
	if b, ok := a.record().Body.(core.Retrying); ok && b.Fault != nil {
		why = b.Fault
	}
	r.Continue(a.task, why, a.from != "") // a hub that handed it over has chosen this one: it does not go back for a shorter queue
	if len(held) == 0 {
		return
	}
	r.Lock()
	standIn := r.standFor(r.name)
	r.Unlock()
	for _, c := range held {
		_ = standIn.Perform(c) // it may have ended
	}
}

// buffer keeps a command on a task that is on its way here, and reports whether it is. Callers hold the lock.
func (r *Hubs) buffer(c core.Call, t *task.Task) (bool, error) {
	a := r.arriving[t.ID()]
	if a == nil {
		return false, nil
	}
	if len(a.held) >= mostBuffered {
		return true, core.NewFault(core.CodeOverloaded, "task %s moves to another hub, and %d commands wait for it: ask again in a moment", t.ID(), mostBuffered)
	}
	a.held = append(a.held, c)
	return true, nil
}

// passBuffered passes commands on a task that has not come to its owner.
func (r *Hubs) passBuffered(t *task.Task, held []core.Call) {
	for _, c := range held {
		if !t.HasEnded() {
			_ = r.pass(c, t, "") // its owner may be gone, and its end comes with it
		}
	}
}
