package hub

import (
	"context"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/rpc"
	"github.com/dragoman-hub/dragoman/core/task"
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

// betweenMethod asks a hub for the tasks of a thread between two. Those that it opens from then on
// come after them. Of a task that it has opened for a third hub to own, that one knows by then.
const betweenMethod rpc.Method[betweenAsked, []core.TaskID] = "thread.between"

// betweenHere is betweenMethod at this hub.
func (h *Hub) betweenHere(ctx context.Context, _ core.Principal, q betweenAsked) ([]core.TaskID, error) {
	ctx, cancel := context.WithTimeout(ctx, rpc.AnswerTime)
	defer cancel()
	all, sent := h.between(q)
	for _, s := range sent {
		_, _ = AdoptedMethod.Ask(ctx, h, s.owner, PartPrincipal, s.id) // else the reader finds out itself
	}
	return all, nil
}

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
		if t := h.tasks.Get(id); h.asked[id] != nil && t != nil && t.Last().Body.Kind() == core.KindOpened {
			owner, _ := h.node.At(task.OwnerOf(id))
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
	answers, _ := betweenMethod.AskAll(ctx, h, PartPrincipal, betweenAsked{id, after, settled})
	for _, a := range answers {
		for _, t := range a.Out {
			h.index.Add(id, t, thread.Unknown)
		}
	}
	return settled
}
