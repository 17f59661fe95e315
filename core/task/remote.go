package task

import (
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/memory"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/quota"
)

// A remote task is one that another hub owns. Its events come from there; its readers read it like
// any other. The deadline, the approvals and the end are the owner's.

// IsRemote reports whether another hub owns the task.
func (t *Task) IsRemote() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.remote
}

// OpenRemote is [Store.Open] for a task that the hub with the index is to own, and returns the
// first event, which the owner is to adopt: see [Store.Adopt]. The task waits for what the owner
// says of it.
func (s *Store) OpenRemote(t *Task, owner int, work *quota.Work) (opened core.Event, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.remote, t.sparse = true, true
	if err := s.enter(t, owner, work); err != nil {
		return core.Event{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.appendAt(time.Now(), t.opened(), nil)
	return t.log.Last(), nil
}

// Adopt is [Store.Open] for a task that was opened at another hub, with the event that opened it
// there. It has an end even if there is no memory for it: the caller has told its requester that
// it was accepted.
func (s *Store) Adopt(t *Task, opened core.Event, work *quota.Work) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := opened.Body.(core.Opened)
	t.id = b.Task
	t.share.Add(OverheadBytes + t.request.Size())
	s.put(t, work)
	t.mu.Lock()
	defer t.mu.Unlock()
	s.begin(t, opened.At)
	t.appendAt(opened.At, b, opened.Foreign)
}

// Remote adds a copy of a task that was opened elsewhere, by the first event that is known of it,
// unless the store has the task. It returns the task, which the caller extends.
func (s *Store) Remote(id core.TaskID, first core.Event) *Task {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tasks[id]; t != nil {
		return t
	}
	t := newTask(&life{
		store: s, id: id, remote: true, sparse: true, log: newLog(shortTask), share: memory.Of(s.limits.Memory, memory.Logs),
	})
	t.share.Add(OverheadBytes)
	if !first.Body.Kind().Ends() { // whoever extends it is told of its end
		t.Extend([]core.Event{first}) // before anybody sees it
	}
	s.put(t, nil)
	return t
}

// Copy returns a remote task of a notice with the event that opened it, for its subscribers: the store does not
// have it, and no more events come.
func (s *Store) Copy(from core.Principal, opened core.Event) *Task {
	t := newTask(&life{store: s, id: opened.Body.(core.Opened).Task, remote: true, log: newLog(1)})
	t.Extend([]core.Event{opened})
	t.from = from
	return t
}

// Forget drops a remote task that its owner was not told of, or a refused task that is not recorded.
func (s *Store) Forget(t *Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tasks, t.id)
	s.catalog.remove(t.id)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stored = false
	if t.state == Ended { // nothing records it
		t.endShown = true
		t.noteRecorded(t.last())
		t.showHeld()
	}
	t.work.End()
	t.uncount()
	t.patience.end()
}

// SetUnstored says that the owner of a remote task has stored nothing of it, before the remote task gets its end:
// once it is out of memory, no list has it any more.
func (t *Task) SetUnstored() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unstored = true
}

// TakeBack makes the hub the owner of a remote task, and ends it with an event of a new epoch: the hub that was to own
// the task has stored nothing of it. Readers get the end once it is stored. TakeBack reports false for a task that
// has ended, or is the hub's own.
func (t *Task) TakeBack(hub string, end core.Event) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.remote || t.state == Ended {
		return false
	}
	t.cut(end.Seq - 1)
	t.remote, t.owner = false, hub
	t.take(end)
	return true
}

// Extend appends to a remote task what the journal has of its task, without what it has. Events between them
// that are lost stay missing. Where an epoch begins, it replaces what the copy has of the epochs before from that number
// on, which the journal has lost: readers that have seen it get a gap. What an epoch before says after that is dropped.
// Extend reports whether the task ended with these events. It does nothing for a task that the hub owns.
func (t *Task) Extend(events []core.Event) (ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range events {
		ended = t.hear(e) || ended
	}
	return ended
}

