package hub

import (
	"context"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// views are the readers of the tasks that a session watches. mu is locked before that of a
// task.
type views struct {
	mu      sync.Mutex
	closed  bool
	readers table[view, viewed]
}

// view names a form of a task.
type view struct {
	id       core.TaskID
	redacted bool
}

func viewOf(t *task.Task) view { return view{t.ID(), t.IsRedacted()} }

// other is the other form of the task.
func (v view) other() view { return view{v.id, !v.redacted} }

// viewed is a form of a task that is read.
type viewed struct {
	task   *task.Task
	reader *task.Reader
}

// add stores the reader that attach returns, if any, in place of the present one of the
// task. It returns an unreachable Fault once the session is closed.
func (v *views) add(t *task.Task, attach func() (*task.Reader, error)) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return errEnded
	}
	r, err := attach()
	if err != nil {
		return err
	}
	v.remove(viewOf(t))
	if r != nil {
		v.readers.put(viewOf(t), viewed{t, r})
	}
	return nil
}

// remove closes the reader of a form, if there is one. Callers hold mu.
func (v *views) remove(of view) {
	if old, is := v.readers[of]; is {
		old.reader.Close()
		delete(v.readers, of)
	}
}

// drop closes the readers of forms.
func (v *views) drop(forms ...view) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, of := range forms {
		v.remove(of)
	}
}

// forget removes a reader that has read the end of its task.
func (v *views) forget(t *task.Task, r *task.Reader) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.readers[viewOf(t)].reader == r { // another may have taken its place
		delete(v.readers, viewOf(t))
	}
}

// has reports whether a task is read in either form.
func (v *views) has(id core.TaskID) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, whole := v.readers[view{id: id}]
	_, redacted := v.readers[view{id: id, redacted: true}]
	return whole || redacted
}

func (v *views) close() {
	v.mu.Lock()
	v.closed = true
	v.mu.Unlock()
	v.clear()
}

// clear closes all readers.
func (v *views) clear() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, w := range v.readers {
		w.reader.Close()
	}
	v.readers = nil
}

// view makes the session a viewer of a task, from the first event, in the form for its principal.
func (s *Session) view(t *task.Task, tag any) { s.viewAfter(t, 0, tag) }

// viewAfter is view from after a sequence number.
func (s *Session) viewAfter(t *task.Task, next uint64, tag any) {
	t = s.formFor(t)
	_ = s.views.add(t, func() (*task.Reader, error) { return t.Attach(s.peer(), task.Viewer, tag, next), nil })
}

// viewOnce is view, unless the session reads the task already.
func (s *Session) viewOnce(t *task.Task, tag any) {
	if !s.views.has(t.ID()) {
		s.view(t, tag)
	}
}

// Task finds a task that the principal may read, in memory or in the journal, for which it
// may wait. It returns an unknown_task Fault, also for a task that the principal may not read, or the error of
// the journal.
func (h *Hub) Task(ctx context.Context, p core.Principal, id core.TaskID) (*task.Task, error) {
	o, err := h.do(ctx, nil, core.Call{Principal: p, Command: core.Read{Task: id}}, nil)
	return o.task, err
}

// Readers returns the readers of a task that the principal may read; a task that is in the
// journal alone has none. It waits and fails as [Hub.Task] does.
func (h *Hub) Readers(ctx context.Context, p core.Principal, id core.TaskID) ([]task.ReaderStatus, error) {
	o, err := h.do(ctx, nil, core.Call{Principal: p, Command: core.Readers{Task: id}}, nil)
	return o.readers, err
}

// Watch makes the session a reader of a task, from after the cursor: first the events that
// it missed, then those to come. It returns an invalid Fault for a cursor that is not one
// of this task, an unreachable Fault when the session has ended or this hub is behind the cursor, and a
// not_authorized Fault if the rules have changed since [Hub.Task] returned the task. What comes is the
// form that is passed; but for a part of the program, it replaces the other one where the session reads it.
func (s *Session) Watch(t *task.Task, from core.Cursor, tag any) error {
	if err := s.views.add(t, func() (*task.Reader, error) {
		r, err := t.Watch(s.peer(), from, tag)
		if r != nil && s.identity.Coalesces {
			r.Coalesce()
		}
		return r, err
	}); err != nil {
		return err
	}
	p := s.identity.Principal
	if p.Component {
		return nil
	}
	s.views.drop(viewOf(t).other())
	if !s.hub.MayRead(p, t) { // a Recheck did not see the reader
		s.Unwatch(t)
		return rulesChanged()
	}
	return nil
}

// AwaitEnd makes Next return a batch without events, in the role of the requester, at the
// end of a task that was opened unwatched, by this session or another one: for requesters that only need the
// outcome.
func (s *Session) AwaitEnd(t *task.Task) { s.attach(t, task.Waiter, nil) }

// Unwatch ends Watch; but for a part of the program, of both forms of the task.
func (s *Session) Unwatch(t *task.Task) {
	s.views.drop(viewOf(t))
	if !s.identity.Principal.Component {
		s.views.drop(viewOf(t).other())
	}
}

// WatchAll makes the session a reader of every task from now on, including those that run
// or whose end is still to be told. What others asked for comes redacted: see [Hub.FormFor]. It returns a not_authorized Fault unless the principal
// is an operator.
func (s *Session) WatchAll() error {
	if _, err := s.do(core.WatchAll{}); err != nil {
		return err
	}
	return s.recheckAll()
}

func (h *Hub) watchAll(s *Session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.closed {
		return
	}
	h.watchers[s] = struct{}{}
	for _, t := range h.tasks.InMemory() {
		s.views.follow(s.formFor(t), s.peer())
	}
	h.watchRunning(s)
}

// follow makes the inbox view a task from now on, unless it reads the task already. It returns the
// reader, if there is a new one.
func (v *views) follow(t *task.Task, in task.Inbox) *task.Reader {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return nil
	}
	r := t.Follow(in, task.Viewer)
	if r != nil {
		v.readers.put(viewOf(t), viewed{t, r})
	}
	return r
}

// ComponentIdentity is the identity of a part of the program, such as the server of a
// dialect that follows every task. It may do everything: the part itself keeps what it
// learns from those who may not know it.
func ComponentIdentity(name, dialect string) Identity {
	return Identity{Principal: core.Principal{ID: core.PartPrefix + name, Dialect: dialect, Operator: true, Component: true}, Dialect: dialect}
}

// waits are the readers of a session that wait, for a limited time, for the end of a task.
// The zero waits are empty.
type waits struct {
	mu     sync.Mutex
	closed bool
	timers table[*task.Reader, *time.Timer]
}

// add makes the reader that attach returns wait. If its task has not ended in time, add
// closes the reader and calls expired.
func (w *waits) add(attach func() *task.Reader, wait time.Duration, expired func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	r := attach() // with mu held: done may be called at once
	w.timers.put(r, time.AfterFunc(wait, func() {
		w.done(r)
		if r.Close() {
			expired()
		}
	}))
}

// done removes a reader that no longer waits.
func (w *waits) done(r *task.Reader) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if timer := w.timers[r]; timer != nil {
		timer.Stop()
		delete(w.timers, r)
	}
}

// close closes all readers that wait.
func (w *waits) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for r, timer := range w.timers {
		timer.Stop()
		r.Close()
	}
	w.timers = nil
}
