package hub

import (
	"context"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/rpc"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/timer"
)

// recordedUpTo asks the owner of a task whether the journal has it up to Seq.
type recordedUpTo struct {
	Task core.TaskID `json:"task"`
	Seq  uint64      `json:"seq"`
}

const recordedMethod rpc.Method[recordedUpTo, bool] = "task.recorded"

// hasRecorded is recordedMethod at this hub.
func (h *Hub) hasRecorded(ctx context.Context, _ core.Principal, in recordedUpTo) (bool, error) {
	t, err := h.findHere(ctx, in.Task)
	if err != nil || t.IsRemote() {
		return err == nil && t.HasEnded(), nil
	}
	return t.HasRecorded(in.Seq), nil
}

// The owner does not wait, since others ask it too. Who waits asks again after a while, and after
// longer ones while the journal of the owner is behind.
const (
	recordedAgain  = 2 * time.Millisecond
	recordedSeldom = 100 * time.Millisecond
)

// Recorded waits until the journal has a task up to seq, at whichever hub its owner is, or ctx ends.
func (h *Hub) Recorded(ctx context.Context, t *task.Task, seq uint64) error {
	if !t.IsRemote() {
		return t.Recorded(ctx, seq)
	}
	// An end is shown once it is stored, and with it all before.
	for again := recordedAgain; !t.HasEnded(); again = min(2*again, recordedSeldom) {
		owner := t.Owner()
		if owner == "" {
			owner, _ = h.node.At(task.OwnerOf(t.ID()))
		}
		if has, err := recordedMethod.Ask(ctx, h, owner, core.Principal{}, recordedUpTo{t.ID(), seq}); err == nil && has {
			return nil
		}
		if err := timer.Sleep(ctx, again); err != nil {
			return err
		}
	}
	return nil
}
