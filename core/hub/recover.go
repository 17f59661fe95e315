package hub

import (
	"context"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/thread"
)

// Recover reads the journal after a start. Every task that was running when the hub was
// killed ends as failed, unreachable and retryable, in a new epoch. A task whose end may be
// in a lost part of the journal ends as failed, internal and not retryable: it may have
// been done. Recover also restores the index of threads, what was spent, and which requests
// tasks were opened for: see [Keys]. It is called once, before any connection and before
// [Hub.NewKeys], and returns the error of the journal.
func (h *Hub) Recover(ctx context.Context) error {
	var cut []journal.Record
	var kept []recovered
	var traced []core.TaskID
	damaged := 0
	gone := core.NewFault(core.CodeUnreachable, "the hub stopped while the task was running: ask again")
	unsure := core.NewFault(core.CodeInternal, "a part of the journal was damaged, and with it what became of this task: it may have been done; the log of the hub says more")
	err := h.journal.Heads(ctx, func(head journal.Head) bool {
		end, at := head.End, head.At
		if end == 0 {
			fault := gone
			if head.Damaged {
				fault = unsure
				damaged++
			}
			lost := task.EndOf(head, fault)
			end, at = core.KindFailed, lost.Event.At
			cut = append(cut, lost)
		}
		kept = append(kept, recovered{head.Task, head.Thread, head.ThreadTask})
		if head.Key != "" {
			h.recoveredKeys = append(h.recoveredKeys, head)
		}
		if h.tracer != nil && (head.End == 0 || h.tracer.Missed(head.At)) {
			traced = append(traced, head.Task)
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
		h.log.Error("the ends of tasks may be in a damaged part of the journal: whether they were done is unknown", "tasks", damaged)
	}
	cut = task.CloseOpen(ctx, cut, func(ctx context.Context, id core.TaskID) ([]core.Event, error) { return h.journal.Read(ctx, id, 0, 0) })
	if err := h.journal.Append(ctx, cut...); err != nil {
		return err
	}
	h.tellCut(cut)
	if h.tracer != nil {
		h.tracer.Recovered(traced)
	}
	if err := h.recoverThreads(ctx, kept); err != nil {
		return err
	}
	return h.recoverUsage(ctx)
}

// The lists of the latest tasks and threads are as long after a start as before.
var _ [journal.LatestHeads - max(task.CatalogTasks, thread.IndexTasks)]struct{}

// recovered is a task in the journal.
type recovered struct {
	task       core.TaskID
	thread     core.ThreadID
	threadTask bool // the thread began as a single task, which the journal has
}

// recoverThreads restores the index of threads from the tasks of the journal, given in
// order, and the turns of the latest threads.
func (h *Hub) recoverThreads(ctx context.Context, kept []recovered) error {
	var turns []recovered
	for _, head := range kept[max(0, len(kept)-thread.IndexTasks):] {
		if head.thread == "" || core.TaskID(head.thread) == head.task {
			continue // it has no thread, or retention dropped the event that names it
		}
		h.index.Add(head.thread, head.task, thread.Unknown)
		turns = append(turns, head)
	}
	var wanted []core.TaskID
	begun := map[core.TaskID]bool{}
	for _, t := range turns[max(0, len(turns)-h.limits.Threads):] {
		if id := core.TaskID(t.thread); !begun[id] {
			begun[id] = true
			if t.threadTask {
				wanted = append(wanted, id)
			}
		}
		wanted = append(wanted, t.task)
	}
	return h.journal.CompleteTasks(ctx, wanted, func(id core.TaskID, events []core.Event) bool {
		if o, ok := events[0].Body.(core.Opened); ok && events[len(events)-1].Body.Kind() == core.KindDone {
			log := task.LogOf(events)
			h.addTurns(o.Request, id, &log)
		}
		return true
	})
}

// addTurns adds the turns of a task to its thread, before them those from which the thread branched.
func (h *Hub) addTurns(req core.Request, id core.TaskID, log *task.Log) {
	h.threads.Add(req.Thread, turnsIn(req, id, log)...)
}

// turnsIn returns the turns of a task, behind those from which its thread branched.
func turnsIn(req core.Request, id core.TaskID, log *task.Log) []core.Turn {
	a, from := log.Fold(log.Len()), ""
	first, last := log.At(0), log.Last()
	var turns []core.Turn
	if o, ok := first.Body.(core.Opened); ok {
		from = o.From.ID
		turns = earlierTurns(o)
	}
	return append(turns,
		core.Turn{Role: core.RoleUser, Text: req.Content, Files: thread.KeptFiles(req.Attachments), Task: id, At: first.At, From: from},
		core.Turn{Role: core.RoleAssistant, Text: a.Text, Files: thread.KeptFiles(a.Files), Agent: a.Agent, Task: id, At: last.At, From: from},
	)
}
