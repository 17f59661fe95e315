package task

import (
	"sync"
	"time"
)

// A deadline that is a default bounds machines, not people: it does not count how long people are waited
// for, here or in a task below that the agent waits for. An agent that hangs is not waited for that long:
// it may be silent only for Limits.Silence while it works alone.

// patience is what a task knows of those it waits for. Its lock is taken below all others, but for those of
// the tasks above.
type patience struct {
	mu     sync.Mutex
	ended  bool
	above  []*Task   // the tasks because of which it was opened, until it ends
	below  int       // how many tasks were opened because of it and have not ended
	people int       // whether the task itself waits for people, and how many tasks below do
	since  time.Time // the first of those
	waited time.Duration
	heard  time.Time // when it last ceased to wait for people or for a task below
}

// SetDefaultDeadline says, before the task is opened, that its deadline is not the requester's own: see
// [core.Opened].
func (t *Task) SetDefaultDeadline() { t.byDefault = true }

// HasDefaultDeadline reports whether its deadline is not the requester's own.
func (t *Task) HasDefaultDeadline() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byDefault
}

// SetAbove says, before the task is opened, because of which tasks it is: they are not silent as long as it
// has not ended, and wait for people with it.
func (t *Task) SetAbove(above []*Task) { t.patience.above = above }

// await notes how many more people are waited for.
func (p *patience) await(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.set(max(0, p.people+n))
	}
}

// set notes how many people are waited for. Callers hold the lock.
func (p *patience) set(people int) {
	before := p.people
	p.people = people
	change := 0
	switch now := time.Now(); {
	case before == 0 && people > 0:
		p.since, change = now, 1
	case before > 0 && people == 0:
		p.waited += now.Sub(p.since)
		p.heard, change = now, -1
	default:
		return
	}
	for _, a := range p.above {
		a.patience.await(change)
	}
}

// begin tells the tasks above that this one has begun.
func (p *patience) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tell(1)
}

// end tells them that it has ended.
func (p *patience) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set(0)
	p.tell(-1)
	p.above, p.ended = nil, true
}

// tell tells the tasks above how many more are below them. Callers hold the lock.
func (p *patience) tell(more int) {
	for _, a := range p.above {
		a.patience.mu.Lock()
		a.patience.below += more
		a.patience.heard = time.Now()
		a.patience.mu.Unlock()
	}
}

// waitedFor returns for how long people were waited for, and whether they are now.
func (p *patience) waitedFor(now time.Time) (d time.Duration, still bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.people > 0 {
		return p.waited + now.Sub(p.since), true
	}
	return p.waited, false
}

// alone returns since when neither people nor tasks below are waited for; false if they are.
func (p *patience) alone() (since time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.heard, p.people == 0 && p.below == 0
}

// noteWaits notes whether decisions or answers are waited for from now on. Callers hold mu.
func (t *Task) noteWaits() {
	if waits := t.machine.waits(); waits != t.waiting {
		t.waiting = waits
		change := 1
		if !waits {
			change = -1
		}
		t.patience.await(change)
	}
}

// lastly returns the deadline, given how long people were waited for, and whether they are now. However long
// that was, it is no further from the beginning than Limits.MaxDeadline. Callers hold mu.
func (t *Task) lastly(now time.Time) (at time.Time, waits bool) {
	at = t.request.Deadline
	waited, waits := t.patience.waitedFor(now)
	if !t.byDefault || waited == 0 {
		return at, waits
	}
	moved := at.Add(waited)
	if latest := t.began.Add(t.store.limits.MaxDeadline); latest.Before(moved) {
		moved = latest
	}
	if moved.Before(at) {
		moved = at
	}
	return moved, waits
}

// minds reports whether the task ends if its agent is silent. Callers hold mu.
func (t *Task) minds() bool {
	return t.byDefault && t.store.limits.Silence > 0 && !t.IsNotice()
}

// silentAt returns when the agent has been silent for too long unless it says something before, and false while nothing
// is expected of it. Callers hold mu.
func (t *Task) silentAt() (at time.Time, expected bool) {
	since, alone := t.patience.alone()
	if !t.minds() || t.state != Running || !alone {
		return at, false
	}
	if heard := t.log.Last().At; heard.After(since) {
		since = heard
	}
	return since.Add(t.store.limits.Silence), true
}
