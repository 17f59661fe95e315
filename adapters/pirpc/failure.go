package pirpc

import (
	"errors"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
)

// abortGrace is how long pi may take to stop after an error of ours. After a cancel the host has a
// grace of its own.
const abortGrace = 10 * time.Second

// stop ends the run for an error: pi is told to stop, and the task fails once it has.
func (r *run) stop(err error) {
	if errors.Is(err, errDiverged) {
		r.opts.Count(countDiverged)
		err = core.NewFault(core.CodeUnreachable, "the model broke off in the middle of its answer, and pi's retry answers differently: ask again")
	}
	if r.fail(err) {
		r.abort()
		r.later(abortGrace, func() {
			r.mu.Lock()
			r.deserted = true
			r.mu.Unlock()
			r.finish()
		})
	}
}

// fail sets why the task fails, and reports whether it is the first reason.
func (r *run) fail(err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure != nil {
		return false
	}
	r.failure = err
	return true
}

// lost handles the end of the process.
func (r *run) lost(reason link.Reason) {
	f := reason.Fault()
	if reason.Cause != link.ShuttingDown {
		f = core.NewFault(core.CodeUnreachable, "pi ended in the middle of the task: %s", reasonText(&reason)).Because(&reason)
	}
	r.mu.Lock()
	r.deserted = true
	r.mu.Unlock()
	r.fail(f)
	r.finish()
}

// lostLine handles the loss of a line: of which kind it was is unknown. The end of the message has
// its whole text, and the state whether the end of the run was lost.
func (r *run) lostLine() {
	r.handling.Lock()
	r.gap, r.rechecks = true, 0
	r.speech.hole = r.speech.hole || r.message
	r.handling.Unlock()
	r.check()
}
