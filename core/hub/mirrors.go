package hub

import (
	"cmp"
	"context"
	"errors"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/task"
)

// Extend appends events of its owner to the mirror of a task. It makes a mirror if there is none.
func (h *Hub) Extend(id core.TaskID, events []core.Event) {
	if len(events) == 0 {
		return
	}
	t := h.tasks.Mirror(id, events[0])
	if !t.IsMirror() {
		h.Count("mirror.own")
		return
	}
	ended := t.Extend(events)
	h.arrived(id)
	if ended {
		h.mirrorEnded(t)
	}
}

// Unknown says that the owner of a task does not know it: neither was it told of the task, nor has
// a life of it before stored anything. A mirror ends then.
func (h *Hub) Unknown(id core.TaskID) {
	if t := h.tasks.Get(id); t != nil && t.IsMirror() && t.Extend([]core.Event{neverStored(t)}) {
		h.mirrorEnded(t)
	}
	h.arrived(id)
}

// arrived wakes those who wait for a task of another hub.
func (h *Hub) arrived(id core.TaskID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wake(id, nil)
	h.came(id)
}

// fetched is a task that somebody waits for.
type fetched struct {
	done chan struct{} // closed once its owner has said something of it, or is gone
	gone error         // that it is gone; nil if it has said something
}

// wake wakes those who wait for a task of another hub. Callers hold mu.
func (h *Hub) wake(id core.TaskID, gone error) {
	if f := h.others.fetched[id]; f != nil {
		f.gone = gone
		close(f.done)
		delete(h.others.fetched, id)
	}
}

// find returns a task of any hub. It may wait for the journal, or for the owner of the task.
func (h *Hub) find(ctx context.Context, id core.TaskID) (*task.Task, error) {
	t, err := h.tasks.Find(ctx, id)
	if err == nil || h.others.peers == nil || !errors.Is(err, unknownTask) {
		return t, err
	}
	f, asked := h.fetch(id)
	if asked != nil || f == nil {
		return nil, cmp.Or(asked, err)
	}
	select {
	case <-f.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if t := h.tasks.Get(id); t != nil {
		return t, nil
	}
	return nil, cmp.Or(f.gone, err)
}

// fetch asks the owner of a task for its events, unless somebody has. It returns nil if this hub
// is the owner.
func (h *Hub) fetch(id core.TaskID) (*fetched, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	hub, ok := h.ownerOf(task.OwnerOf(id))
	if !ok {
		return nil, nil //nolint:nilnil // nobody is to be asked
	}
	f := h.others.fetched[id]
	if f == nil {
		if err := h.others.peers.Follow(hub, id); err != nil {
			return nil, err
		}
		f = &fetched{done: make(chan struct{})}
		h.others.fetched[id] = f
	}
	return f, nil
}

// mirrorEnded lets go of a mirror that has its end.
func (h *Hub) mirrorEnded(t *task.Task) {
	h.mu.Lock()
	opener := h.mirrors[t.ID()]
	delete(h.mirrors, t.ID())
	h.mu.Unlock()
	if opener != nil {
		opener.mu.Lock()
		delete(opener.opened, t)
		opener.mu.Unlock()
	}
	h.tasks.Retain(t)
}

// Adopt makes this hub the owner of a task that was opened at the hub of the session. The session
// becomes a reader of it. The task ends as failed if no agent gets it. Adopt reports false if this
// hub takes no tasks any more: then it does not know the task.
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
	chain := policy.Chain{Hops: opened.Hops, Agents: opened.Chain}
	j := &job{Task: h.tasks.New(o.From, chain, opened.Request, opened.Trace), opener: s}
	h.mu.Lock()
	if h.end.sealed { // one that drains finishes what the others sent before they knew
		h.mu.Unlock()
		return false
	}
	h.tasks.Adopt(j.Task, o.Opened, nil)
	h.jobs[j.ID()] = j
	h.recorder.Record(j.Task)
	h.enter(s, j, &core.Open{Keep: o.Keep})
	h.mu.Unlock()
	j.Attach(s.peer(), task.Requester, nil, 1)
	err := h.afford(j.Task)
	if err == nil {
		err = h.begin(j, o.Private)
	}
	if err != nil {
		h.refuse(j, err)
	}
	return true
}

// Perform executes a command that passed the door of another hub, in the name of its principal.
func (s *Session) Perform(c core.Call) error {
	_, err := s.hub.do(context.Background(), s, c, nil)
	return err
}

// FollowTask makes the session a reader of a task from its first event. It returns an unknown_task
// Fault if there is none; it may wait for the journal.
func (s *Session) FollowTask(id core.TaskID) error {
	t, err := s.hub.tasks.Find(context.Background(), id)
	if err != nil {
		return err
	}
	return s.Watch(t, core.Cursor{}, nil)
}

// pass passes a command on a mirror to its owner.
func (h *Hub) pass(c core.Call, t *task.Task) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	hub, ok := h.ownerOf(task.OwnerOf(t.ID()))
	if !ok {
		return core.NewFault(core.CodeUnreachable, "the hub that has task %s is not here", t.ID())
	}
	return h.others.peers.Do(hub, c)
}
