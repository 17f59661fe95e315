package rest

import (
	"context"
	"errors"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/recorder"
	"github.com/dragoman-hub/dragoman/core/task"
)

// recordTimeout is how long a client waits for a journal that does not answer, and
// healthInterval how often the health of the journal is checked meanwhile.
const (
	recordTimeout  = 30 * time.Second
	healthInterval = time.Second
)

// recorded waits until the journal has the events of the task up to seq.
func (a *api) recorded(c call, t *task.Task, seq uint64) error {
	for began := time.Now(); ; {
		err := within(c.r.Context(), healthInterval, func(ctx context.Context) error { return a.hub.Recorded(ctx, t, seq) })
		if !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		f := core.NewFault(core.CodeTimeout, "the task was accepted, but the journal has not confirmed it within %s: check its state before you ask again", recordTimeout)
		switch why := a.hub.JournalHealth().Err; {
		case why != nil && !errors.Is(why, recorder.ErrUnanswered): // else it may be recorded any moment
			f = core.NewFault(core.CodeOverloaded, "the task was accepted, but cannot be recorded now: %s; check its state before you ask again", why)
		case time.Since(began) < recordTimeout:
			continue
		}
		f.Retryable = false // a second request would be a second task
		return &refusal{err: f.Because(err), task: t.ID()}
	}
}

// within calls wait with a context that ends after d.
func within(ctx context.Context, d time.Duration, wait func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return wait(ctx)
}

// receipt returns the stage that the task has reached, at least the one that was waited for.
func receipt(t *task.Task, waited core.Stage) core.Receipt {
	r := t.Receipt()
	if waited == core.StageRecorded && r.Stage < core.StageRecorded {
		r.Stage, r.At = core.StageRecorded, time.Now()
	}
	return r
}
