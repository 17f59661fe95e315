package hub

import (
	"context"
	"errors"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// Conversation is one reader's way through a thread: the tasks of the thread that
// its principal may read, one after the other in the order in which they were
// opened, each from its first event to its last; then those to come. What a task
// says while one before it still runs is told behind that. It reads what the hub
// has in memory, else from the journal, at its own pace, and holds one task at a
// time. Make one with [Hub.Conversation]; one goroutine uses it.
type Conversation struct {
	sess   *Session
	thread core.ThreadID
	place  core.Place
	task   *task.Task // the one that is read; nil between two
	lost   bool       // what the place was in is no longer kept
	told   bool       // the gap behind the place was told
}

// Passage is what [Conversation.Next] returns.
type Passage struct {
	// Task is what Events, or the gap, are of; nil where whole tasks are gone.
	Task *task.Task
	// Events follow one another, and what came before. They share memory with the
	// log: read only.
	Events []core.Event
	// Gap says that something that stood here is no longer kept, and will not come.
	Gap bool
	// Draining says why the hub is stopping. What runs may still finish.
	Draining string
}

// Conversation begins to read a thread from behind a place in it; one number beyond
// the end of a task is behind that task. Close ends it. It returns an invalid Fault
// for a place that its task does not have, a not_authorized Fault for one in a task
// of somebody else, and the error of the journal, for which it may wait.
func (h *Hub) Conversation(ctx context.Context, p Identity, id core.ThreadID, from core.Place) (*Conversation, error) {
	c := &Conversation{sess: h.Connect(p), thread: id, place: from}
	c.sess.follow(id, follower{})
	if from.Task == "" {
		return c, nil
	}
	if err := c.begin(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// begin goes on with the task of the place, if it is still kept.
func (c *Conversation) begin(ctx context.Context) error {
	h := c.sess.hub
	if !h.holds(c.thread, c.place.Task) {
		c.lost = true
		return nil
	}
	t, err := h.Task(ctx, c.sess.identity.Principal, c.place.Task)
	switch {
	case errors.Is(err, unknownTask):
		c.lost = true
		return nil
	case err != nil:
		return err
	}
	if at := c.place.Cursor; t.State() == task.Ended {
		if e := t.Last(); at == e.Cursor() || at == (core.Cursor{Epoch: e.Epoch, Seq: e.End() + 1}) {
			return nil
		}
	}
	c.task = t
	return c.sess.Watch(t, c.place.Cursor, nil)
}

var unknownTask = &core.Fault{Code: core.CodeUnknownTask}

// Close ends the reading.
func (c *Conversation) Close() { c.sess.Close(nil) }

// Next waits for what follows. It returns the context's error, the error of the
// journal, or a Fault once the hub has stopped and everything was read.
func (c *Conversation) Next(ctx context.Context) (Passage, error) {
	for {
		if c.task == nil {
			gap, err := c.turn(ctx)
			if err != nil || gap {
				return Passage{Gap: gap}, err
			}
		}
		b, err := c.sess.Next(ctx)
		switch {
		case err != nil:
			return Passage{}, err
		case b.Draining != "":
			return Passage{Draining: b.Draining}, nil
		case b.Task == nil:
			continue // the thread has another task
		case b.Gap != nil:
			return Passage{Task: b.Task, Gap: true}, nil
		}
		last := b.Events[len(b.Events)-1]
		c.place = core.PlaceBehind(b.Task.ID(), last)
		if last.Body.Kind().Ends() {
			c.task = nil
		}
		return Passage{Task: b.Task, Events: b.Events}, nil
	}
}

// turn goes on to the next task, if there is one. It reports a gap, once, where
// there was one that is gone.
func (c *Conversation) turn(ctx context.Context) (gap bool, err error) {
	t, missing, err := c.sess.hub.nextTurn(ctx, c.sess.identity.Principal, c.thread, c.place.Task)
	switch {
	case err != nil:
		return false, err
	case (missing || c.lost) && !c.told:
		c.told = true
		return true, nil
	case t == nil:
		return false, nil
	}
	c.place, c.lost, c.told = core.Place{Task: t.ID()}, false, false
	c.task = t
	return false, c.sess.Watch(t, core.Cursor{}, nil)
}

// Thread calls yield for the tasks of a thread that the principal may read, in
// order, beginning with the task from if that is not "", until yield returns false.
// It may wait for the journal, whose error it returns. missing says that something
// between from and the last that was yielded is no longer kept.
func (h *Hub) Thread(ctx context.Context, p core.Principal, id core.ThreadID, from core.TaskID, yield func(*task.Task) bool) (missing bool, err error) {
	after := from
	if from != "" {
		t, err := h.Task(ctx, p, from)
		switch {
		case !h.holds(id, from) || errors.Is(err, unknownTask):
			missing = true
		case err != nil:
			return false, err
		case !yield(t):
			return false, nil
		}
	}
	for {
		t, gone, err := h.nextTurn(ctx, p, id, after)
		missing = missing || gone
		if err != nil || t == nil || !yield(t) {
			return missing, err
		}
		after = t.ID()
	}
}

// LatestTurns returns up to n of the latest tasks of a thread that the principal may
// read, oldest first. It may wait for the journal, whose error it returns.
func (h *Hub) LatestTurns(ctx context.Context, p core.Principal, id core.ThreadID, n int) ([]*task.Task, error) {
	ids := h.index.Latest(id, n)
	if len(ids) < n && task.IsID(string(id)) {
		ids = slices.Insert(ids, 0, core.TaskID(id)) // it began as a task on its own
	}
	var all []*task.Task
	for _, task := range ids {
		switch t, err := h.Task(ctx, p, task); {
		case err == nil && t.Request().Thread == id:
			all = append(all, t)
		case err != nil && !passes(err):
			return nil, err
		}
	}
	return all, nil
}

// nextTurn returns the first task of a thread behind after that the principal may
// read, or nil. It reports whether some before it are no longer kept.
func (h *Hub) nextTurn(ctx context.Context, p core.Principal, id core.ThreadID, after core.TaskID) (t *task.Task, missing bool, err error) {
	if first := core.TaskID(id); after == "" && task.IsID(string(id)) {
		t, err := h.Task(ctx, p, first) // it may have begun as a task on its own
		switch {
		case err == nil && t.Request().Thread == id:
			return t, false, nil
		case err != nil && !passes(err):
			return nil, false, err
		}
	}
	for {
		next, gone := h.index.Next(id, after)
		missing = missing || gone
		if next == "" {
			return nil, missing, nil
		}
		t, err = h.Task(ctx, p, next)
		switch {
		case err == nil:
			return t, missing, nil
		case !passes(err):
			return nil, missing, err
		}
		missing = missing || errors.Is(err, unknownTask)
		after = next
	}
}

// passes reports whether a thread is read on behind a task that is not to be had.
func passes(err error) bool {
	return errors.Is(err, unknownTask) || errors.Is(err, &core.Fault{Code: core.CodeNotAuthorized})
}

// holds reports whether the task is known as one of the thread.
func (h *Hub) holds(id core.ThreadID, task core.TaskID) bool {
	return core.TaskID(id) == task || h.index.Has(id, task)
}
