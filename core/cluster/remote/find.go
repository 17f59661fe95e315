package remote

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/task"
)

// Find implements [hub.Remote]. Of a hub that runs it asks the owner first, and reads the journal
// only for tasks of this hub and of those that are gone.
func (r *Hubs) Find(ctx context.Context, id core.TaskID) (*task.Task, error) {
	first, remote := r.ownerOf(task.OwnerOf(id))
	if !remote {
		t, err := r.Here(ctx, id)
		switch {
		case errors.Is(err, unknownTask):
			return r.findTakenBack(ctx, id)
		case err != nil || t.Owner() == "" || t.Last().Body.Kind().Ends():
			return t, err
		}
		first = t.Owner() // it was transferred
	}
	t, err := r.ask(ctx, first, id)
	if t != nil {
		return t, nil
	}
	if errors.Is(err, unknownTask) {
		return r.findTakenBack(ctx, id)
	}
	found, owner, late := r.findStored(ctx, id)
	switch o := r.view.get(first); {
	case errors.Is(late, unknownTask) && !(o.gone && o.taken):
		return nil, err // its owner may have it, and not have stored it yet
	case errors.Is(late, unknownTask):
		return r.findTakenBack(ctx, id)
	case late != nil:
		return nil, late
	case found.Last().Body.Kind().Ends():
		return found, nil
	case owner != first:
		return r.ask(ctx, owner, id)
	}
	return nil, err // nobody has ended it yet
}

// findTakenBack is find for a task that its owner does not have. The hub that has opened it may have taken it back, or
// be about to: then it returns an unreachable Fault. An id from before this hub was in a cluster, or one that never
// was, has any index.
func (r *Hubs) findTakenBack(ctx context.Context, id core.TaskID) (*task.Task, error) {
	maker, remote := r.makerOf(id)
	waits := false // for what that hub makes of it
	if remote && r.shared != nil {
		o := r.view.get(maker)
		if waits = o.gone && !o.taken; o.up {
			has, err := hub.AdoptedMethod.Ask(ctx, r, maker, hub.PartPrincipal, id)
			waits = has || err != nil && core.AsFault(err).Retryable // else it never says
		}
		switch t, owner, err := r.findStored(ctx, id); {
		case errors.Is(err, unknownTask):
		case err == nil && !t.Last().Body.Kind().Ends() && owner != r.name: // it has come to its owner since
			return r.ask(ctx, owner, id)
		default:
			return t, err
		}
	}
	t, err := r.Here(ctx, id)
	if waits && errors.Is(err, unknownTask) {
		return nil, core.NewFault(core.CodeUnreachable, "hub %s has opened task %s and has not said yet what has become of it: ask again in a moment", maker, id)
	}
	return t, err
}

// findStored is find in the journal alone. It returns the hub that owns the task by the journal.
func (r *Hubs) findStored(ctx context.Context, id core.TaskID) (t *task.Task, owner string, err error) {
	if r.shared == nil {
		return nil, "", core.NewFault(core.CodeUnreachable, "the hub that has task %s is not here: ask again in a moment", id)
	}
	t, err = r.Tasks.Find(id, func() (events []core.Event, err error) {
		events, owner, err = r.stored(ctx, id)
		return events, err
	})
	return t, owner, err
}

// stored returns what the journal has of a task: what its first owner has stored, or the hub that has
// taken it back, and, where that says that the task has moved, what the next one has stored after that, and so
// on. It returns the last one, too, and the errors of [journal.Journal.Read].
func (r *Hubs) stored(ctx context.Context, id core.TaskID) (all []core.Event, owner string, err error) {
	owner, remote := r.ownerOf(task.OwnerOf(id))
	if !remote {
		owner = r.name
	}
	part, err := r.shared.ReadOf(ctx, owner, id, 0, 0)
	if maker, _ := r.makerOf(id); maker != "" && errors.Is(err, journal.ErrUnknown) {
		owner = maker
		if part, err = r.shared.ReadOf(ctx, owner, id, 0, 0); goesTo(part) == owner {
			return nil, owner, journal.ErrUnknown // a copy of a task that was to move there, and did not
		}
	}
	var gap *journal.GapError
	for {
		var lacks *journal.GapError
		switch {
		case errors.As(err, &lacks):
			gap = cmp.Or(gap, lacks)
		case errors.Is(err, journal.ErrUnknown) && len(all) > 0: // it has not run there yet
		case err != nil:
			return nil, owner, err
		}
		n := slices.IndexFunc(part, func(e core.Event) bool { to := goesTo([]core.Event{e}); return to != "" && to != owner })
		if n < 0 {
			all = append(all, part...)
			break
		}
		all = append(all, part[:n+1]...)
		owner = goesTo(part[n:])
		part, err = r.shared.ReadOf(ctx, owner, id, part[n].End(), 0)
	}
	if gap != nil {
		return all, owner, gap
	}
	return all, owner, nil
}

