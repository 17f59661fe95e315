package hub

import (
	"context"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/thread"
)

// A hub may open a task of a thread before it is told of one with a greater id. Who reads a thread in
// order, at any hub, begins a task once no other hub can have one before it.

// betweenAsked asks for tasks of a thread between two.
type betweenAsked struct {
	Thread core.ThreadID `json:"thread"`
	After  core.TaskID   `json:"after,omitempty"`
	Before core.TaskID   `json:"before"`
}

// betweenInquiry asks a hub for the tasks of a thread between two. Those that it opens from then on
// come after them. Of a task that it has opened for a third hub to own, that one knows by then.
func betweenInquiry() inquiry[betweenAsked, []core.TaskID] {
	return inquiry[betweenAsked, []core.TaskID]{"thread.between", func(ctx context.Context, h *Hub, _ core.Principal, q betweenAsked) ([]core.TaskID, error) {
		ctx, cancel := context.WithTimeout(ctx, inquiryTime)
		defer cancel()
		all, sent := h.between(q)
		for _, s := range sent {
			_, _ = adoptedInquiry.ask(ctx, h, s.owner, componentPrincipal, s.id) // else the reader finds out itself
		}
		return all, nil
	}}
}

// adoptedInquiry asks a hub whether it has a task that was sent to it before.
var adoptedInquiry = inquiry[core.TaskID, bool]{"task.adopted", func(_ context.Context, h *Hub, _ core.Principal, id core.TaskID) (bool, error) {
	return h.tasks.Get(id) != nil, nil
}}

// sentTask is a task that was opened here, and of which its owner has said nothing yet.
type sentTask struct {
	id    core.TaskID
	owner string
}

// between returns the tasks of a thread between two, and those of them that are on their way to their
// owners.
func (h *Hub) between(q betweenAsked) (all []core.TaskID, sent []sentTask) {
	h.mu.Lock() // a task that has its id already is in the index
	defer h.mu.Unlock()
	h.tasks.Learn(q.Before)
	for id, _ := h.index.Next(q.Thread, q.After); id != "" && id < q.Before; id, _ = h.index.Next(q.Thread, id) {
		all = append(all, id)
		if t := h.tasks.Get(id); h.mirrors[id] != nil && t != nil && t.Last().Body.Kind() == core.KindOpened {
			owner, _ := h.owner(t)
			sent = append(sent, sentTask{id, owner})
		}
	}
	return all, sent
}

// settleOrder learns what other hubs have of a thread after a task, and returns up to which one its
// order is settled then.
func (h *Hub) settleOrder(ctx context.Context, id core.ThreadID, after core.TaskID) (settled core.TaskID) {
	for _, latest := range h.index.Latest(id, 1) {
		settled = latest
	}
	answers, _ := betweenInquiry().askAll(ctx, h, componentPrincipal, betweenAsked{id, after, settled})
	for _, a := range answers {
		for _, t := range a.out {
			h.index.Add(id, t, thread.Unknown)
		}
	}
	return settled
}
