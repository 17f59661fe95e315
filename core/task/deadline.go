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
	due, _ := t.due(time.Now())
	return due
}

// Deadline returns when the requester stops waiting: that of the request, or where this is a default
// ([core.Opened]) and people were waited for, that much later.
func (t *Task) Deadline() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, _ := t.lastly(time.Now())
	return at
}

// due is Due, and says whether it is the maximum time of the agent. Callers hold mu.
func (t *Task) due(now time.Time) (due time.Time, ofAgent bool) {
	due, _ = t.lastly(now)
	if t.within > 0 && t.limit.Before(due) {
		return t.limit, true
	}
	return due, false
}

// limitTo sets the maximum time of the agent that gets the task; zero means until the deadline. Callers
// hold mu.
func (t *Task) limitTo(most time.Duration) {
	if t.within = most; most > 0 {
		t.limit = time.Now().Add(most)
		t.rearm()
	}
}

// rearm sets the timer to when there may be something to do next. Callers hold mu.
func (t *Task) rearm() {
	if t.deadline != nil && !t.remote && t.state != Ended {
		now := time.Now()
		t.deadline.Reset(t.wakes(now).Sub(now))
	}
}

// wakes returns when the timer is to look next. It never waits for longer than an agent may be silent, so that
// no event has to set it; nor has the end of a wait for people, since what is left does not change until then.
// Callers hold mu.
func (t *Task) wakes(now time.Time) time.Time {
	at, _ := t.due(now)
	if soon := now.Add(leastSleep); at.Before(soon) && t.waitsForPeople(now) {
		at = soon
	}
	if !t.minds() {
		return at
	}
	quiet := now.Add(t.store.limits.Silence)
	if until, silent := t.silentAt(); silent {
		quiet = until
	}
	if quiet.Before(at) {
		return quiet
	}
	return at
}

// leastSleep keeps a task that waits for people just before its deadline from looking all the time.
const leastSleep = time.Second

func (t *Task) waitsForPeople(now time.Time) bool {
	_, waits := t.lastly(now)
	return t.byDefault && waits
}

// expire ends a task that is due or whose agent is silent: it tells the agent to stop and the requester that the
// task timed out. Both happen under one lock, so that an agent that stops quickly does not end
// the task as cancelled.
func (t *Task) expire() {
	t.mu.Lock()
	if t.remote { // its owner has the deadline
		t.mu.Unlock()
		return
	}
	now := time.Now()
	fault, reason := t.over(now)
	if t.state != Ended && fault == nil { // it waits, has another agent or heard of it, or the clock was set
		t.rearm()
	}
	if t.state == Ended || fault == nil {
		t.mu.Unlock()
		return
	}
	end := core.Failed{Fault: fault}
	t.close(end) // before the agent is told, who would only hear of a cancel
	if t.state == Running && !t.cancelling {
		t.cancelling = true
		t.append(core.CancelRequested{By: hubName, Reason: reason}, nil)
	}
	t.receipt.Stage, t.receipt.At = core.StageExpired, now
	t.append(end, nil)
	worker := t.worker
	t.mu.Unlock()
	t.store.host.Ended(t, worker)
}

// The reasons of a CancelRequested by the hub of a task that times out.
const (
	ReasonDeadline = "deadline"
	ReasonSilence  = "silence"
)

// over returns why a task ends now, and the reason that its agent is told; nil if it goes on. Callers hold mu.
func (t *Task) over(now time.Time) (f *core.Fault, reason string) {
	due, ofAgent := t.due(now)
	switch {
	case ofAgent && !due.After(now):
		return core.NewFault(core.CodeTimeout, "no answer within the %s that agent %s takes for a task at most", t.within, t.agent), ReasonDeadline
	case !due.After(now):
		return core.NewFault(core.CodeTimeout, "no answer by the deadline of %s", due.UTC().Round(time.Millisecond).Format(time.RFC3339Nano)), ReasonDeadline
	}
	if at, silent := t.silentAt(); silent && !at.After(now) {
		return core.NewFault(core.CodeTimeout, "agent %s said nothing for %s (limits.silence): set a deadline of your own if it may be silent for longer", t.agent, t.store.limits.Silence), ReasonSilence
	}
	return nil, ""
}
