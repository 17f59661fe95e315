package parallax

import (
	"cmp"
	"context"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// request is a task_request of the agent.
type request struct {
	id string
	// Owned by the delivery goroutine.
	attempt  int
	seq      wire.Count
	streamed bool // text was sent as progress
	// Guarded by session.mu.
	task core.TaskID
}

// taskRequest asks another agent on behalf of this one.
func (s *session) taskRequest(ctx context.Context, m wire.Message, p wire.TaskRequest) error {
	q := &request{id: cmp.Or(p.RequestID, m.ID)}
	if q.id == "" {
		return s.refuse(ctx, m.ID, wire.CodeInvalidMessage, "task_request: id: missing; the answers refer to it")
	}
	s.mu.Lock()
	_, taken := s.requests[q.id]
	if !taken {
		s.requests[q.id] = q
	}
	s.mu.Unlock()
	if taken {
		return s.refuse(ctx, m.ID, wire.CodeInvalidMessage, "task_request: request "+wire.Shorten(q.id)+" is still under way: give each its own id")
	}
	r, err := p.Request(time.Now())
	r.Foreign = s.foreign(m, wire.TaskShape.Strip(m.Content()))
	if err != nil {
		s.forget(q)
		return s.refuse(ctx, m.ID, wire.CodeInvalidMessage, "task_request: payload: "+core.AsFault(err).Message)
	}
	t, err := s.agent.Open(r, hub.OpenOptions{Tag: q, Trace: p.Trace()})
	if err != nil {
		s.forget(q)
		ref := wire.TaskRef{RequestID: q.id}
		if t != nil {
			ref.TaskID = string(t.ID())
		}
		return s.send(ctx, wire.TypeTaskError, "", wire.TaskErrorOf(ref, core.AsFault(err), nil))
	}
	s.mu.Lock()
	q.task = t.ID()
	s.mu.Unlock()
	return nil
}

// taskCancel cancels a task_request. Its end comes as a task_error.
func (s *session) taskCancel(ctx context.Context, m wire.Message, p wire.TaskCancel) error {
	if m.Foreign(wire.CancelShape.Strip(m.Content())) != nil {
		s.hub.Count("parallax.ignored.members") // task_cancelled has no place for them
	}
	s.mu.Lock()
	q := s.requests[p.RequestID]
	var id core.TaskID
	if q != nil {
		id = q.task
	}
	s.mu.Unlock()
	if id == "" {
		return s.refuse(ctx, m.ID, wire.CodeTaskNotHeld, "task_cancel: nothing with requestId "+wire.Shorten(p.RequestID)+" is under way: it may have ended")
	}
	if err := s.agent.Cancel(id, p.Reason); err != nil && core.AsFault(err).Code != core.CodeConflict {
		return s.refuse(ctx, m.ID, wire.CodeOf(core.AsFault(err)), core.AsFault(err).Message)
	}
	return nil
}

func (s *session) forget(q *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.requests, q.id)
}

// toRequester sends the events of a task_request to the agent that sent it.
func (s *session) toRequester(ctx context.Context, b hub.Batch) error {
	sink := &requesterSink{s: s, task: b.Task, request: b.Tag.(*request)}
	if b.Gap != nil {
		if err := sink.sendItem(wire.Item{Omitted: &wire.Omitted{Kind: "events", Reason: "they are no longer kept"}}, nil); err != nil {
			return err
		}
	}
	for _, e := range b.Events {
		if err := e.Deliver(sink); err != nil {
			return err
		}
	}
	if err := sink.flush(); err != nil {
		return err
	}
	return s.sendAll(ctx, sink.out)
}
