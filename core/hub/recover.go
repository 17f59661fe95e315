package hub

import (
	"context"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// Recover reads the journal after a start: every task that was running when the
// hub was killed ends as failed, unreachable and retryable, in a new epoch. Threads
// are found again, and what was spent before is added up. It is called once, before
// anybody connects, and returns the error of the journal.
func (h *Hub) Recover(ctx context.Context) error {
	var cut []journal.Record
	var kept []journal.Head
	gone := core.NewFault(core.CodeUnreachable, "the hub stopped while the task was running: ask again")
	err := h.journal.Heads(ctx, func(head journal.Head) bool {
		kept = append(kept, journal.Head{Task: head.Task, Thread: head.Thread}) // ends may be long
		if !head.Last.Body.Kind().Ends() {
			cut = append(cut, journal.Record{Task: head.Task, Event: core.Event{
				Seq: head.Last.End() + 1, Epoch: head.Last.Epoch + 1, At: time.Now(), Body: core.Failed{Fault: gone},
			}})
		}
		return true
	})
	if err != nil {
		return err
	}
	if len(cut) > 0 {
		h.log.Warn("tasks were running when the hub was last stopped", "tasks", len(cut))
	}
	if err := h.journal.Append(ctx, cut...); err != nil {
		return err
	}
	if err := h.recoverThreads(ctx, kept); err != nil {
		return err
	}
	return h.recoverSpendings(ctx)
}
