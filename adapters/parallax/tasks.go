package parallax

import (
	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/lru"
)

// tasks are those that a connection holds and the latest that it held, so that a late
// message is not mistaken for one about the task of another agent.
type tasks struct {
	byID  map[core.TaskID]*heldTask
	ended *lru.Cache[core.TaskID, *heldTask] // the part of byID that may be forgotten
}

// heldTask is a task that was assigned to the agent.
type heldTask struct {
	execution  string
	notice     bool
	seq        wire.Count // of the last progress
	accepted   bool       // reported to the hub
	streamed   bool       // text came as progress
	usageSent  bool       // usage came as progress
	cancelSent bool
	ended      bool // by the agent

	pieces agent.Pieces // of what came as progress
}

// join returns the events of progress with their text put together with what came before.
func (t *heldTask) join(bodies []core.Body, p wire.Progress) (joined []core.Body) {
	for _, b := range bodies {
		piece := p.TextPiece
		if b.Kind() == core.KindThinking {
			piece = p.ThinkingPiece
		}
		b, half := t.pieces.Join(b, piece)
		if !half || p.Unknown != nil {
			joined = append(joined, b)
		}
	}
	return joined
}

// progress notes progress of the agent. first says that the task was not accepted before; again, that the hub had this
// progress; missing is the first one that never came, 0 for none.
func (t *heldTask) progress(p wire.Progress) (first, again bool, missing wire.Count) {
	if p.Seq > 0 {
		again = p.Seq <= t.seq
		if p.Seq > t.seq+1 {
			missing, t.ended = t.seq+1, true
		}
		t.seq = max(t.seq, p.Seq)
	}
	first = !t.accepted
	t.accepted = true
	t.streamed = t.streamed || p.Text != nil
	t.usageSent = t.usageSent || p.Usage != nil
	return first, again, missing
}

// maxEnded is how many ended tasks are remembered.
const maxEnded = 256

func newTasks() tasks {
	byID := map[core.TaskID]*heldTask{}
	forget := func(id core.TaskID, t *heldTask) {
		if byID[id] == t { // else it was assigned again
			delete(byID, id)
		}
	}
	return tasks{byID, lru.New(lru.Options[core.TaskID, *heldTask]{Count: maxEnded, Evicted: forget})}
}

// end notes that the agent or the hub ended a task.
func (h *tasks) end(id core.TaskID, t *heldTask) { h.ended.Put(id, t) }
