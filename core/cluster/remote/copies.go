package remote

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/rpc"
	"github.com/dragoman-hub/dragoman/core/task"
)

// copiesOf returns the copies of the tasks of a hub that have not ended.
func (r *Hubs) copiesOf(name string) (all []*task.Task) {
	for _, t := range r.Tasks.InMemory() {
		if owner, _ := r.owner(t); owner == name && t.IsRemote() && !t.HasEnded() {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b *task.Task) int { return cmp.Compare(a.ID(), b.ID()) })
	return all
}

// Extend appends events that the owner of a task has sent to the copy of it. It makes a copy if there
// is none. Where events before them have not come, it asks the owner again.
func (r *Hubs) Extend(id core.TaskID, events []core.Event) { r.extendWith(id, events, r.hear) }

// extendWith is [Hubs.Extend] by extend: [Hubs.hear] for what the owner has sent, [Hubs.extend] for what the journal
// has.
func (r *Hubs) extendWith(id core.TaskID, events []core.Event, extend func(*task.Task, []core.Event)) {
	if len(events) == 0 {
		return
	}
	t := r.Tasks.Remote(id, events[0])
	if !t.IsRemote() {
		r.Count("mirror.own")
		return
	}
	extend(t, events)
	r.arrived(id)
}

// Unknown says that a hub does not know a task: neither was it told of the task, nor has a life of it
// before stored anything. A copy of its task ends then.
func (r *Hubs) Unknown(by string, id core.TaskID) {
	if t := r.Tasks.Get(id); t != nil && t.IsRemote() {
		if owner, _ := r.owner(t); owner == by {
			r.endUnstored(t)
		}
	}
	r.arrived(id)
}

// IfUnknown calls deny, which must not wait, unless the hub has the task by now, and reports whether it
// has called it. What is sent of the task from then on, such as its transfer to another hub, is sent after
// what deny sends.
func (r *Hubs) IfUnknown(id core.TaskID, deny func()) bool {
	r.Lock()
	defer r.Unlock()
	if r.Tasks.Get(id) != nil {
		return false
	}
	deny()
	return true
}

// extend appends events that the journal has to a copy.
func (r *Hubs) extend(t *task.Task, events []core.Event) {
	before := t.Owner()
	r.extended(t, events, before, t.Extend(events))
}

// hear appends events that its owner has sent to a copy.
func (r *Hubs) hear(t *task.Task, events []core.Event) {
	before := t.Owner()
	ended, lacks := t.Hear(events)
	r.extended(t, events, before, ended)
	if !lacks {
		return
	}
	r.Count("mirror.lacks")
	r.Lock()
	defer r.Unlock()
	if owner, remote := r.owner(t); remote {
		_ = r.links.Follow(owner, t.ID(), t.Cursor())
	}
}

// extended does what follows from new events of a copy. Where they say that the task has left the
// owner before, it is run here, or followed there.
func (r *Hubs) extended(t *task.Task, events []core.Event, before string, ended bool) {
	r.accept(t)
	if ended {
		r.Lock()
		delete(r.cancels, t.ID())
		delete(r.copied, t.ID())
		r.Unlock()
		r.RemoteEnded(t)
		return
	}
	if now := t.Owner(); now != before {
		r.followOn(t, before, now)
	}
	if slices.ContainsFunc(events, isTransfer) {
		r.cancelAgain(t)
	}
}

func isTransfer(e core.Event) bool {
	b, ok := e.Body.(core.Retrying)
	return ok && b.Hub != ""
}

// cancelAgain repeats the cancel of a task that was transferred, if the hub that had it was gone before it
// stored the cancel.
func (r *Hubs) cancelAgain(t *task.Task) {
	r.Lock()
	c, ok := r.cancels[t.ID()]
	if !t.IsRemote() {
		delete(r.cancels, t.ID())
	}
	standIn := r.standFor(r.name)
	r.Unlock()
	switch {
	case !ok || t.IsCancelling():
	case t.IsRemote():
		_ = r.pass(c, t, "") // the next owner may be gone, too: then the task goes on again, or ends
	default:
		_ = standIn.Perform(c)
	}
}

// followOn follows a task at the hub where it goes on, and no more at the one before.
func (r *Hubs) followOn(t *task.Task, from, to string) {
	r.Lock()
	defer r.Unlock()
	if from == "" {
		from, _ = r.ownerOf(task.OwnerOf(t.ID()))
	}
	if from != "" && from != r.name {
		_ = r.links.Leave(from, t.ID()) // else that hub is gone
	}
	switch {
	case to == r.name && (!t.IsRemote() || r.arriving[t.ID()] != nil):
	case to == r.name: // the life of this hub that had it is over
		r.view.change(to, func(o *other) { o.gone, o.taken = true, true })
		r.settleSoon()
	case r.view.get(to).gone:
		r.settleSoon()
	default:
		r.follow(to, t)
	}
}

