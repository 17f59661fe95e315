package hub

import (
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// withHistory is what the requester told of the conversation, and behind it the turns
// of its thread that an agent without a memory gets. Those are shared with the thread.
// It is called with the lock of the task held.
func (h *Hub) withHistory(t *task.Task, told []core.Turn) []core.Turn {
	turns, _ := h.threads.Turns(t.Thread(), h.limits.HistoryBytes)
	turns = h.readable(t.From(), turns)
	if len(told) == 0 {
		return turns
	}
	return append(told, turns...)
}

// readable leaves those turns of a thread that whoever authenticated may read: the name of a
// thread is no secret, and an agent that is told what others said may be asked for it.
func (h *Hub) readable(p core.Principal, turns []core.Turn) []core.Turn {
	hidden := func(t core.Turn) bool { return !h.mayRead(p, core.Principal{ID: t.From}) }
	if !p.Authenticated || !slices.ContainsFunc(turns, hidden) {
		return turns
	}
	return slices.DeleteFunc(slices.Clone(turns), hidden)
}