// Hear is [Task.Extend] for events as the owner sends them. What comes before them may still come, or be
// lost with a connection: events behind a hole are dropped, and lacks says that the owner is to be
// asked for all after [Task.Cursor]. Only if its answer begins with an event that came behind the
// hole before, the owner has nothing else either, and what is between stays missing.
func (t *Task) Hear(events []core.Event) (ended, lacks bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range events {
		if t.isBehindHole(e) && e.Seq != t.beyond {
			if t.beyond == 0 || e.Seq < t.beyond { // else the answer is on its way
				t.beyond, lacks = e.Seq, true
			}
			return ended, lacks
		}
		ended = t.hear(e) || ended
	}
	return ended, false
}

// AskAnew returns the cursor after which an owner is to be asked for all, over a connection over which it was not
// asked before. What came behind a hole until then says nothing of how the answer begins: it may come from
// another life, which has less. Of one that has its request alone all is asked for: an owner that refuses a task
// keeps no content of it.
func (t *Task) AskAnew() core.Cursor {
	t.mu.Lock()
	t.beyond = 0
	n := t.log.Len()
	t.mu.Unlock()
	if n <= 1 {
		return core.Cursor{}
	}
	return t.Cursor()
}

// isBehindHole reports whether a remote task lacks events before one that it would take. Callers hold mu.
func (t *Task) isBehindHole(e core.Event) bool {
	return t.remote && t.state != Ended && t.log.Len() > 0 && e.Epoch >= t.epoch && e.Seq > t.last()+1
}

// hear appends an event to a remote task, or what of it is new. It reports whether the task ended with it.
// Callers hold mu.
func (t *Task) hear(e core.Event) (ended bool) {
	if !t.remote || t.state == Ended {
		return false
	}
	if b, ok := e.Body.(core.Opened); ok && t.log.Len() == 1 && b.Request.Size() < t.request.Size() {
		t.dropContent() // as its owner has, which refuses it
		return false
	}
	if e.Epoch > t.epoch {
		t.cut(e.Seq - 1)
	}
	switch last := t.last(); {
	case e.Epoch < t.epoch && e.Seq > last:
		return false
	case t.log.Len() == 0:
		t.lost = e.Seq - 1
	case e.Seq > last+1:
		t.holed = true
	default:
		rest, ok := e.AfterSeq(last)
		if !ok {
			return false
		}
		e = rest
	}
	t.beyond = 0
	t.extend(e)
	return t.state == Ended
}

// cut drops the events of a copy after a sequence number. Callers hold mu.
func (t *Task) cut(after uint64) {
	if t.log.Len() == 0 || t.last() <= max(after, 1) { // the first event is the requester's
		return
	}
	var left []core.Event
	for e := range t.log.All() {
		for _, part := range core.Unmerge([]core.Event{e}) {
			if part.End() <= after || part.Seq == 1 {
				left = append(left, part)
			}
		}
	}
	t.log, t.machine = LogOf(left), newMachine()
	for _, e := range left {
		t.machine.apply(e)
	}
	t.noteWaits()
	after = t.last()
	for r := t.readers; r != nil; r = r.after {
		if r.next > after {
			r.gap, r.next = &Gap{From: after + 1, To: r.next}, after
		}
	}
}

// extend appends an event of the owner. Callers hold mu.
func (t *Task) extend(e core.Event) {
	if b, ok := e.Body.(core.Opened); ok {
		t.from, t.request, t.chain, t.trace = b.From, b.Request, policy.Chain{Hops: b.Hops, Agents: b.Chain}, b.Trace
		t.ownTurns, t.byDefault, t.began = len(b.Request.History), b.DefaultDeadline, e.At
		t.share.Add(e.Size())
	}
	t.take(e)
	if t.state == Ended { // the owner shows an end once it is stored
		t.endShown = true
		t.noteRecorded(t.last())
		t.showHeld()
		t.reach(core.StageRecorded, e.At)
	}
}
