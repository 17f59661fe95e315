package hub

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// ThreadReader reads the tasks of a thread that its principal may read, in the form for it
// ([Hub.FormFor]), in the order in which they were opened, each from its first event to its last; then it waits for new
// ones. Events of a task come after the end of the task before it. It reads from memory or
// from the journal, at its own pace, one task at a time. One goroutine uses it.
type ThreadReader struct {
	sess     *Session
	thread   core.ThreadID
	place    core.Place
	settled  core.TaskID // no hub has a task before this one that this hub was not told of, nor will open one
	task     *task.Task  // the one being read; nil between two
	lost     bool        // the task of the place is no longer kept
	reported bool        // the gap after the place was reported
}

// ThreadBatch is what [ThreadReader.Next] returns.
type ThreadBatch struct {
	// Task is what Events, or the gap, belong to; nil where whole tasks are gone.
	Task *task.Task
	// Events are consecutive, and follow those before. They share memory with the log: read
	// only.
	Events []core.Event
	// Gap says that something is no longer kept here, and will not come.
	Gap bool
	// Draining says why the hub is stopping, and which hubs are not. Running tasks may still finish.
	Draining string
}

// ReadThread starts reading a thread after a place in it; a number one beyond the end of a
// task means after that task. A task that the principal may not read counts as one that is no longer
// kept. The caller closes the reader. ReadThread returns the Faults of [Session.Follow], an invalid Fault for a place
// that its task does not have, and the error of the journal, for which it may wait.
func (h *Hub) ReadThread(ctx context.Context, p Identity, id core.ThreadID, from core.Place) (*ThreadReader, error) {
	r := &ThreadReader{sess: h.Connect(p), thread: id, place: from}
	if err := r.sess.follow(id, follower{}); err != nil {
		r.Close()
		return nil, err
	}
	if !h.gather(ctx, id) {
		r.lost = true
	}
	if from.Task == "" {
		return r, nil
	}
	if err := r.begin(ctx); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// begin continues with the task of the place, if it is still kept.
func (r *ThreadReader) begin(ctx context.Context) error {
	h := r.sess.hub
	if !h.holds(r.thread, r.place.Task) {
		r.lost = true
		return nil
	}
	t, err := h.Task(ctx, r.sess.identity.Principal, r.place.Task)
	switch {
	case errors.Is(err, unknownTask):
		r.lost = true
		return nil
	case err != nil:
		return err
	}
	if at := r.place.Cursor; t.State() == task.Ended {
		if e := t.Last(); at == e.Cursor() || at == (core.Cursor{Epoch: e.Epoch, Seq: e.End() + 1}) {
			return nil
		}
	}
	r.task = r.sess.formFor(t)
	return r.sess.Watch(r.task, r.place.Cursor, nil)
}

var unknownTask = &core.Fault{Code: core.CodeUnknownTask}

// Close ends the reader.
func (r *ThreadReader) Close() { r.sess.Close(nil) }

// Next waits for the next events. It returns the context's error, the error of the
// journal, or a Fault once the hub has stopped and everything was read.
func (r *ThreadReader) Next(ctx context.Context) (ThreadBatch, error) {
	for {
		if r.task == nil {
			gap, err := r.nextTask(ctx)
			if err != nil || gap {
				return ThreadBatch{Gap: gap}, err
			}
		}
		b, err := r.sess.Next(ctx)
		switch {
		case err != nil:
			return ThreadBatch{}, err
		case b.Draining != "":
			return ThreadBatch{Draining: b.Draining}, nil
		case b.Task == nil:
			continue // the thread has another task
		case b.Gap != nil:
			return ThreadBatch{Task: b.Task, Gap: true}, nil
		}
		last := b.Events[len(b.Events)-1]
		r.place = core.PlaceAfter(b.Task.ID(), last)
		if last.Body.Kind().Ends() {
			r.task = nil
		}
		return ThreadBatch{Task: b.Task, Events: b.Events}, nil
	}
}

// nextTask moves on to the next task, if there is one. It reports, once, a gap where tasks
// are gone.
func (r *ThreadReader) nextTask(ctx context.Context) (gap bool, err error) {
	h := r.sess.hub
	t, missing, err := h.nextTurn(ctx, r.sess.identity.Principal, r.thread, r.place.Task)
	if err == nil && t != nil && t.ID() > r.settled && core.ThreadID(t.ID()) != r.thread {
		r.settled = h.settleOrder(ctx, r.thread, r.place.Task)
		t, missing, err = h.nextTurn(ctx, r.sess.identity.Principal, r.thread, r.place.Task)
	}
	switch {
	case err != nil:
		return false, err
	case (missing || r.lost) && !r.reported:
		r.reported = true
		return true, nil
	case t == nil:
		return false, nil
	}
	r.place, r.lost, r.reported = core.Place{Task: t.ID()}, false, false
	r.task = r.sess.formFor(t)
	return false, r.sess.Watch(r.task, core.Cursor{}, nil)
}

// Thread calls yield for the tasks of a thread that the principal may read, in the form for it
// ([Hub.FormFor]), in order, starting with the task from if that is not "", until yield returns false. It may wait for
// the journal, whose error it returns. missing says that a task between from and the last
// one yielded is no longer kept.
func (h *Hub) Thread(ctx context.Context, p core.Principal, id core.ThreadID, from core.TaskID, yield func(*task.Task) bool) (missing bool, err error) {
	missing = !h.gather(ctx, id)
	after := from
	if from != "" {
		t, err := h.Task(ctx, p, from)
		switch {
		case !h.holds(id, from) || errors.Is(err, unknownTask):
			missing = true
		case err != nil:
			return false, err
		case !yield(h.FormFor(p, t)):
			return false, nil
		}
	}
	for {
		t, gone, err := h.nextTurn(ctx, p, id, after)
		missing = missing || gone
		if err != nil || t == nil || !yield(h.FormFor(p, t)) {
			return missing, err
		}
		after = t.ID()
	}
}

// LatestTurns returns up to n of the latest tasks of a thread that the principal may
// read, in the form for it ([Hub.FormFor]), oldest first. It may wait for the journal, whose error it returns.
func (h *Hub) LatestTurns(ctx context.Context, p core.Principal, id core.ThreadID, n int) ([]*task.Task, error) {
	h.gather(ctx, id)
	ids := h.index.Latest(id, n)
	if len(ids) < n && task.IsID(string(id)) {
		ids = slices.Insert(ids, 0, core.TaskID(id)) // the thread began as a single task
	}
	var all []*task.Task
	for _, task := range ids {
		switch t, err := h.Task(ctx, p, task); {
		case err == nil && t.Request().Thread == id:
			all = append(all, h.FormFor(p, t))
		case err != nil && !skips(err):
			return nil, err
		}
	}
	return all, nil
}

// nextTurn returns the first task of a thread after the given one that the principal may
// read, or nil. missing says that tasks before it are no longer kept.
func (h *Hub) nextTurn(ctx context.Context, p core.Principal, id core.ThreadID, after core.TaskID) (t *task.Task, missing bool, err error) {
	if first := core.TaskID(id); after == "" && task.IsID(string(id)) {
		t, err := h.Task(ctx, p, first) // the thread may have begun as a single task
		switch {
		case err == nil && t.Request().Thread == id:
			return t, false, nil
		case err != nil && !skips(err):
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
		case !skips(err):
			return nil, missing, err
		}
		missing = missing || errors.Is(err, unknownTask) && !errors.Is(err, errHidden)
		after = next
	}
}

// skips reports whether a reader of a thread skips the task that it got this error for.
func skips(err error) bool { return errors.Is(err, unknownTask) }

// holds reports whether a task is known to belong to a thread.
func (h *Hub) holds(id core.ThreadID, task core.TaskID) bool {
	return core.TaskID(id) == task || h.index.Has(id, task)
}

// followers are the sessions that follow threads.
type followers struct {
	mu       sync.Mutex
	byThread map[core.ThreadID]map[*Session]follower
}

// follower is how a session follows a thread.
type follower struct {
	shown bool // it views the tasks that are opened there, instead of only being woken
	tag   any
}

// Follow makes the session a viewer of every task that is opened in a thread from now on
// and that its principal may read, in the form for it ([Hub.FormFor]); tag comes with their batches. It leaves out
// those that the session opens itself. Notices are not part of a thread. It returns an invalid Fault for a name
// that is too long, and an overloaded Fault where the session or its principal follows and watches too much, or the
// memory of the hub is full.
func (s *Session) Follow(id core.ThreadID, tag any) error {
	return s.doFunc(core.Follow{Thread: id}, func() error {
		return s.follow(id, follower{shown: true, tag: tag})
	})
}

func (s *Session) follow(id core.ThreadID, how follower) error {
	if err := id.Check(); err != nil {
		return err
	}
	f := &s.hub.followers
	f.mu.Lock()
	if _, follows := s.follows[id]; !follows {
		if err := s.register(len(id)); err != nil {
			f.mu.Unlock()
			return err
		}
	}
	if f.byThread == nil {
		f.byThread = map[core.ThreadID]map[*Session]follower{}
	}
	if f.byThread[id] == nil {
		f.byThread[id] = map[*Session]follower{}
	}
	f.byThread[id][s] = how
	s.follows.put(id, struct{}{})
	f.mu.Unlock()
	if s.Closed() { // maybe before it followed
		f.leave(s)
	}
	return nil
}

// Unfollow ends Follow. The session keeps viewing the tasks that it views already.
func (s *Session) Unfollow(id core.ThreadID) { s.hub.followers.remove(s, id) }

func (f *followers) leave(s *Session) {
	f.mu.Lock()
	ids := slices.Collect(maps.Keys(s.follows))
	f.mu.Unlock()
	f.remove(s, ids...)
}

func (f *followers) remove(s *Session, ids ...core.ThreadID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		if _, follows := s.follows[id]; follows {
			s.unregister(len(id))
		}
		delete(s.follows, id)
		if delete(f.byThread[id], s); len(f.byThread[id]) == 0 {
			delete(f.byThread, id)
		}
	}
}

// opened shows the followers of a thread a new task there, except the session that opens it; nil
// is at another hub.
func (f *followers) opened(t *task.Task, by *Session) {
	f.wake(t.Thread())
	f.mu.Lock()
	defer f.mu.Unlock()
	for s, how := range f.byThread[t.Thread()] {
		if how.shown && s != by && s.hub.MayRead(s.identity.Principal, t) {
			s.view(t, how.tag)
		}
	}
}

// wake wakes those who read a thread themselves. It reports whether there are others, who are to
// be shown its tasks.
func (f *followers) wake(id core.ThreadID) (others bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s, how := range f.byThread[id] {
		if how.shown {
			others = true
		} else {
			s.inbox.push(Batch{})
		}
	}
	return others
}

// threadBytes is how many bytes of turns the hub keeps of a thread.
func (h *Hub) threadBytes() int { return 4 * h.limits.HistoryBytes }

// readable returns the turns that an authenticated principal may read: the name of a thread
// is no secret, and an agent repeats what it is told.
func (h *Hub) readable(p core.Principal, turns []core.Turn) []core.Turn {
	if !p.Authenticated {
		return turns
	}
	return h.turns(p, turns)
}
