package remote

import (
	"cmp"
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
			defer noted()
			r.replaceKey(ctx, e, next)
		})
	}, err
}

// claimKey claims the key of a request. It returns the task of the request if there is one, else the entry
// with the claim. It waits for hubs that are acting on the request.
func (r *Hubs) claimKey(ctx context.Context, key, mark string) (before core.TaskID, e entry, err error) {
	mine := claim{Mark: mark, By: r.shared.Life(), After: r.Tasks.Newest()}.text()
	e = entry{name: key, text: mine}
	const shortest, longest = 2 * time.Millisecond, 100 * time.Millisecond
	for pause, free := shortest, true; ; pause = min(2*pause, longest) {
		if err := r.CanRecord(); err != nil {
			return "", entry{}, err
		}
		if free {
			next, err := r.keys.Write(ctx, e.name, mine, e.revision)
			if err != nil { // it may have been done
				return "", e, err
			}
			if next != 0 {
				e.revision = next
				return "", e, nil
			}
		}
		var text string
		if text, e.revision, err = r.keys.Read(ctx, e.name); err == nil {
			before, free, err = r.judgeKey(ctx, mark, text)
		}
		switch {
		case before != "" || errors.Is(err, hub.ErrOtherContent):
			return before, entry{}, err
		case free:
			continue
		}
		if timer.Sleep(ctx, pause) != nil {
			return "", entry{}, cmp.Or(err, context.Cause(ctx))
		}
	}
}

// judgeKey returns the task of a request by the entry of its key, or that the key is free. It returns an
// error while that cannot be said, and one that wraps hub.ErrOtherContent if another request has the key.
func (r *Hubs) judgeKey(ctx context.Context, mark, text string) (before core.TaskID, free bool, err error) {
	var c claim
	if text != "" {
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			return "", false, err
		}
	}
	switch {
	case c.Task != "":
		before = c.Task
		free, err = r.isLost(ctx, before)
	case c == claim{} || c.By == r.shared.Life(): // the caller alone acts on the key here
		return "", true, nil
	default:
		before, err = r.openedFor(ctx, c)
		free = before == ""
	}
	switch {
	case err != nil || free:
		return "", free && err == nil, err
	case c.Mark != mark:
		return "", false, hub.OtherContent()
	}
	return before, false, nil
}

// replaceKey replaces an entry, unless another hub has.
func (r *Hubs) replaceKey(ctx context.Context, e entry, c claim) {
	for {
		next, err := r.keys.Write(ctx, e.name, c.text(), e.revision)
		if err == nil && next != 0 {
			return
		}
		text, revision, err := r.keys.Read(ctx, e.name)
		switch {
		case err == nil && text == e.text: // it was written and not acknowledged
			e.revision = revision
		case err == nil && (revision > e.revision || revision == 0 && e.revision > 0): // another hub has, or its time is over
			return
		}
		if timer.Sleep(ctx, settleAgain) != nil {
			return
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
		if _, up := r.At(l.Maker()); up {
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
		return "", actsStill(c.By)
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
// hub to which it went: that is asked first, since it may not have stored it yet.
func (r *Hubs) openedFor(ctx context.Context, c claim) (core.TaskID, error) {
	if err := r.isOver(ctx, c.By); err != nil {
		return "", err
	}
	all, _ := r.cluster.Hubs()
	for _, at := range all {
		id, err := r.hasOpened(ctx, at, c)
		if err == nil && id == "" {
			err = r.shared.HeadsOf(ctx, at.Name, func(head journal.Head) bool {
				if head.Key == c.Mark && head.Task > c.After {
					id = head.Task
				}
				return id == ""
			})
		}
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

// hasOpened is openedFor for what a hub has in memory. That is nothing once its own life is over.
func (r *Hubs) hasOpened(ctx context.Context, at cluster.Hub, c claim) (core.TaskID, error) {
	switch {
	case at.Name == c.By.Hub:
		return "", nil
	case at.Name == r.name:
		return r.openedHere(c)
	case at.State == cluster.Gone:
		return "", r.isOver(ctx, at.Life())
	}
	return openedMethod.Ask(ctx, r, at.Name, hub.PartPrincipal, c)
}

// isOver returns an error unless nothing more of a life can be stored.
func (r *Hubs) isOver(ctx context.Context, l journal.Life) error {
	now, by, err := r.shared.LifeOf(ctx, l.Hub)
	if err == nil && now.Epoch <= l.Epoch && (now != l || by == journal.Life{}) {
		return actsStill(l)
	}
	return err
}

func actsStill(l journal.Life) *core.Fault {
	return core.NewFault(core.CodeUnreachable, "the life %s of a hub may still act on a request", l)
}
