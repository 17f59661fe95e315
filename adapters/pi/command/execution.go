package command

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Execution is one admitted command.
type Execution struct {
	Command
	// Owner belongs to the host.
	Owner    any
	engine   *Engine
	client   *Client
	tracked  *tracked
	admitted time.Time
	lane     *lane   // nil of a command that overtook
	target   Session // the session that the command was admitted for; nil if there was none
	session  Session // the session that it is for, once it runs
	// prior is the outcome from before the restart of a command that is executed again; nil
	// of every other.
	prior        *response
	lifecycleBuf []byte // room for the frames of the lifecycle events to come
	// abort stops what the handler does, when the time of the command is over; nil stops
	// nothing. It is called in a turn.
	abort func()

	// queued says that success is about a message that is queued in memory.
	queued bool

	// started says that command_started was sent, working that the handler has not ended,
	// settled that the outcome is certain, answered that it was sent.
	started, working, settled, answered bool
	// journalPending says that the journal does not have the command yet, heldForJournal that
	// the command waits for that.
	journalPending, heldForJournal bool

	// dependsOn are the ids that the command depends on, of which the first dependenciesMet
	// have succeeded; awaiting is the one that it waits for.
	dependsOn       []string
	dependenciesMet int
	awaiting        *tracked
	dependencyTimer *time.Timer

	// timer ends the command when its time is over. noTimeout leaves that to the hub, at the
	// deadline of a prompt's task.
	timer     *time.Timer
	noTimeout bool
	expired   bool
}

// Outcome is the result of a handler. The zero Outcome is success without data.
type Outcome struct {
	Data     json.RawMessage
	Err      string
	TimedOut bool
	// After is called after the response was sent.
	After func()
	// Pending says that the command ends with a call of [Execution.Finish].
	Pending bool
}

// Failed returns the outcome of a command that failed.
func Failed(text string) Outcome { return Outcome{Err: text} }

// Name returns the id of the command, or the synthetic one.
func (x *Execution) Name() string { return x.tracked.name }

// Number returns the place of the command among all that were admitted.
func (x *Execution) Number() uint64 { return x.tracked.number }

// Admitted returns when the command was admitted.
func (x *Execution) Admitted() time.Time { return x.admitted }

// Settled reports whether the outcome is certain.
func (x *Execution) Settled() bool { return x.settled }

// Expired reports whether the command took too long.
func (x *Execution) Expired() bool { return x.expired }

// SetSession sets the session that the command is for.
func (x *Execution) SetSession(ss Session) { x.session = ss }

// OnAbort sets what stops the handler when the time of the command is over.
func (x *Execution) OnAbort(stop func()) { x.abort = stop }

// DisableTimeout leaves the time limit of the command to the hub, which keeps the deadline
// of a task.
func (x *Execution) DisableTimeout() { x.noTimeout = true }

// MarkQueued notes that success is about a message that is queued in memory.
func (x *Execution) MarkQueued() { x.queued = true }

// IsRedo reports whether the command succeeded before the restart and is executed again.
func (x *Execution) IsRedo() bool { return x.prior != nil }

// CheckVersion returns why ifSessionVersion does not match the session, or "" (section 10).
func (x *Execution) CheckVersion(ss Session, version int) string {
	want, ok := x.whole("ifSessionVersion")
	switch {
	case !ok || x.prior != nil:
		return ""
	case ss == nil:
		return fmt.Sprintf("Session %s not found for ifSessionVersion=%d", x.Session, want)
	case int64(version) != want:
		return fmt.Sprintf("Session version mismatch: expected %d, got %d", want, version)
	}
	return ""
}

// Work runs do on a worker, since it waits for a disk. The command settles with what do
// returns unless that is pending. The context ends with the workers.
func (x *Execution) Work(q *Jobs, do func(context.Context) Outcome) Outcome {
	x.abort = func() {
		if q.waiting.Remove(func(j job) bool { return j.x == x }) {
			x.working = false
		}
	}
	q.waiting.Put(job{x: x, do: func(ctx context.Context) {
		o := do(ctx)
		x.engine.mu.Lock()
		defer x.engine.mu.Unlock()
		if !o.Pending {
			x.Finish(o)
		}
	}})
	return Outcome{Pending: true}
}

