package hub

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/task"
)

// Extend appends events that the owner of a task has sent to the mirror of it. It makes a mirror if there
// is none. Where events before them have not come, it asks the owner again.
func (h *Hub) Extend(id core.TaskID, events []core.Event) { h.extendWith(id, events, h.hear) }

// extendWith is [Hub.Extend] by extend: [Hub.hear] for what the owner has sent, [Hub.extend] for what the journal has.
func (h *Hub) extendWith(id core.TaskID, events []core.Event, extend func(*task.Task, []core.Event)) {
	if len(events) == 0 {
		return
	}
	t := h.tasks.Mirror(id, events[0])
	if !t.IsMirror() {
		h.Count("mirror.own")
		return
	}
	extend(t, events)
	h.arrived(id)
}

// Unknown says that a hub does not know a task: neither was it told of the task, nor has a life of it
// before stored anything. A mirror of its task ends then.
func (h *Hub) Unknown(by string, id core.TaskID) {
	if t := h.tasks.Get(id); t != nil && t.IsMirror() {
		h.mu.Lock()
		owner, _ := h.owner(t)
		h.mu.Unlock()
		if owner == by {
			h.endUnstored(t)
		}
	}
	h.arrived(id)
}

// IfUnknown calls deny, which must not wait, unless the hub has the task by now, and reports whether it
// has called it. What is sent of the task from then on, such as its handover to another hub, is sent after
// what deny sends.
func (h *Hub) IfUnknown(id core.TaskID, deny func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tasks.Get(id) != nil {
		return false
	}
	deny()
	return true
}

// extend appends events that the journal has to a mirror.
func (h *Hub) extend(t *task.Task, events []core.Event) {
	before := t.Owner()
	h.extended(t, events, before, t.Extend(events))
}

// hear appends events that its owner has sent to a mirror.
func (h *Hub) hear(t *task.Task, events []core.Event) {
	before := t.Owner()
	ended, lacks := t.Hear(events)
	h.extended(t, events, before, ended)
	if !lacks {
		return
	}
	h.Count("mirror.lacks")
	h.mu.Lock()
	defer h.mu.Unlock()
	if owner, elsewhere := h.owner(t); elsewhere {
		_ = h.others.peers.Follow(owner, t.ID(), t.Cursor())
	}
}

// extended does what follows from new events of a mirror. Where they say that the task has moved from the
// owner before, it is run here, or followed there.
func (h *Hub) extended(t *task.Task, events []core.Event, before string, ended bool) {
	h.arrive(t)
	if ended {
		h.mirrorEnded(t)
		return
	}
	if now := t.Owner(); now != before {
		h.followMoved(t, before, now)
	}
	if slices.ContainsFunc(events, isMove) {
		h.cancelAgain(t)
	}
}

func isMove(e core.Event) bool {
	b, ok := e.Body.(core.Retrying)
	return ok && b.Hub != ""
}

// cancelAgain repeats the cancel of a task that has moved, if the hub that had it was gone before it
// stored the cancel.
func (h *Hub) cancelAgain(t *task.Task) {
	h.mu.Lock()
	c, ok := h.others.cancels[t.ID()]
	standIn := h.standFor(h.others.name)
	h.mu.Unlock()
	switch {
	case !ok || t.IsCancelling():
	case t.IsMirror():
		_ = h.pass(c, t, "") // the next owner may be gone, too: then it moves again, or ends
	default:
		_ = standIn.Perform(c)
	}
}

// followMoved follows a task at the hub to which it has moved, and no more at the one before.
func (h *Hub) followMoved(t *task.Task, from, to string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if from == "" {
		from, _ = h.ownerOf(task.OwnerOf(t.ID()))
	}
	if from != "" && from != h.others.name {
		_ = h.others.peers.Leave(from, t.ID()) // else that hub is gone
	}
	_, gone := h.others.gone[to]
	switch {
	case to == h.others.name && (!t.IsMirror() || h.others.arriving[t.ID()] != nil):
	case to == h.others.name: // the life of this hub that had it is over
		h.others.gone[to] = true
		h.settleSoon()
	case gone:
		h.settleSoon()
	default:
		h.follow(to, t)
	}
}

// mirrorEnded lets go of a mirror that has its end.
func (h *Hub) mirrorEnded(t *task.Task) {
	h.mu.Lock()
	opener := h.mirrors[t.ID()]
	delete(h.mirrors, t.ID())
	h.returned(t)
	delete(h.others.cancels, t.ID())
	h.mu.Unlock()
	if opener != nil {
		opener.mu.Lock()
		delete(opener.opened, t)
		opener.mu.Unlock()
	}
	h.tasks.Retain(t)
}

// Adopt makes this hub the owner of a task that was opened at the hub of the session. The session
// becomes a reader of it. The task ends as failed if no agent of any hub gets it. Adopt reports false if this
// hub takes no tasks any more, or if the task comes long after its deadline: then it does not know the task.
func (s *Session) Adopt(o Opening) bool {
	h := s.hub
	opened, ok := o.Opened.Body.(core.Opened)
	if !ok {
		h.Count("peer.invalid")
		return true
	}
	if h.tasks.Get(opened.Task) != nil {
		return true // it came before, over a connection that was lost
	}
	if late := opened.Request.Deadline; !late.IsZero() && time.Since(late) > latestOpening { // the hub that opened it may have ended it
		return false
	}
	chain := policy.Chain{Hops: opened.Hops, Agents: opened.Chain}
	j := &job{Task: h.tasks.New(o.From, chain, opened.Request, opened.Trace, opened.Key), opener: s}
	if opened.DefaultDeadline {
		j.SetDefaultDeadline()
	}
	h.mu.Lock()
	if h.end.sealed { // one that drains finishes what the others sent before they knew
		h.mu.Unlock()
		return false
	}
	h.tasks.Adopt(j.Task, o.Opened, nil)
	h.jobs[j.ID()] = j
	h.admitted.Add(1)
	defer h.admitted.Done()
	h.enter(s, j, &core.Open{Keep: o.Keep})
	h.mu.Unlock()
	err := h.afford(j.Task)
	if err == nil {
		if err = h.begin(j, o.Private); err != nil && h.reroute(j, core.AsFault(err)) == nil {
			err = nil
		}
	}
	seen := uint64(1) // by the hub that opened it
	if err != nil {
		j.DropContent()
		h.refuse(j, err)
		seen = 0 // its mirror drops the content too
	}
	s.viewAfter(j.Task, seen, nil)
	h.record(j)
	return true
}

