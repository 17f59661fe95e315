package task

import (
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// Due is when the task has to be done: at its deadline, or before, as soon as the agent
// that works on it has had it for as long as it takes a task at most.
func (t *Task) Due() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.due
}

// Deadline is when the requester stops waiting.
func (t *Task) Deadline() time.Time { return t.request.Deadline }

// dueWith sets when the task has to be done by an agent that takes as long at most; zero
// is until the deadline. Callers hold mu.
func (t *Task) dueWith(most time.Duration) {
	due := t.request.Deadline
	t.within = 0
	if most > 0 {
		if at := time.Now().Add(most); at.Before(due) {
			due, t.within = at, most
		}
	}
	if !due.Equal(t.due) {
		t.due = due
		t.deadline.Reset(time.Until(due))
	}
}

// expire ends a task that is due: its agent is told to stop, its requester that the
// time is up. Both happen at once, so that an agent that stops quickly does not make a
// cancelled task of it.
func (t *Task) expire() {
	t.mu.Lock()
	left := time.Until(t.due)
	if t.state != Ended && left > 0 { // another agent has it since just now, or somebody set the clock
		t.deadline.Reset(left)
	}
	if t.state == Ended || left > 0 {
		t.mu.Unlock()
		return
	}
	t.timeOutTools()
	if t.state == Running && !t.asked {
		t.asked = true
		t.append(core.CancelRequested{By: "hub", Reason: "deadline"}, nil)
	}
	t.receipt.Stage, t.receipt.At = core.StageExpired, time.Now()
	t.append(core.Failed{Fault: t.overtime()}, nil)
	worker := t.worker
	t.mu.Unlock()
	t.store.host.Ended(t, worker)
}

// overtime is how a task ends that is due. Callers hold mu.
func (t *Task) overtime() *core.Fault {
	if t.within > 0 {
		return core.NewFault(core.CodeTimeout, "no answer within the %s that agent %s takes for a task at most", t.within, t.agent)
	}
	return core.NewFault(core.CodeTimeout, "no answer by the deadline of %s", t.due.UTC().Round(time.Millisecond).Format(time.RFC3339Nano))
}
