package hub

import (
	"context"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// recordedUpTo asks the owner of a task whether the journal has it up to Seq.
type recordedUpTo struct {
	Task core.TaskID `json:"task"`
	Seq  uint64      `json:"seq"`
}

// recordedTime is how long the owner waits for that: others ask it too. Who wants to know longer asks
// again.
const recordedTime = 200 * time.Millisecond

var recordedInquiry = inquiry[recordedUpTo, bool]{"task.recorded", func(ctx context.Context, h *Hub, _ core.Principal, in recordedUpTo) (bool, error) {
	t, err := h.tasks.Find(ctx, in.Task)
	if err != nil || t.IsMirror() {
		return err == nil && t.HasEnded(), nil
	}
	ctx, cancel := context.WithTimeout(ctx, recordedTime)
	defer cancel()
	return t.Recorded(ctx, in.Seq) == nil, nil
}}

// Recorded waits until the journal has a task up to seq, at whichever hub its owner is, or ctx ends.
func (h *Hub) Recorded(ctx context.Context, t *task.Task, seq uint64) error {
	if !t.IsMirror() {
		return t.Recorded(ctx, seq)
	}
	for !t.HasEnded() { // an end is shown once it is stored, and with it all before
		h.mu.Lock()
		owner, ok := h.owner(t)
		h.mu.Unlock()
		if ok {
			if has, err := recordedInquiry.ask(ctx, h, owner, core.Principal{}, recordedUpTo{t.ID(), seq}); err == nil && has {
				return nil
			}
		}
		select {
		case <-time.After(recordedTime / 10):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
