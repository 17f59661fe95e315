package parallax

import (
	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/lru"
)

// held are the tasks that a connection has, and the latest that it had: a late message
// about one of those is told apart from one about a task that was never its own.
type held struct {
	tasks map[core.TaskID]*holding
	ended *lru.Cache[core.TaskID, *holding] // of tasks
}

// holding is one task that the agent works on, or did.
type holding struct {
	execution string
	notice    bool
	seq       wire.Count // of the last progress
	accepted  bool       // the hub knows that the agent took it
	streamed  bool       // text came as progress
	counted   bool       // and usage did
	told      bool       // the agent was told to stop
	over      bool       // the agent ended it
}

// maxEnded is for how many ended tasks a late message is known as such.
const maxEnded = 256

func newHeld() held {
	tasks := map[core.TaskID]*holding{}
	forget := func(id core.TaskID, t *holding) {
		if tasks[id] == t { // and was not assigned again
			delete(tasks, id)
		}
	}
	return held{tasks, lru.New(lru.Options[core.TaskID, *holding]{Count: maxEnded, Evicted: forget})}
}

// ends notes that the task has ended on one side.
func (h *held) ends(id core.TaskID, t *holding) { h.ended.Put(id, t) }