// FollowTask makes a session that stands for another hub a reader of a task from after a cursor or, if that says
// nothing here, from its first event. It begins again there if the session reads the task: the other hub may have lost
// what it had. FollowTask returns an unknown_task Fault if there is no such task, and any other error if that
// cannot be said now; it may wait for the journal.
func (r *Hubs) FollowTask(ctx context.Context, s *hub.Session, id core.TaskID, after core.Cursor) error {
	t, err := r.Here(ctx, id)
	if errors.Is(err, unknownTask) && r.hasCopy(ctx, id) {
		return notTransferred(r.name, id)
	}
	if err != nil {
		return err
	}
	last := t.Last()
	if read := t.HasEnded() && !last.Body.Kind().Ends(); read && (!isTransfer(last) || last.Cursor().Compare(after) < 0) {
		return notTransferred(r.name, id) // the other hub may know more than the journal says yet
	}
	if s.Watch(t, after, nil) != nil {
		err = s.Watch(t, core.Cursor{}, nil) // a copy drops what it has
	}
	return err
}

var unknownTask = &core.Fault{Code: core.CodeUnknownTask}

// notTransferred is returned for a task of which this hub has a copy, and of which the journal does not say
// yet that it goes on here: the hub that had it may not have stored that.
func notTransferred(hub string, id core.TaskID) error {
	return core.NewFault(core.CodeUnreachable, "the journal does not say yet that task %s has moved to hub %s: ask again in a moment", id, hub)
}

// hasCopy reports whether the part of this hub has a task that was to come here.
func (r *Hubs) hasCopy(ctx context.Context, id core.TaskID) bool {
	if r.shared == nil {
		return false
	}
	events, _ := r.shared.Read(ctx, id, 0, 0)
	return slices.ContainsFunc(events, isTransfer)
}

// Open implements [hub.Remote].
func (r *Hubs) Open(to string, o hub.Opening) error { return r.links.Open(to, o) }

// commandMethod asks the owner of a task for a command that passed the door of the hub where it was given.
const commandMethod rpc.Method[core.Call, struct{}] = "task.command"

// Do implements [hub.Remote].
func (r *Hubs) Do(ctx context.Context, c core.Call, t *task.Task, from string) error {
	if ctx.Err() != nil || c.Command.Act() == core.ActCancel {
		return r.pass(c, t, from)
	}
	owner, ok := r.owner(t)
	if !ok {
		return noOwner(t)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, rpc.AnswerTime, core.NewFault(core.CodeUnreachable, "hub %s, which has task %s, has not said in time what became of that: read the task before you send it again", owner, t.ID()))
	defer cancel()
	_, err := commandMethod.Ask(ctx, r, owner, c.Principal, c)
	return err
}

// pass passes a command on a copy to its owner; from is the hub that has passed it here, or "". One on a
// task that is on its way here waits for it.
func (r *Hubs) pass(c core.Call, t *task.Task, from string) error {
	r.Lock()
	defer r.Unlock()
	if _, ok := c.Command.(core.Cancel); ok && !t.HasEnded() {
		r.cancels[t.ID()] = c
	}
	if held, err := r.buffer(c, t); held {
		return err
	}
	owner, ok := r.owner(t)
	if !ok {
		return noOwner(t)
	}
	if owner == from { // each believes that the other has it
		return core.NewFault(core.CodeUnreachable, "task %s is on its way between hubs: ask again in a moment", t.ID())
	}
	return r.links.Do(owner, c)
}

func noOwner(t *task.Task) error {
	return core.NewFault(core.CodeUnreachable, "the hub that has task %s is not here", t.ID())
}

// standFor returns the session that stands for another hub or, if that is not connected, one of the
// hub's own. Callers hold the lock.
func (r *Hubs) standFor(name string) *hub.Session {
	if name != r.name {
		if s := r.SessionOf(name); s != nil {
			return s
		}
	}
	if r.standIn == nil {
		r.standIn = r.NewSession(hub.Identity{
			Principal: core.Principal{ID: core.PartPrefix + r.name, Operator: true, Component: true}, Keep: true, Checked: true, Hub: cmp.Or(r.name, "?"),
		})
	}
	return r.standIn
}
