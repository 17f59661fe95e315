package task

import (
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// A task leaves its hub by one record, a Retrying that names the next owner. The next owner has a
// copy of the log up to that record before the record is stored; once it is stored, the copy counts
// and the task of the former owner is a remote task.

// Leave prepares that a task which no agent works on moves to a hub: from now on it is in the hand
// of the caller, who gives it to that hub as [Task.Copy] and then calls [Task.Gone] or [Task.Stay].
// The agent is the one for which it has waited. Leave reports false if the task has ended, leaves
// already, or is another hub's.
func (t *Task) Leave(to string, agent core.AgentID, why *core.Fault) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != Queued || t.remote || t.leaving != nil {
		return false
	}
	b := core.Retrying{Agent: agent, Fault: why, Hub: to}
	t.leaving = &core.Event{Seq: t.last() + 1, Epoch: t.epoch, At: time.Now(), Body: b}
	return true
}

// Leaves returns the hub for which the task is about to leave; "" if it does not.
func (t *Task) Leaves() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.leaving == nil {
		return ""
	}
	return ownerIn([]core.Event{*t.leaving})
}

// Copy returns the events of a task that is about to leave, with the record of the move as the last
// one, and up to which number they are stored; nil if it does not leave any more.
func (t *Task) Copy() (all []core.Event, stored uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.leaving == nil {
		return nil, 0
	}
	for e := range t.log.All() {
		all = append(all, e)
	}
	return t.said(append(all, *t.leaving)), t.recorded
}

// Gone appends the record of the move, which its readers get once it is stored. From now on the task
// is a remote task. Gone reports false if the task does not leave any more.
func (t *Task) Gone() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.leaving == nil {
		return false
	}
	record := *t.leaving
	t.take(record)
	t.remote, t.sparse, t.moved, t.worker = true, true, record.Seq, nil
	t.alarm.Stop()
	return true
}

// Stay ends a departure: the hub keeps the task.
func (t *Task) Stay() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leaving = nil
}

// Arrive makes the hub the owner of a remote task whose last event is the record of its move to this hub.
// It reports false if it is not.
func (s *Store) Arrive(t *Task, record core.Event) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.remote || t.state == Ended || t.log.Len() == 0 {
		return false
	}
	if last := t.log.Last(); last.Seq != record.Seq || last.Epoch != record.Epoch || t.owner != ownerIn([]core.Event{record}) {
		return false
	}
	t.remote, t.moved = false, 0
	t.noteRecorded(record.Seq)
	s.begin(t, time.Now())
	return true
}

// Owner returns the hub to which the task has moved last; "" if it has never moved.
func (t *Task) Owner() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.owner
}

// Transfers returns how often the task has moved.
func (t *Task) Transfers() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for e := range t.log.All() {
		if b, ok := e.Body.(core.Retrying); ok && b.Hub != "" {
			n++
		}
	}
	return n
}

// HasOutput reports whether an agent has answered something.
func (t *Task) HasOutput() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.output
}

// leaveRecorder ends the recording of a task whose record of a move is stored: the rest is the next owner's to
// store. Callers hold mu.
func (t *Task) leaveRecorder() {
	for r, next := t.readers, (*Reader)(nil); r != nil; r = next {
		if next = r.after; r.role == Recorder {
			t.drop(r)
		}
	}
}

// ownerIn returns the hub that the last record of a move in events names; "" if there is none.
func ownerIn(events []core.Event) (hub string) {
	for _, e := range events {
		if b, ok := e.Body.(core.Retrying); ok && b.Hub != "" {
			hub = b.Hub
		}
	}
	return hub
}