// Perform executes a command that passed the door of another hub, in the name of its principal. It does
// not wait.
func (s *Session) Perform(c core.Call) error {
	_, err := s.hub.do(NoWait, s, c, nil)
	return err
}

// FollowTask makes the session a reader of a task from after a cursor or, if that says nothing here, from
// its first event. It begins again there if the session reads the task: the other hub may have lost what
// it had. FollowTask returns an unknown_task Fault if there is no such task, and any other error if that
// cannot be said now; it may wait for the journal.
func (s *Session) FollowTask(ctx context.Context, id core.TaskID, after core.Cursor) error {
	t, err := s.hub.findHere(ctx, id)
	if errors.Is(err, unknownTask) && s.hub.hasCopy(ctx, id) {
		return notMoved(s.hub.others.name, id)
	}
	if err != nil {
		return err
	}
	last := t.Last()
	if read := t.HasEnded() && !last.Body.Kind().Ends(); read && (!isMove(last) || last.Cursor().Compare(after) < 0) {
		return notMoved(s.hub.others.name, id) // the other hub may know more than the journal says yet
	}
	if s.Watch(t, after, nil) != nil {
		err = s.Watch(t, core.Cursor{}, nil) // a mirror drops what it has
	}
	return err
}

// notMoved is returned for a task of which this hub has a copy, and of which the journal does not say
// yet that it has moved here: the hub that had it may not have stored that.
func notMoved(hub string, id core.TaskID) error {
	return core.NewFault(core.CodeUnreachable, "the journal does not say yet that task %s has moved to hub %s: ask again in a moment", id, hub)
}

// hasCopy reports whether the part of this hub has a task that was to move here.
func (h *Hub) hasCopy(ctx context.Context, id core.TaskID) bool {
	if h.shared == nil {
		return false
	}
	events, _ := h.journal.Read(ctx, id, 0, 0)
	return slices.ContainsFunc(events, isMove)
}

// pass passes a command on a mirror to its owner; from is the hub that has passed it here, or "". One on a
// task that is on its way here waits for it.
func (h *Hub) pass(c core.Call, t *task.Task, from string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := c.Command.(core.Cancel); ok && !t.HasEnded() {
		h.others.cancels[t.ID()] = c
	}
	if held, err := h.hold(c, t); held {
		return err
	}
	hub, ok := h.owner(t)
	if !ok {
		return noOwner(t)
	}
	if hub == from { // each believes that the other has it
		return core.NewFault(core.CodeUnreachable, "task %s is on its way between hubs: ask again in a moment", t.ID())
	}
	return h.others.peers.Do(hub, c)
}

// commandInquiry asks the owner of a task for a command that passed the door of the hub where it was
// given.
func commandInquiry() inquiry[core.Call, struct{}] {
	return inquiry[core.Call, struct{}]{"task.command", func(ctx context.Context, h *Hub, by core.Principal, c core.Call) (struct{}, error) {
		t, _, err := h.object(ctx, c.Command, false)
		switch {
		case err != nil:
			return struct{}{}, err
		case t == nil || t.IsMirror():
			return struct{}{}, core.NewFault(core.CodeUnreachable, "task %s has moved to another hub: ask again in a moment", c.Command.Object())
		}
		c.Principal = by
		h.mu.Lock()
		standIn := h.standFor(h.others.name)
		h.mu.Unlock()
		return struct{}{}, standIn.Perform(c)
	}}
}

// askOwner has the owner of a mirror execute a command, and returns what it says.
func (h *Hub) askOwner(ctx context.Context, c core.Call, t *task.Task) error {
	h.mu.Lock()
	hub, ok := h.owner(t)
	h.mu.Unlock()
	if !ok {
		return noOwner(t)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, inquiryTime, core.NewFault(core.CodeUnreachable, "hub %s, which has task %s, has not said in time what became of that: read the task before you send it again", hub, t.ID()))
	defer cancel()
	_, err := commandInquiry().ask(ctx, h, hub, c.Principal, c)
	return err
}

func noOwner(t *task.Task) error {
	return core.NewFault(core.CodeUnreachable, "the hub that has task %s is not here", t.ID())
}

// LeaveTasks ends the session's reading of all tasks, also of those that have ended and whose end is still
// to be told: the connection that carried the events has ended,
// and the other hub says over the next one which of them have not come. What it opened goes on. A session
// for another hub has no readers but views, so that none is left.
func (s *Session) LeaveTasks() { s.views.clear() }

// LeaveTask ends the session's reading of a task, for a hub that follows it where it is now.
func (s *Session) LeaveTask(id core.TaskID) {
	t := s.hub.tasks.Get(id)
	if t == nil {
		return
	}
	s.Unwatch(t)
	s.mu.Lock()
	delete(s.opened, t)
	s.mu.Unlock()
}
