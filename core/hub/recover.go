package hub

import (
	"context"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// Recover reads the journal after a start: every task that was running when the
// hub was killed ends as failed, unreachable and retryable, in a new epoch. One whose
// end may be in a part of the journal that was lost ends as failed, internal and not
// retryable: it may have been done. Threads are found again, and what was spent before is
// added up. It is called once, before anybody connects, and returns the error of the
// journal.
func (h *Hub) Recover(ctx context.Context) error {
	var cut []journal.Record
	var kept []recovered
	damaged := 0
	gone := core.NewFault(core.CodeUnreachable, "the hub stopped while the task was running: ask again")
	unsure := core.NewFault(core.CodeInternal, "a part of the journal was damaged, and with it what became of this task: it may have been done; the log of the hub says more")
	err := h.journal.Heads(ctx, func(head journal.Head) bool {
		kept = append(kept, recovered{head.Task, head.Thread})
		end, at := head.End, head.At
		if end == 0 {
			fault := gone
			if head.Damaged {
				fault = unsure
				damaged++
			}
			end, at = core.KindFailed, time.Now()
			cut = append(cut, journal.Record{Task: head.Task, Event: core.Event{
				Seq: head.Last.End() + 1, Epoch: head.Last.Epoch + 1, At: at, Body: core.Failed{Fault: fault},
			}})
		}
		h.tasks.Recover(head.Task, end, at)
		return true
	})
	if err != nil {
		return err
	}
	if n := len(cut) - damaged; n > 0 {
		h.log.Warn("tasks were running when the hub was last stopped", "tasks", n)
	}
	if damaged > 0 {
		h.log.Error("the ends of tasks may be in a part of the journal that was damaged: they are told that it is not known whether they were done", "tasks", damaged)
	}
	if err := h.journal.Append(ctx, cut...); err != nil {
		return err
	}
	if err := h.recoverThreads(ctx, kept); err != nil {
		return err
	}
	return h.recoverUsage(ctx)
}

// recovered is a task that the journal has.
type recovered struct {
	task   core.TaskID
	thread core.ThreadID
}
