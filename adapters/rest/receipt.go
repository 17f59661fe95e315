package rest

import (
	"context"
	"errors"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// recordTimeout is how long a client waits for a journal that does not answer.
const recordTimeout = 30 * time.Second

// recorded waits until the journal has the task up to seq.
func (a *api) recorded(c call, t *hub.Task, seq uint64) error {
	ctx, cancel := context.WithTimeout(c.r.Context(), recordTimeout)
	defer cancel()
	err := t.Recorded(ctx, seq)
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	why := ""
	if a.hub.JournalHealth().Err != nil {
		why = ", since it takes no records at present (GET /v1/hub tells why)"
	}
	f := core.NewFault(core.CodeTimeout, "the task was taken in, and the journal has not confirmed it in %s%s: see what became of it before you ask again", recordTimeout, why)
	f.Retryable = false // a second request would be a second task
	return &refusal{err: f.Because(err), task: t.ID()}
}

// receipt returns how far the task got. Once a stage was waited for, it says no
// less.
func receipt(t *hub.Task, waited core.Stage) core.Receipt {
	r := t.Receipt()
	if waited == core.StageRecorded && r.Stage < core.StageRecorded {
		r.Stage, r.At = core.StageRecorded, time.Now()
	}
	return r
}
