package client

import (
	"slices"

	"github.com/dragoman-hub/dragoman/core"
)

// heard is what the remote knows of a thread in which others speak too. It does not change.
type heard struct {
	// Upto is the task of the last turn that it was sent.
	Upto core.TaskID `json:"upto,omitempty"`
	// Own are its own tasks that were not in the history yet.
	Own []core.TaskID `json:"own,omitempty"`
}

// maxOwn bounds the own tasks of a heard: of one beyond them the remote is told again.
const maxOwn = 64

// missing returns the turns of the thread that the remote does not know: all, if the last one
// that it was sent is not among them. What requesters send along has no task. It comes with
// every request, so a remote with a memory got it before.
func (h *heard) missing(history []core.Turn) []core.Turn {
	if h == nil {
		h = &heard{}
	}
	from := 0
	for i, t := range history {
		if t.Task != "" && t.Task == h.Upto {
			from = i + 1
		}
	}
	var out []core.Turn
	for _, t := range history[from:] {
		if t.Task != "" && !slices.Contains(h.Own, t.Task) {
			out = append(out, t)
		}
	}
	return out
}

// with returns what the remote knows once it was sent a task with the history.
func (h *heard) with(history []core.Turn, task core.TaskID) *heard {
	next := &heard{Own: []core.TaskID{task}}
	if h != nil {
		next.Upto = h.Upto
		next.Own = append(slices.Clone(h.Own), task)
	}
	for _, t := range history {
		if t.Task != "" {
			next.Upto = t.Task
		}
	}
	next.Own = slices.DeleteFunc(next.Own, func(own core.TaskID) bool {
		return slices.ContainsFunc(history, func(t core.Turn) bool { return t.Task == own })
	})
	next.Own = next.Own[max(0, len(next.Own)-maxOwn):]
	return next
}
