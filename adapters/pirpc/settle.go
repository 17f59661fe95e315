package pirpc

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pirpc/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/timer"
)

const (
	// recheckAfter is when the state is asked for again if pi was between two things; each time
	// twice as late, until recheckMost.
	recheckAfter = 100 * time.Millisecond
	recheckMost  = 2 * time.Second
	// fewTimes is how often what pi does for one prompt makes the hub ask without a pause: each retry,
	// compaction and queued message begins a run.
	fewTimes = 8
	// patience is how often the state is asked for while pi is idle and more should come: messages
	// are queued (up to version 0.74 those that came too late stay until the next prompt), or the
	// end of the run may have been among the lines that were lost.
	patience = 4
)

// advance handles the events that say whether pi still works. A run ends at agent_settled where
// pi sends it (from 0.80.4 on). Older versions begin retries, compactions and queued messages right
// after agent_end, and do not say when nothing follows: then the answer to get_state, which comes
// after those events, tells.
func (r *run) advance(e wire.Event) error {
	switch e := e.(type) {
	case *wire.RunStart:
		r.open, r.rechecks = true, 0
		if r.isCancelled() {
			r.aborts.do(r, r.abort) // the cancel came before pi had begun
		}
	case *wire.RunEnd:
		r.open, r.coming, r.settles = false, false, e.Settles
		if !r.settles {
			r.check()
		}
	case *wire.Settled:
		r.finish()
	case *wire.Retry:
		if r.coming = !e.End; e.End {
			r.checkIdle()
		}
		name := "auto_retry_start"
		if e.End {
			name = "auto_retry_end"
		}
		return r.foreign(name, e.Raw)
	case *wire.Compaction:
		name := "compaction_start"
		if e.End {
			name, r.coming = "compaction_end", e.WillRetry
			if !e.WillRetry {
				r.checkIdle()
			}
		}
		return r.foreign(name, e.Raw)
	}
	return nil
}

// checkIdle checks whether pi still works, unless events will tell.
func (r *run) checkIdle() {
	if !r.open && !r.settles {
		r.check()
	}
}

// check asks the process for its state, at once or soon, unless that is under way.
func (r *run) check() {
	r.mu.Lock()
	under := r.checking || r.isOver
	r.checking = true
	r.mu.Unlock()
	if under {
		return
	}
	r.checks.do(r, func() {
		_ = r.proc.ask(r.telling(0), wire.CommandState, r.checked) // an error is that of the link, which ends the run too
	})
}

// again is what the events of pi make the hub do: at once the first fewTimes, then with pauses. run.mu
// guards it.
type again struct {
	pace  timer.Pace
	times int
	due   bool
}

func newAgain() again { return again{pace: timer.Pace{First: recheckAfter, Most: recheckMost}} }

// do calls f, unless that is due already, or the task is over before.
func (a *again) do(r *run, f func()) {
	r.mu.Lock()
	if a.due {
		r.mu.Unlock()
		return
	}
	a.due = true
	var after time.Duration
	if a.times++; a.times > fewTimes {
		after = a.pace.Next()
	}
	r.mu.Unlock()
	now := func() {
		r.mu.Lock()
		a.due = false
		r.mu.Unlock()
		f()
	}
	if after == 0 {
		now()
		return
	}
	r.later(after, now)
}

// checked handles the state.
func (r *run) checked(a *wire.Response) {
	r.mu.Lock()
	r.checking = false
	answered, cancelled := r.answered, r.cancelled != nil
	r.mu.Unlock()
	s, err := a.State()
	switch {
	case err != nil || !a.Success || !answered:
		return // without a state only an event ends the run
	case r.open && (!r.gap || s.Streaming), (r.coming || r.settles) && !cancelled:
		return // events will tell; agent_end may come after the state, behind handlers of extensions
	case s.Idle() && !r.open:
		r.finish()
		return
	case !s.Streaming && !s.Compacting && r.rechecks >= patience:
		r.desert(s.Pending, cancelled)
		return
	}
	after := min(recheckAfter<<min(r.rechecks, 10), recheckMost)
	r.rechecks++
	r.later(after, r.check)
}

// desert finishes the run although pi may have messages that it has not read. The next task must not do what a
// cancelled one was told.
func (r *run) desert(pending int, cancelled bool) {
	if pending > 0 {
		r.opts.Count(countUnread)
	}
	r.mu.Lock()
	r.deserted = r.deserted || cancelled
	r.mu.Unlock()
	r.finish()
}

// later calls f after a time, unless the run is over before.
func (r *run) later(after time.Duration, f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isOver {
		return
	}
	r.running.Go(func() {
		t := time.NewTimer(after)
		defer t.Stop()
		select {
		case <-t.C:
			f()
		case <-r.over:
		}
	})
}

// finish ends the run. Only the first call counts.
func (r *run) finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.isOver {
		r.isOver = true
		close(r.over)
	}
}

// end reports what is left and the end of the task, once the run is over.
func (r *run) end() (usable bool, err error) {
	r.handling.Lock() // an event may still be handled
	defer r.handling.Unlock()
	r.proc.setBusy(false) // its agent_end may have been lost
	r.mu.Lock()
	failure, cancelled, usable := r.failure, r.cancelled, !r.deserted
	unanswered := r.injected
	r.injected = map[string]bool{}
	for _, in := range r.early {
		unanswered[in.ID] = true
	}
	r.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(unanswered)) {
		_ = r.framed.Report(core.InjectionAnswered{ID: id, Reason: "the answer was complete before"}, nil)
	}
	switch {
	case failure != nil:
		return usable, failure
	case cancelled != nil && r.last.StopReason != wire.StopDone && r.last.StopReason != wire.StopLength:
		return usable, r.framed.Report(core.Cancelled{Reason: cancelled.Reason}, nil)
	case r.last.StopReason == wire.StopAborted:
		return usable, r.framed.Report(core.Cancelled{Reason: cmp.Or(r.last.ErrorMessage, "pi was aborted")}, nil)
	case r.last.StopReason == wire.StopError:
		r.frames.Reported(core.KindFailed, false) // by the host
		return usable, core.NewFault(core.CodeInternal, "%s", cmp.Or(r.last.ErrorMessage, "the model failed, and pi does not say why"))
	case r.speech.hole:
		return usable, core.NewFault(core.CodeTooLarge, "a line of pi with the rest of the answer is longer than %d bytes", wire.MaxLine)
	}
	r.mu.Lock()
	r.done = true
	r.mu.Unlock()
	return usable, r.framed.Report(core.Done{Truncated: r.last.StopReason == wire.StopLength}, nil)
}
