package hub

import (
	"cmp"
	"context"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/thread"
)

// recoverThreads finds the tasks of threads in the journal again, given its tasks in
// order: as many as an index knows. The turns of the latest of them are put together
// anew, for agents that keep none.
func (h *Hub) recoverThreads(ctx context.Context, kept []recovered) error {
	var turns []recovered
	for _, head := range kept[max(0, len(kept)-thread.IndexTasks):] {
		if head.thread == "" || core.TaskID(head.thread) == head.task {
			continue // it is on its own, or retention took the beginning that names the thread
		}
		h.index.Add(head.thread, head.task)
		turns = append(turns, head)
	}
	var wanted []core.TaskID
	begun := map[core.TaskID]bool{}
	for _, t := range turns[max(0, len(turns)-h.limits.Threads):] {
		if id := core.TaskID(t.thread); !begun[id] {
			begun[id] = true
			if _, one := slices.BinarySearchFunc(kept, id, headOf); one { // it began as a task on its own
				wanted = append(wanted, id)
			}
		}
		wanted = append(wanted, t.task)
	}
	return h.journal.Stories(ctx, wanted, func(id core.TaskID, events []core.Event) bool {
		if o, ok := events[0].Body.(core.Opened); ok && events[len(events)-1].Body.Kind() == core.KindDone {
			log := task.LogOf(events)
			h.addTurns(o.Request, id, &log)
		}
		return true
	})
}

func headOf(r recovered, task core.TaskID) int { return cmp.Compare(r.task, task) }

// addTurns writes what was asked and answered into the thread.
func (h *Hub) addTurns(req core.Request, id core.TaskID, log *task.Log) {
	a, from := log.Fold(log.Len()), ""
	first, last := log.At(0), log.Last()
	if o, ok := first.Body.(core.Opened); ok {
		from = o.From.ID
	}
	h.threads.Add(req.Thread,
		core.Turn{Role: core.RoleUser, Text: req.Content, Task: id, At: first.At, From: from},
		core.Turn{Role: core.RoleAssistant, Text: a.Text, Agent: a.Agent, Task: id, At: last.At, From: from})
}