// execute starts a command (section 7.2).
func (x *Execution) execute() {
	if x.heldForJournal = x.journalPending; x.heldForJournal {
		return // the journal calls execute again
	}
	if !x.started {
		x.started = true
		x.recordStarted()
		x.announce(PhaseStarted, time.Now(), nil)
	}
	x.proceed()
}

// proceed calls the handler of a command that has started, once all that it depends on
// has succeeded.
func (x *Execution) proceed() {
	e := x.engine
	waits, problem := x.awaitDependencies()
	switch {
	case waits:
		return
	case problem != "":
		x.Settle(Failed(problem))
		return
	case x.lane == nil && !x.Spec.Control && !x.overtakes():
		x.enqueue() // what it was to overtake has ended meanwhile
		return
	}
	x.working = true
	if o := e.host.Perform(x); !o.Pending {
		x.working = false
		x.Settle(o)
	}
}

// Finish ends a command whose handler returned a pending outcome. An outcome that comes
// too late only releases the lane (section 11).
func (x *Execution) Finish(o Outcome) {
	x.working = false
	x.Settle(o)
	x.releaseLane()
}

// Settle makes the outcome of a command certain; only the first call counts. While the
// handler works, the lane waits for Finish.
func (x *Execution) Settle(o Outcome) {
	e := x.engine
	if x.settled {
		return
	}
	x.settled = true
	x.stopTimers()
	if x.expired {
		o = Outcome{Err: TimedOut(x.Kind, e.timeout(x.Command)), TimedOut: true}
	}
	r := response{data: o.Data, err: o.Err, timedOut: o.TimedOut}
	if x.session != nil && o.Err == "" {
		r.version, r.hasVersion = x.session.Succeeded(x.Spec.Mutates)
	}
	x.recordOutcome(r, o.After)
}

// conclude remembers the outcome of a command, sends it, and resumes what waited for it.
func (e *Engine) conclude(x *Execution, r response, after func()) {
	k := x.tracked
	delete(e.inFlight, x)
	e.inFlightBytes -= x.size
	defer func() {
		e.executed++
		e.checkIdle()
	}()
	now := time.Now()
	e.replay.settle(k, r, now)
	x.respond(now, r)
	if after != nil {
		after()
	}
	duplicates, dependents := k.duplicates, k.dependents
	k.duplicates, k.dependents = nil, nil
	e.duplicates -= len(duplicates)
	for _, duplicate := range duplicates {
		e.answerDuplicate(duplicate, now, r)
	}
	x.answered = true
	x.releaseLane()
	e.wake(k, dependents)
}

// respond sends exactly one command_finished and then the response (facts, section 2.2).
func (x *Execution) respond(at time.Time, r response) {
	x.announce(phaseFinished, at, &r)
	x.engine.host.Respond(x, appendResponse(nil, x.Command, r))
	x.engine.answered(x.client)
}

// announce adds a phase of the command to the history and sends its lifecycle event.
func (x *Execution) announce(p phase, at time.Time, r *response) {
	x.engine.journal.note(x.tracked, p, at, r)
	x.engine.host.Announce(x, x.lifecycle(p, r))
}

// lifecycle returns the frame of a lifecycle event of the command; r is set for the last
// only. The frames of a command share one buffer.
func (x *Execution) lifecycle(p phase, r *response) []byte {
	identity := x.tracked.identity
	if x.lifecycleBuf == nil {
		x.lifecycleBuf = make([]byte, 0, 3*(len(identity)+48)+64)
	}
	b := x.lifecycleBuf
	b = append(b, `{"type":"`...)
	b = append(append(append(b, p...), `","data":{`...), identity...)
	if r != nil {
		b = appendOutcome(b, *r, false)
	}
	b = append(b, '}', '}')
	if cap(b) == cap(x.lifecycleBuf) { // it did not outgrow the buffer
		x.lifecycleBuf = b[len(b):]
	}
	return b[:len(b):len(b)]
}
