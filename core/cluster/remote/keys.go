package remote

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/rpc"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/timer"
)

// In a cluster, a request with a key is claimed by an entry of the KeyStore before it is acted on, which
// gets the task afterwards. So whichever hub dies, the others find the task there, or the life of the hub
// that may have opened one: once that is over, the journal tells, where the first event of the task has
// the key, and the hubs to which the task may have gone.

// KeyStore has an entry for each key, which all hubs of a cluster share. It drops one some time after its
// last write: not before the longest [hub.KeysOptions].Age.
type KeyStore interface {
	// Read returns an entry and its revision; zeros if there is none. It may return a former one.
	Read(ctx context.Context, name string) (text string, revision uint64, err error)

	// Write writes an entry if its revision is that one, 0 if there is none, and returns the next
	// revision; 0 if it is another one. A write may have been done although it returns 0 or an error.
	Write(ctx context.Context, name, text string, revision uint64) (next uint64, err error)
}

// claim says that a life of a hub acts on a request, or is about to, or has opened a task for it. The key
// of the zero claim is free.
type claim struct {
	Mark string       `json:"mark,omitempty"` // of the request
	Task core.TaskID  `json:"task,omitempty"`
	By   journal.Life `json:"by,omitzero"`
	// After is the newest task of the hub then: its task for the request is a newer one.
	After core.TaskID `json:"after,omitempty"`
}

func (c claim) text() string {
	text, _ := json.Marshal(c) // it never fails
	return string(text)
}

// entry is what this hub has written to the store, or may have: on the condition of that revision then.
type entry struct {
	name, text string
	revision   uint64
}

// Begin implements [hub.Requests].
func (r *Hubs) Begin(ctx context.Context, key, mark string) (before core.TaskID, note func(core.TaskID, func()), err error) {
	before, e, err := r.claimKey(ctx, key, mark)
	if e.name == "" {
		return before, func(_ core.TaskID, noted func()) { noted() }, err
	}
	return before, func(id core.TaskID, noted func()) {
		next := claim{Task: id}
		if id != "" {
			next.Mark = mark
		}
		r.Go(func(ctx context.Context) { // should this hub die before, the journal tells
			if r.replaceKey(ctx, e, next) {
				noted()
			}
		})
	}, err
}

// claimKey claims the key of a request. It returns the task of the request if there is one, else the entry
// with the claim, also with an error after which that may have been written.
func (r *Hubs) claimKey(ctx context.Context, key, mark string) (before core.TaskID, e entry, err error) {
	e = entry{name: key, text: claim{Mark: mark, By: r.shared.Life(), After: r.Tasks.Newest()}.text()}
	for {
		if err := r.CanRecord(); err != nil {
			return "", entry{}, err
		}
		next, err := r.keys.Write(ctx, e.name, e.text, e.revision)
		if err != nil || next != 0 {
			e.revision = max(e.revision, next)
			return "", e, err
		}
		if before, e.revision, err = r.awaitKey(ctx, mark, e.name); before != "" || err != nil {
			return before, entry{}, err
		}
	}
}

// awaitKey waits for hubs that are acting on a request, and returns its task, or the revision with which its
// key is free. It returns an error that wraps hub.ErrOtherContent if another request has the key.
func (r *Hubs) awaitKey(ctx context.Context, mark, name string) (before core.TaskID, revision uint64, err error) {
	const shortest, longest = 2 * time.Millisecond, 100 * time.Millisecond
	for pause := shortest; ; pause = min(2*pause, longest) {
		var c claim
		text, revision, err := r.keys.Read(ctx, name)
		if err == nil && text != "" {
			err = json.Unmarshal([]byte(text), &c)
		}
		if err == nil {
			before, err = r.taskOf(ctx, c)
		}
		switch {
		case err == nil && before != "" && c.Mark != mark:
			return "", 0, hub.OtherContent()
		case err == nil:
			return before, revision, nil
		case timer.Sleep(ctx, pause) != nil:
			return "", 0, err
		}
	}
}

// taskOf returns the task of a request by the claim of its key; "" if there is none, and none will come. It
// returns an error while that cannot be said.
func (r *Hubs) taskOf(ctx context.Context, c claim) (core.TaskID, error) {
	switch {
	case c.Task != "":
		lost, err := r.isLost(ctx, c.Task)
		if lost {
			return "", nil
		}
		return c.Task, err
	case c == claim{} || c.By == r.shared.Life(): // the caller alone acts on the key here
		return "", nil
	}
	return r.openedFor(ctx, c)
}

