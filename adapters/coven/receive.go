package coven

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/timer"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// receive handles the agent's messages in order. It runs in the reader loop and blocks
// only for room in the agent's own queue.
func (s *session) receive(ctx context.Context, m *pb.AgentMessage) error {
	if s.agent == nil {
		// Registering needs more stack than anything later, and a goroutine keeps its
		// stack: another goroutine registers, to keep idle agents small.
		registered := make(chan error, 1)
		go func() { registered <- s.register(ctx, m) }()
		return <-registered
	}
	s.noteSeen()
	if wire.IgnoresFields(m) {
		s.hub.Count(Name + ".ignored.unknown_fields")
	}
	switch p := m.GetPayload().(type) {
	case *pb.AgentMessage_Response:
		s.response(p.Response)
		return s.shutdownIfIdle(ctx)
	case *pb.AgentMessage_Heartbeat:
	case *pb.AgentMessage_InjectionAck:
		s.injectionAck(p.InjectionAck)
	case *pb.AgentMessage_ExecutePackTool:
		return s.executeTool(ctx, p.ExecutePackTool)
	case *pb.AgentMessage_Register:
		s.refuse("second_register")
	default:
		if field, ok := wire.FirstUnknown(m); ok {
			s.refuse("unknown_payload", "field", field)
		} else {
			s.refuse("unset_payload")
		}
	}
	return nil
}

// noteSeen reports a sign of life to the hub, at most once a second: all sessions share
// the roster.
func (s *session) noteSeen() {
	if now := time.Now(); now.Sub(s.lastSeen) >= time.Second {
		s.lastSeen = now
		s.agent.Seen()
	}
}

// response handles an event of a request.
func (s *session) response(m *pb.MessageResponse) {
	body, foreign, err := wire.EventOf(m)
	if err != nil {
		what := "usage"
		if errors.Is(err, wire.ErrNoEvent) {
			what = "unset_event"
		}
		s.refuse(what, "task", m.GetRequestId(), "why", err)
		return
	}
	if e, ok := body.(core.Failed); ok && s.ext.FaultCodes {
		body = core.Failed{Fault: wire.FaultOf(e.Fault.Message)}
	}
	task := core.TaskID(m.GetRequestId())
	if s.noteEvent(task, body.Kind()) {
		s.report(task, core.Accepted{}, nil)
	}
	if !s.report(task, body, foreign) {
		return
	}
	if lost, ok := body.(core.SessionLost); ok {
		s.startOrphanTimer(task, lost)
	}
}

// report reports an event to the hub, and whether the hub accepted it. The hub counts
// events that come late or belong to another agent's task.
func (s *session) report(task core.TaskID, body core.Body, foreign *core.Foreign) bool {
	if err := s.agent.Report(task, body, foreign); err != nil {
		s.log.Debug("ignored an event of an agent", "agent", s.card.ID, "task", task, "kind", body.Kind(), "why", err)
		return false
	}
	return true
}

// noteEvent stops the orphan timer of a task, and forgets the task if the event ends it.
// It reports whether the event is the first one and means that the agent accepts the task.
func (s *session) noteEvent(task core.TaskID, k core.Kind) (accepts bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.requests[task]
	if r == nil {
		return false
	}
	r.orphanTimer.Stop()
	r.orphanTimer = nil
	accepts, r.accepted = !r.accepted && k != core.KindFailed && k != core.KindCancelled, true
	if k.Ends() {
		s.forgetLocked(task)
	}
	return accepts
}

// forget removes a task that the agent no longer works on.
func (s *session) forget(task core.TaskID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetLocked(task)
}

// startOrphanTimer fails a task whose session was lost unless another event comes within
// orphanGrace: some agents never send one, and the request would hang.
func (s *session) startOrphanTimer(task core.TaskID, lost core.SessionLost) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.requests[task]
	if r == nil || r.orphanTimer != nil {
		return
	}
	var grace *timer.Timer
	grace = timer.After(&s.timers, orphanGrace, func() {
		s.mu.Lock()
		stale := s.requests[task] != r || r.orphanTimer != grace
		if !stale {
			s.forgetLocked(task)
		}
		s.mu.Unlock()
		if stale {
			return
		}
		f := core.NewFault(core.CodeUnreachable, "the agent lost its session: %s", cmp.Or(lost.Reason, "it did not say why"))
		s.report(task, core.Failed{Fault: f}, nil)
	})
	r.orphanTimer = grace
}

// injectionAck handles the answer to an InjectContext.
func (s *session) injectionAck(m *pb.InjectionAck) {
	s.mu.Lock()
	in, ok := s.injections[m.GetInjectionId()]
	delete(s.injections, m.GetInjectionId())
	s.mu.Unlock()
	if !ok {
		s.refuse("injection_ack", "injection", m.GetInjectionId())
		return
	}
	answer := wire.AnsweredOf(m)
	answer.ID = in.id
	s.report(in.task, answer, nil)
}

// forgetLocked is forget for callers that hold s.mu.
func (s *session) forgetLocked(task core.TaskID) {
	if r := s.requests[task]; r != nil {
		r.orphanTimer.Stop()
		r.orphanTimer = nil
		delete(s.requests, task)
	}
	for id, in := range s.injections {
		if in.task == task {
			delete(s.injections, id)
		}
	}
}

// forgetAll removes every task, once the connection is closed.
func (s *session) forgetAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for task := range s.requests {
		s.forgetLocked(task)
	}
}
