package parallax

import (
	"cmp"
	"context"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// asking is something that the agent asked of others (task_request).
type asking struct {
	request string
	// Of the pump alone.
	attempt  int
	seq      wire.Count
	streamed bool // text went out as progress
	// Guarded by session.mu.
	task core.TaskID
}

// taskRequest asks another agent in the name of this one.
func (s *session) taskRequest(ctx context.Context, m wire.Message, p wire.TaskRequest) error {
	a := &asking{request: cmp.Or(p.RequestID, m.ID)}
	if a.request == "" {
		return s.refuse(ctx, m.ID, wire.CodeInvalidMessage, "task_request: id: missing; the answers name it")
	}
	s.mu.Lock()
	_, taken := s.asked[a.request]
	if !taken {
		s.asked[a.request] = a
	}
	s.mu.Unlock()
	if taken {
		return s.refuse(ctx, m.ID, wire.CodeInvalidMessage, "task_request: request "+wire.Shorten(a.request)+" is still under way: give each its own id")
	}
	r, err := p.Request(time.Now())
	r.Foreign = s.foreign(m, wire.TaskShape.Strip(m.Content()))
	if err != nil {
		s.forget(a)
		return s.refuse(ctx, m.ID, wire.CodeInvalidMessage, "task_request: payload: "+core.AsFault(err).Message)
	}
	t, err := s.agent.Open(r, hub.OpenOptions{Tag: a})
	if err != nil {
		s.forget(a)
		about := wire.TaskRef{RequestID: a.request}
		if t != nil {
			about.TaskID = string(t.ID())
		}
		return s.reply(ctx, wire.TypeTaskError, "", wire.TaskErrorOf(about, core.AsFault(err), nil))
	}
	s.mu.Lock()
	a.task = t.ID()
	s.mu.Unlock()
	return nil
}

// taskCancel stops what the agent asked for. The end comes as a task_error.
func (s *session) taskCancel(ctx context.Context, m wire.Message, p wire.TaskCancel) error {
	if m.Foreign(wire.CancelShape.Strip(m.Content())) != nil {
		s.hub.Count("parallax.ignored.members") // what the agent is told is the hub's own word
	}
	s.mu.Lock()
	a := s.asked[p.RequestID]
	var id core.TaskID
	if a != nil {
		id = a.task
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

func (s *session) forget(a *asking) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.asked, a.request)
}

// toRequester tells the agent what became of something that it asked.
func (s *session) toRequester(ctx context.Context, b hub.Batch) error {
	sink := &requesterSink{s: s, task: b.Task, ask: b.Tag.(*asking)}
	if b.Gap != nil {
		if err := sink.say(wire.Item{Omitted: &wire.Omitted{Kind: "events", Reason: "they are no longer kept"}}, nil); err != nil {
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
