package parallax

import (
	"github.com/dragoman-hub/dragoman/core"
)

// held are the tasks that a connection has, and the latest that it had: what
// comes late for those is told apart from what was never its own.
type held struct {
	tasks  map[core.TaskID]*holding
	ended  []core.TaskID // a ring, once it is full
	oldest int
}

// holding is one task that the agent works on, or did.
type holding struct {
	execution string
	notice    bool
	seq       count // of the last progress
	accepted  bool  // the hub knows that the agent took it
	streamed  bool  // text came as progress
	counted   bool  // and usage did
	told      bool  // the agent was told to stop
	over      bool  // the agent ended it
	listed    bool  // stands in held.ended
}

// remembered is for how many ended tasks a late message is known as such.
const remembered = 256

func newHeld() held { return held{tasks: map[core.TaskID]*holding{}} }

// ends notes that the task has ended on one side.
func (h *held) ends(id core.TaskID, t *holding) {
	if t.listed {
		return
	}
	t.listed = true
	if len(h.ended) < remembered {
		h.ended = append(h.ended, id)
		return
	}
	forget := h.ended[h.oldest]
	h.ended[h.oldest] = id
	h.oldest = (h.oldest + 1) % remembered
	if t := h.tasks[forget]; t != nil && t.listed {
		delete(h.tasks, forget)
	}
}
