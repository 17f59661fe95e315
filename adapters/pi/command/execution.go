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
	// Owner is what the host knows of it.
	Owner    any
	engine   *Engine
	client   *Client
	known    *known
	admitted time.Time
	lane     *lane   // nil of a command that overtook
	meant    Session // which it was admitted for, if there was one
	on       Session // which it is for, once it runs
	// before is what came of it before the start, of a command that is done again; nil of
	// every other.
	before *response
	phases []byte // room for the frames of its lifecycle events to come
	// abort stops what a command does that goes on, when its time is over; nil has
	// nothing to stop. It is called in a turn.
	abort func()

	// queued says that it succeeds because its message waits in memory.
	queued bool

	// How far it is. started says that command_started was said, working that its
	// handler goes on, settled that its outcome is certain and told that clients have
	// been told.
	started, working, settled, answered bool
	// unrecorded says that the journal does not have it yet, held that it waits for that.
	unrecorded, held bool

	// depends are the ids that it depends on, of which met are satisfied; awaited is
	// the one that it waits for.
	depends         []string
	dependenciesMet int
	awaited         *known
	waiting         *time.Timer

	// clock ends it when its time is over. Guarded says that somebody else does: the
	// hub, at the deadline of a prompt's task.
	clock   *time.Timer
	guarded bool
	expired bool
}

// Outcome is what a handler says. The zero outcome is success without data.
type Outcome struct {
	Data     json.RawMessage
	Err      string
	TimedOut bool
	// After runs behind the response.
	After func()
	// Pending says that the command goes on: finish is called later.
	Pending bool
}

// Failed is the outcome of a command that failed.
func Failed(text string) Outcome { return Outcome{Err: text} }

// ranOut is the outcome of a command that took too long.
func ranOut(what string, after time.Duration) Outcome {
	return Outcome{Err: TimedOut(what, after), TimedOut: true}
}

// Name is the id of the command, or the synthetic one.
func (x *Execution) Name() string { return x.known.name }

// Number is the place of the command among all that were admitted.
func (x *Execution) Number() uint64 { return x.known.number }

// Admitted is when the command was admitted.
func (x *Execution) Admitted() time.Time { return x.admitted }

// Settled reports whether the outcome is certain.
func (x *Execution) Settled() bool { return x.settled }

// Expired reports whether the command took too long.
func (x *Execution) Expired() bool { return x.expired }

// SetSession says for which session the command is.
func (x *Execution) SetSession(ss Session) { x.on = ss }

// OnAbort says what stops the command when its time is over.
func (x *Execution) OnAbort(stop func()) { x.abort = stop }

// DisableTimeout leaves the time of the command to somebody else: to the hub, which keeps the
// deadline of a task.
func (x *Execution) DisableTimeout() { x.guarded = true }

// MarkQueued notes that the success of the command is about a message that waits in memory.
func (x *Execution) MarkQueued() { x.queued = true }

// IsRedo reports whether the command came to a success before the start, and is done
// again.
func (x *Execution) IsRedo() bool { return x.before != nil }

// Find returns the session that the command is for now, or nil.
func (x *Execution) Find() Session { return x.engine.find(x) }

// CheckVersion returns why the command is not for the session as it stands, or "" (section
// 10).
func (x *Execution) CheckVersion(ss Session, version int) string {
	want, ok := x.whole("ifSessionVersion")
	switch {
	case !ok || x.before != nil:
		return ""
	case ss == nil:
		return fmt.Sprintf("Session %s not found for ifSessionVersion=%d", x.Session, want)
	case int64(version) != want:
		return fmt.Sprintf("Session version mismatch: expected %d, got %d", want, version)
	}
	return ""
}

// Work has do run by a worker, since it waits for a disk: the command settles with what it
// returns, unless that is pending on something else. The context ends with the workers.
func (x *Execution) Work(q *Jobs, do func(context.Context) Outcome) Outcome {
	x.abort = func() {
		if q.withdraw(x) {
			x.working = false
		}
	}
	q.put(job{X: x, do: func(ctx context.Context) {
		o := do(ctx)
		x.engine.mu.Lock()
		defer x.engine.mu.Unlock()
		if !o.Pending {
			x.Finish(o)
		}
	}})
	return Outcome{Pending: true}
}

// execute begins a command (section 7.2).
func (x *Execution) execute() {
	e := x.engine
	if x.held = x.unrecorded; x.held {
		return // it begins once the journal has it
	}
	if !x.started {
		x.started = true
		x.recordStarted()
		e.journal.note(x.known, PhaseStarted, time.Now(), nil)
		e.host.Announce(x, x.lifecycle("started", nil))
	}
	x.proceed()
}

// proceed does what a command that has begun asks for, once what it depends on has
// succeeded.
func (x *Execution) proceed() {
	e := x.engine
	waits, problem := x.await()
	switch {
	case waits:
		return
	case problem != "":
		x.Settle(Failed(problem))
		return
	case x.lane == nil && !x.Spec.Control && !x.overtakes():
		x.enqueue() // what it was to go beside has ended meanwhile
		return
	}
	x.working = true
	if o := e.host.Perform(x); !o.Pending {
		x.working = false
		x.Settle(o)
	}
}

// Finish says what came of a command that went on. What comes too late changes
// nothing but that its lane goes on (section 11).
func (x *Execution) Finish(o Outcome) {
	x.working = false
	x.Settle(o)
	x.release()
}

// Settle makes the outcome of a command certain, the first time that it is called. While
// its handler goes on its lane waits for Finish.
func (x *Execution) Settle(o Outcome) {
	e := x.engine
	if x.settled {
		return
	}
	x.settled = true
	x.stopClocks()
	if x.expired {
		o = ranOut(x.Kind, e.timeout(x.Command))
	}
	r := response{data: o.Data, err: o.Err, timedOut: o.TimedOut}
	if x.on != nil && o.Err == "" {
		r.version, r.hasVersion = x.on.Succeeded(x.Spec.Mutates)
	}
	x.recordOutcome(r, o.After)
}

// conclude tells everybody what came of a command, remembers it, and lets go on what
// waited for it.
func (e *Engine) conclude(x *Execution, r response, after func()) {
	k := x.known
	delete(e.inFlight, x)
	e.inFlightBytes -= x.size
	defer func() {
		e.executed++
		e.checkIdle()
	}()
	now := time.Now()
	e.memory.remember(k, r, now)
	x.tell(now, r)
	if after != nil {
		after()
	}
	again, dependents := k.duplicates, k.dependents
	k.duplicates, k.dependents = nil, nil
	e.duplicates -= len(again)
	for _, duplicate := range again {
		e.answerDuplicate(duplicate, now, r)
	}
	x.answered = true
	x.release()
	e.wake(k, dependents)
}

// tell tells what came of a command: exactly one command_finished, then the response
// (facts, section 2.2).
func (x *Execution) tell(at time.Time, r response) {
	e := x.engine
	e.journal.note(x.known, phaseFinished, at, &r)
	e.host.Announce(x, x.lifecycle("finished", &r))
	x.client.Sink.Send(appendResponse(nil, x.Command, r))
	e.answered(x.client)
}
