package hub

import (
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// host is the Hub as its tasks see it.
type host struct{ *Hub }

// Appended implements [task.Host].
func (h host) Appended(id core.TaskID, e core.Event) {
	if k := e.Body.Kind(); k.Ends() || k == core.KindRetrying {
		h.questions.TaskEnded(id)
	}
	if h.observer != nil {
		h.observer.Appended(id, e)
	}
}

// Answered implements [task.Host]: a follow-up finds the turn in the thread.
func (h host) Answered(req core.Request, id core.TaskID, log *task.Log) { h.addTurns(req, id, log) }

// Recorded implements [task.Host].
func (h host) Recorded(id core.TaskID, seq uint64) {
	if h.observer != nil {
		h.observer.Recorded(id, seq)
	}
}

// Dropped implements [task.Host].
func (h host) Dropped(id core.TaskID, thread core.ThreadID) { h.index.Remove(thread, id) }

// JournalBehind implements [task.Host].
func (h host) JournalBehind() bool { return h.recorder.Behind() }

// BudgetsCrossed implements [task.Host].
func (h host) BudgetsCrossed(crossed []usage.BudgetStatus) {
	for _, b := range crossed {
		what := "a budget is nearly spent"
		if b.Spent() {
			what = "a budget is spent: new tasks are refused"
		}
		log := h.log.With(string(b.By), b.Key, "per", string(b.Per))
		if b.Cost.Known() {
			log.Warn(what, "used", core.Money{Nanos: b.Used, Currency: b.Cost.Currency}, "cost", b.Cost)
		} else {
			log.Warn(what, "used", b.Used, "tokens", b.Tokens)
		}
	}
}

// Ended implements [task.Host].
func (h host) Ended(t *task.Task, w task.Worker) {
	h.mu.Lock()
	j := h.jobs[t.ID()]
	h.mu.Unlock()
	if w != nil {
		h.linger((*Session)(w.(*peer)), j)
	}
	h.ended(j)
}

// CancelUnanswered implements [task.Host].
func (h host) CancelUnanswered(t *task.Task) {
	h.Count("cancel.unanswered")
	h.log.Warn("agent did not answer a cancel in time: the task has ended without it", "agent", t.Agent(), "task", t.ID())
}
