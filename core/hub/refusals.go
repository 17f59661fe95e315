package hub

import (
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// ForgottenObserver is an [Observer] that is told of refused tasks that are not recorded.
type ForgottenObserver interface{ Forgotten(core.TaskID) }

// CutObserver is an [Observer] that is told of tasks whose ends the hub has stored without Appended: those that ran when
// it, or a hub whose tasks it ends, was killed. The task in the memory of the hub may not have the end yet.
type CutObserver interface{ Cut(core.TaskID, core.Event) }

// tellCut tells the observer of the ends among records that were stored.
func (h *Hub) tellCut(stored []journal.Record) {
	o, ok := h.observer.(CutObserver)
	if !ok {
		return
	}
	for _, r := range stored {
		if r.Event.Body.Kind().Ends() {
			o.Cut(r.Task, r.Event)
		}
	}
}

// record has the journal get a task that was opened, unless it is not known yet whether somebody gets it.
func (h *Hub) record(j *job) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.noticed[j.ID()] == nil {
		h.recorder.Record(j.Task)
	}
}

// recordNotices has the journal get the notices of which other hubs have not said whether anybody gets them.
func (h *Hub) recordNotices() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id := range h.noticed {
		if t := h.tasks.Get(id); t != nil {
			h.recorder.Record(t)
		}
	}
	clear(h.noticed)
}

// reject ends a task that no agent gets, without its content, and has the journal get it. It reports false where its
// requester was refused too much, by [quota.Refusals]: then the hub does not know the task any more.
func (h *Hub) reject(j *job, why error) bool {
	j.DropContent()
	if !h.refuse(j, why) { // it was cancelled in between, which its readers know
		h.record(j)
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refusals.Take(j.From()) {
		h.recorder.Record(j.Task)
		return true
	}
	h.index.Remove(j.Thread(), j.ID())
	h.tasks.Forget(j.Task)
	if o, ok := h.observer.(ForgottenObserver); ok {
		o.Forgotten(j.ID())
	}
	return false
}
