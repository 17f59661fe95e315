package task

import (
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// Due returns when the task must have ended: at its deadline, or earlier if its agent has a
// maximum time for a task.
func (t *Task) Due() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.due
}

// Deadline returns when the requester stops waiting.
func (t *Task) Deadline() time.Time { return t.request.Deadline }

// setDue sets when the task is due, given the maximum time of its agent; zero means the
// deadline. Callers hold mu.
func (t *Task) setDue(most time.Duration) {
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

// expire ends a task that is due: it tells the agent to stop and the requester that the task
// timed out. Both happen under one lock, so that an agent that stops quickly does not end
// the task as cancelled.
func (t *Task) expire() {
	t.mu.Lock()
	if t.mirror { // its owner has the deadline
		t.mu.Unlock()
		return
	}
	left := time.Until(t.due)
	if t.state != Ended && left > 0 { // it has just got another agent, or the clock was set
		t.deadline.Reset(left)
	}
	if t.state == Ended || left > 0 {
		t.mu.Unlock()
		return
	}
	end := core.Failed{Fault: t.timeoutFault()}
	t.closeTools(end) // before the agent is told, who would only hear of a cancel
	if t.state == Running && !t.cancelling {
		t.cancelling = true
		t.append(core.CancelRequested{By: "hub", Reason: "deadline"}, nil)
	}
	t.receipt.Stage, t.receipt.At = core.StageExpired, time.Now()
	t.append(end, nil)
	worker := t.worker
	t.mu.Unlock()
	t.store.host.Ended(t, worker)
}

// timeoutFault returns the Fault of a task that is due. Callers hold mu.
func (t *Task) timeoutFault() *core.Fault {
	if t.within > 0 {
		return core.NewFault(core.CodeTimeout, "no answer within the %s that agent %s takes for a task at most", t.within, t.agent)
	}
	return core.NewFault(core.CodeTimeout, "no answer by the deadline of %s", t.due.UTC().Round(time.Millisecond).Format(time.RFC3339Nano))
}