// goesTo returns the hub to which a task is transferred first; "" if it is not.
func goesTo(events []core.Event) string {
	for _, e := range events {
		if b, ok := e.Body.(core.Retrying); ok && b.Hub != "" {
			return b.Hub
		}
	}
	return ""
}

// ask asks another hub for a task, and waits until it has said something of it or is gone. It
// returns an unknown_task Fault if that hub does not know it.
func (r *Hubs) ask(ctx context.Context, hub string, id core.TaskID) (*task.Task, error) {
	f, err := r.fetch(hub, id)
	if err != nil {
		return nil, err
	}
	select {
	case <-f.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if t := r.Tasks.Get(id); t != nil {
		return t, nil
	}
	return nil, cmp.Or(f.gone, error(task.Unknown(id)))
}

// fetched is a task that somebody waits for.
type fetched struct {
	from string        // the hub that was asked
	done chan struct{} // closed once that has said something of it, or is gone
	gone error         // that it is gone; nil if it has said something
}

// fetch asks a hub for the events of a task, unless somebody has.
func (r *Hubs) fetch(hub string, id core.TaskID) (*fetched, error) {
	r.Lock()
	defer r.Unlock()
	f := r.fetched[id]
	if f == nil {
		if !r.view.get(hub).up { // else nobody would wake who waits: see [Hubs.HubGone]
			return nil, core.NewFault(core.CodeUnreachable, "hub %s is not connected: ask again in a moment", hub)
		}
		if o := r.view.get(hub); o.isSilent() {
			return nil, notHeard(hub)
		}
		if err := r.links.Follow(hub, id, core.Cursor{}); err != nil {
			return nil, err
		}
		f = &fetched{from: hub, done: make(chan struct{})}
		r.fetched[id] = f
	}
	return f, nil
}

// wake wakes those who wait for a task of another hub. Callers hold the lock.
func (r *Hubs) wake(id core.TaskID, gone error) {
	if f := r.fetched[id]; f != nil {
		f.gone = gone
		close(f.done)
		delete(r.fetched, id)
	}
}

// arrived wakes those who wait for a task of another hub.
func (r *Hubs) arrived(id core.TaskID) {
	r.Lock()
	defer r.Unlock()
	r.wake(id, nil)
	r.came(id)
}

// readStored returns what the hubs have stored of a task, without what is missing.
func (r *Hubs) readStored(ctx context.Context, id core.TaskID) ([]core.Event, error) {
	if r.shared == nil {
		return nil, journal.ErrUnknown
	}
	events, _, err := r.stored(ctx, id)
	return events, err
}

// own is the part of this hub in the journal, as far as it counts: without copies of tasks that were to come here
// and did not, and with what other hubs have stored of those that have gone on there.
type own struct {
	journal.Shared
	hubs *Hubs
}

// Journal returns the journal for the engine of this hub.
func (r *Hubs) Journal() journal.Journal { return own{r.shared, r} }

// Heads implements [journal.Journal].
func (o own) Heads(ctx context.Context, yield func(journal.Head) bool) error {
	var copies []journal.Record
	err := o.Shared.Heads(ctx, func(head journal.Head) bool {
		switch {
		case hasLeft(head, o.hubs.name):
			return true
		case o.hubs.owns(ctx, head):
			return yield(head)
		case head.End == 0: // it has its end, should the record of its transfer be stored yet
			copies = append(copies, task.EndOf(head, core.NewFault(core.CodeUnreachable, "the hub stopped while the task was on its way there: ask again")))
		}
		return true
	})
	if err != nil {
		return err
	}
	return o.Append(ctx, copies...)
}

// Read implements [journal.Journal].
func (o own) Read(ctx context.Context, id core.TaskID, after uint64, limit int) ([]core.Event, error) {
	events, err := o.Shared.Read(ctx, id, after, limit)
	if after > 0 || limit > 0 || !slices.ContainsFunc(events, isTransfer) {
		return events, err
	}
	events, _, err = o.hubs.stored(ctx, id)
	return events, err
}

// IsTemporary implements [journal.Replicated].
func (o own) IsTemporary(err error) bool {
	j, ok := o.Shared.(journal.Replicated)
	return ok && j.IsTemporary(err)
}

// owns reports whether a task in the part of this hub is its own, and not one that was to be transferred here
// and was not.
func (r *Hubs) owns(ctx context.Context, head journal.Head) bool {
	_, remote := r.ownerOf(task.OwnerOf(head.Task))
	came := head.Last.Body != nil && isTransfer(head.Last) // it has not ended
	if !remote && !came {
		return true
	}
	_, owner, err := r.stored(ctx, head.Task)
	if errors.Is(err, journal.ErrUnknown) { // one from before this hub was in a cluster has any index
		events, _ := r.shared.Read(ctx, head.Task, 0, 0)
		return !slices.ContainsFunc(events, isTransfer)
	}
	return err != nil || owner == r.name
}