// replaceKey replaces an entry, unless another hub has. It reports false if ctx ends before.
func (r *Hubs) replaceKey(ctx context.Context, e entry, c claim) bool {
	for {
		next, err := r.keys.Write(ctx, e.name, c.text(), e.revision)
		if err == nil && next != 0 {
			return true
		}
		text, revision, err := r.keys.Read(ctx, e.name)
		switch {
		case err == nil && text == e.text: // it was written and not acknowledged
			e.revision = revision
		case err == nil && (revision > e.revision || revision == 0 && e.revision > 0): // another hub has, or its time is over
			return true
		}
		if timer.Sleep(ctx, settleAgain) != nil {
			return false
		}
	}
}

// isLost reports whether a task that a hub has told of is not there any more. It waits for the owner
// or the journal, and returns an error as long as nobody can tell.
func (r *Hubs) isLost(ctx context.Context, id core.TaskID) (bool, error) {
	_, err := r.find(ctx, id)
	if !errors.Is(err, unknownTask) {
		return false, err
	}
	if l, _ := task.LineOf(id); l.Maker() != l.Owner() {
		maker, _ := r.At(l.Maker())
		all, _ := r.cluster.Hubs()
		if maker != r.name && slices.ContainsFunc(all, func(a cluster.Hub) bool { return a.Name == maker && a.State != cluster.Gone }) {
			return false, err // it may be on its way to its owner
		}
	}
	return true, nil
}

// openedMethod asks a hub for the task that a life of another one has opened for a request: it may have
// the task and not have stored it yet.
const openedMethod rpc.Method[claim, core.TaskID] = "keys.opened"

// openedHere is openedMethod at this hub. It returns an error while it may still get tasks of that life.
func (r *Hubs) openedHere(c claim) (core.TaskID, error) {
	all, _ := r.cluster.Hubs()
	if r.view.get(c.By.Hub).up && slices.ContainsFunc(all, func(a cluster.Hub) bool { return a.Name == c.By.Hub && a.Epoch <= c.By.Epoch }) {
		return "", notOver
	}
	for _, t := range r.Tasks.InMemory() {
		if t.Key() == c.Mark && t.ID() > c.After {
			return t.ID(), nil
		}
	}
	return "", nil
}

// openedFor returns the task that the life with a claim has opened; "" if it has opened none, and will not.
// It returns an error while nobody can tell. A task of a life is in the part of its hub, or in that of the
// hub to which it went.
func (r *Hubs) openedFor(ctx context.Context, c claim) (core.TaskID, error) {
	if err := r.isOver(ctx, c.By); err != nil {
		return "", err
	}
	all, _ := r.cluster.Hubs()
	for _, at := range all {
		id, err := r.hasOpened(ctx, at, c)
		if err != nil {
			return "", err
		}
		if id != "" {
			if lost, err := r.isLost(ctx, id); err != nil || !lost {
				return id, err
			}
		}
	}
	return "", nil
}

// hasOpened is openedFor for what one hub has: in memory first, since it may not have stored it yet. What it
// had in memory is gone once its own life is over.
func (r *Hubs) hasOpened(ctx context.Context, at cluster.Hub, c claim) (id core.TaskID, err error) {
	switch {
	case at.Name == c.By.Hub:
	case at.Name == r.name:
		id, err = r.openedHere(c)
	case at.State == cluster.Gone:
		err = r.isOver(ctx, at.Life())
	default:
		id, err = openedMethod.Ask(ctx, r, at.Name, hub.PartPrincipal, c)
	}
	if err != nil || id != "" {
		return id, err
	}
	err = r.shared.HeadsOf(ctx, at.Name, func(head journal.Head) bool {
		if head.Key == c.Mark && head.Task > c.After {
			id = head.Task
		}
		return id == ""
	})
	return id, err
}

// notOver says that a life may still open tasks.
var notOver = core.NewFault(core.CodeUnreachable, "another hub may still act on the request")

// isOver returns an error unless nothing more of a life can be stored.
func (r *Hubs) isOver(ctx context.Context, l journal.Life) error {
	now, by, err := r.shared.LifeOf(ctx, l.Hub)
	if err == nil && now.Epoch <= l.Epoch && (now != l || by == journal.Life{}) {
		return notOver
	}
	return err
}
