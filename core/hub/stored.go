package hub

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/task"
)

// find returns a task of any hub. Of a hub that runs it asks the owner first, and reads the journal
// only for tasks of this hub and of those that are gone. It may wait for either.
func (h *Hub) find(ctx context.Context, id core.TaskID) (*task.Task, error) {
	t := h.tasks.Get(id)
	if t != nil {
		return t, nil
	}
	h.mu.Lock()
	first, foreign := h.ownerOf(task.OwnerOf(id))
	h.mu.Unlock()
	if !foreign {
		t, err := h.findHere(ctx, id)
		switch {
		case errors.Is(err, unknownTask):
			return h.findTakenBack(ctx, id)
		case err != nil || t.Owner() == "" || t.Last().Body.Kind().Ends():
			return t, err
		}
		first = t.Owner() // it has moved
	}
	t, err := h.ask(ctx, first, id)
	if t != nil {
		return t, nil
	}
	if errors.Is(err, unknownTask) {
		return h.findTakenBack(ctx, id)
	}
	found, owner, late := h.findStored(ctx, id)
	switch {
	case errors.Is(late, unknownTask):
		return h.findTakenBack(ctx, id)
	case late != nil:
		return nil, late
	case found.Last().Body.Kind().Ends():
		return found, nil
	case owner != first:
		return h.ask(ctx, owner, id)
	}
	return nil, err // nobody has ended it yet
}

// findTakenBack is find for a task that its owner does not have. The hub that has opened it may have taken it back, or
// be about to: then it returns an unreachable Fault. An id from before this hub was in a cluster, or one that never
// was, has any index.
func (h *Hub) findTakenBack(ctx context.Context, id core.TaskID) (*task.Task, error) {
	maker, elsewhere := h.makerOf(id)
	waits := false // for what that hub makes of it
	if elsewhere && h.shared != nil {
		h.mu.Lock()
		up := h.others.up[maker]
		taken, gone := h.others.gone[maker]
		h.mu.Unlock()
		if waits = gone && !taken; up {
			has, err := adoptedInquiry.ask(ctx, h, maker, componentPrincipal, id)
			waits = has || err != nil && core.AsFault(err).Retryable // else it never says
		}
		switch t, owner, err := h.findStored(ctx, id); {
		case errors.Is(err, unknownTask):
		case err == nil && !t.Last().Body.Kind().Ends() && owner != h.others.name: // it has come to its owner since
			return h.ask(ctx, owner, id)
		default:
			return t, err
		}
	}
	t, err := h.findHere(ctx, id)
	if waits && errors.Is(err, unknownTask) {
		return nil, core.NewFault(core.CodeUnreachable, "hub %s has opened task %s and has not said yet what has become of it: ask again in a moment", maker, id)
	}
	return t, err
}

// findHere is find for what this hub has in memory or in its part of the journal. A task that moves is
// read as far as it counts: this hub may have stored a course of it that was to come here and did not.
func (h *Hub) findHere(ctx context.Context, id core.TaskID) (*task.Task, error) {
	return h.tasks.Find(id, func() ([]core.Event, error) {
		events, err := h.journal.Read(ctx, id, 0, 0)
		if h.shared == nil || !slices.ContainsFunc(events, isMove) {
			return events, err
		}
		events, _, err = h.stored(ctx, id)
		return events, err
	})
}

// findStored is find in the journal alone. It returns the hub that owns the task by the journal.
func (h *Hub) findStored(ctx context.Context, id core.TaskID) (t *task.Task, owner string, err error) {
	if h.shared == nil {
		return nil, "", core.NewFault(core.CodeUnreachable, "the hub that has task %s is not here: ask again in a moment", id)
	}
	t, err = h.tasks.Find(id, func() (events []core.Event, err error) {
		events, owner, err = h.stored(ctx, id)
		return events, err
	})
	return t, owner, err
}

// stored returns what the journal has of a task: what its first owner has stored, or the hub that has
// taken it back, and, where that says that the task has moved, what the next one has stored after that, and so
// on. It returns the last one, too, and the errors of [journal.Journal.Read].
func (h *Hub) stored(ctx context.Context, id core.TaskID) (all []core.Event, owner string, err error) {
	h.mu.Lock()
	owner, foreign := h.ownerOf(task.OwnerOf(id))
	h.mu.Unlock()
	if !foreign {
		owner = h.others.name
	}
	part, err := h.shared.ReadOf(ctx, owner, id, 0, 0)
	if maker, _ := h.makerOf(id); maker != "" && errors.Is(err, journal.ErrUnknown) {
		owner = maker
		if part, err = h.shared.ReadOf(ctx, owner, id, 0, 0); movedTo(part) == owner {
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
		n := slices.IndexFunc(part, func(e core.Event) bool { to := movedTo([]core.Event{e}); return to != "" && to != owner })
		if n < 0 {
			all = append(all, part...)
			break
		}
		all = append(all, part[:n+1]...)
		owner = movedTo(part[n:])
		part, err = h.shared.ReadOf(ctx, owner, id, part[n].End(), 0)
	}
	if gap != nil {
		return all, owner, gap
	}
	return all, owner, nil
}

// movedTo returns the hub to which a task moves first; "" if it does not move.
func movedTo(events []core.Event) string {
	for _, e := range events {
		if b, ok := e.Body.(core.Retrying); ok && b.Hub != "" {
			return b.Hub
		}
	}
	return ""
}

// ask asks another hub for a task, and waits until it has said something of it or is gone. It
// returns an unknown_task Fault if that hub does not know it.
func (h *Hub) ask(ctx context.Context, hub string, id core.TaskID) (*task.Task, error) {
	f, err := h.fetch(hub, id)
	if err != nil {
		return nil, err
	}
	select {
	case <-f.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if t := h.tasks.Get(id); t != nil {
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
func (h *Hub) fetch(hub string, id core.TaskID) (*fetched, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.others.fetched[id]
	if f == nil {
		if !h.others.up[hub] { // else nobody would wake who waits: see [Hub.HubGone]
			return nil, core.NewFault(core.CodeUnreachable, "hub %s is not connected: ask again in a moment", hub)
		}
		if h.isSilent(hub) {
			return nil, notHeard(hub)
		}
		if err := h.others.peers.Follow(hub, id, core.Cursor{}); err != nil {
			return nil, err
		}
		f = &fetched{from: hub, done: make(chan struct{})}
		h.others.fetched[id] = f
	}
	return f, nil
}

// wake wakes those who wait for a task of another hub. Callers hold mu.
func (h *Hub) wake(id core.TaskID, gone error) {
	if f := h.others.fetched[id]; f != nil {
		f.gone = gone
		close(f.done)
		delete(h.others.fetched, id)
	}
}

// arrived wakes those who wait for a task of another hub.
func (h *Hub) arrived(id core.TaskID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wake(id, nil)
	h.came(id)
}
