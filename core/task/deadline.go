package task

import (
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// A task has one alarm. It is set to when the hub may have to act: at the deadline, when the agent's own time or
// the grace of a cancel is over, when the agent is silent, or when a call was to be decided on. An event that puts this
// off does not set it: it then fires early, finds nothing due, and is set again.

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

// rearm sets the alarm, if the hub owns the task. Callers hold mu.
func (t *Task) rearm() {
	if t.alarm != nil && !t.remote && t.state != Ended {
		now := time.Now()
		t.alarm.Reset(t.wakes(now).Sub(now))
	}
}

// wakes returns when the hub has to look next. That is never later than an agent may be silent, so that
// no event has to set the alarm; nor has the end of a wait for people, since what is left does not change until then.
// Callers hold mu.
func (t *Task) wakes(now time.Time) time.Time {
	at, _ := t.due(now)
	if soon := now.Add(leastSleep); at.Before(soon) && t.waitsForPeople(now) {
		at = soon
	}
	if t.minds() {
		quiet := now.Add(t.store.limits.Silence)
		if until, silent := t.silentAt(); silent {
			quiet = until
		}
		at = earlier(at, quiet)
	}
	if !t.grace.IsZero() {
		at = earlier(at, t.grace)
	}
	for _, p := range t.pending {
		at = earlier(at, p.since.Add(t.decideIn))
	}
	return at
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// leastSleep keeps a task that waits for people just before its deadline from looking all the time.
const leastSleep = time.Second

func (t *Task) waitsForPeople(now time.Time) bool {
	_, waits := t.lastly(now)
	return t.byDefault && waits
}

// act does what is due: it denies calls on which nobody has decided in time, and ends a task that is over.
func (t *Task) act() {
	t.mu.Lock()
	if t.remote || t.state == Ended { // its owner acts
		t.mu.Unlock()
		return
	}
	now := time.Now()
	t.denyOverdue(now)
	unanswered := !t.grace.IsZero() && !t.grace.After(now)
	fault, reason := t.over(now)
	switch {
	case unanswered:
		t.append(core.Cancelled{Reason: t.reason}, nil)
	case fault != nil:
		t.expire(now, fault, reason)
	default: // it waits, has another agent or heard of it, or the clock was set
		t.rearm()
		t.mu.Unlock()
		return
	}
	worker := t.worker
	t.mu.Unlock()
	t.store.host.Ended(t, worker)
	if unanswered {
		t.store.host.CancelUnanswered(t)
	}
}

// expire ends a task that is due or whose agent is silent: it tells the agent to stop and the requester that the
// task timed out. Both happen under one lock, so that an agent that stops quickly does not end
// the task as cancelled. Callers hold mu.
func (t *Task) expire(now time.Time, fault *core.Fault, reason string) {
	end := core.Failed{Fault: fault}
	t.close(end) // before the agent is told, who would only hear of a cancel
	if t.state == Running && !t.cancelling {
		t.append(core.CancelRequested{By: hubName, Reason: reason}, nil)
	}
	t.receipt.Stage, t.receipt.At = core.StageExpired, now
	t.append(end, nil)
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
