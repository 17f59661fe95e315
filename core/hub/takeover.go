package hub

import (
	"context"
	"errors"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/task"
)

// Inherit ends the tasks of another hub whose life this one has taken over: those that were
// running fail as unreachable and retryable, in a new epoch. It waits for the journal, whose error
// it returns; then it may be called again.
func (h *Hub) Inherit(ctx context.Context, e journal.Estate) error {
	var cut []journal.Record
	err := e.Heads(ctx, func(head journal.Head) bool {
		cut = append(cut, endOf(head, core.NewFault(core.CodeUnreachable, "hub %s, which had the task, is gone: ask again", e.Life().Hub)))
		return true
	})
	if err != nil || len(cut) == 0 {
		return err
	}
	h.log.Warn("tasks of a hub that is gone were running", "hub", e.Life().Hub, "tasks", len(cut))
	return e.Append(ctx, cut...)
}

// endOf returns the end of a task that was cut off, in a new epoch.
func endOf(head journal.Head, why *core.Fault) journal.Record {
	return journal.Record{Task: head.Task, Event: core.Event{
		Seq: head.Last.End() + 1, Epoch: head.Last.Epoch + 1, At: time.Now(), Body: core.Failed{Fault: why},
	}}
}

// Settled gives the mirrors that a hub left behind when it was gone what the journal says of their
// tasks, once the tasks of a life that was taken over have their ends. It does nothing once the hub
// is back. What was said and not stored is gone: readers that
// have seen it get a gap. It waits for the journal, whose error it returns; then it may be called
// again.
func (h *Hub) Settled(ctx context.Context, hub string, shared journal.Shared) error {
	h.mu.Lock()
	orphans := h.others.orphans[hub]
	h.mu.Unlock()
	if err := h.settleExpected(ctx, hub, shared); err != nil {
		return err
	}
	for _, t := range orphans {
		if t.HasEnded() {
			continue
		}
		events, err := shared.ReadOf(ctx, hub, t.ID(), 0, 0)
		var gap *journal.GapError
		switch {
		case errors.Is(err, journal.ErrUnknown):
			events = []core.Event{neverStored(t)}
		case err != nil && !errors.As(err, &gap):
			return err
		}
		if t.Extend(events) {
			h.mirrorEnded(t)
		}
	}
	h.inheritLists(hub, shared)
	return nil
}

// neverStored returns the end of a task of which its owner has stored nothing. It is the same at
// every hub.
func neverStored(t *task.Task) core.Event {
	r := endOf(journal.Head{Task: t.ID(), Last: core.Event{Seq: 1, Epoch: 1}}, core.NewFault(core.CodeUnreachable, "the hub that was to have the task has stored nothing of it, and does not have it any more: ask again"))
	if first := t.Log(); first.Len() > 0 {
		r.Event.At = first.At(0).At
	}
	return r.Event
}
