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

// receive takes the agent's messages in order. It runs in the reader loop and
// waits for nothing but room in the agent's own queue.
func (s *session) receive(ctx context.Context, m *pb.AgentMessage) error {
	if s.peer == nil {
		// A goroutine keeps the stack that it once needed. Registering needs more
		// than anything after it, so that another does it: an idle agent is to be
		// small.
		registered := make(chan error, 1)
		go func() { registered <- s.register(ctx, m) }()
		return <-registered
	}
	s.seen()
	if wire.IgnoresFields(m) {
		s.hub.Count(Name + ".ignored.unknown_fields")
	}
	switch p := m.GetPayload().(type) {
	case *pb.AgentMessage_Response:
		s.response(p.Response)
		return s.settle(ctx)
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

// seen notes a sign of life, once a second: the roster is everybody's.
func (s *session) seen() {
	if now := time.Now(); now.Sub(s.lastSeen) >= time.Second {
		s.lastSeen = now
		s.peer.Seen()
	}
}

// response takes what the agent says of a request.
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
	if c, ok := body.(core.Cancelled); ok && c.Reason == "" {
		// It was to echo the reason (Fold enhancements, section 4).
		body = core.Cancelled{Reason: s.whyCancelled(task)}
	}
	if s.heard(task, body.Kind()) {
		s.report(task, core.Accepted{}, nil)
	}
	if !s.report(task, body, foreign) {
		return
	}
	if lost, ok := body.(core.SessionLost); ok {
		s.expectMore(task, lost)
	}
}

// report tells the hub and reports whether it took it. What comes late or is of
// somebody else's task the hub has counted.
func (s *session) report(task core.TaskID, body core.Body, foreign *core.Foreign) bool {
	if err := s.peer.Report(task, body, foreign); err != nil {
		s.log.Debug("ignored what an agent said", "agent", s.card.ID, "task", task, "kind", body.Kind(), "why", err)
		return false
	}
	return true
}

// heard notes a sign of life of a task, and forgets the task if it ends. It
// reports whether this is the first of a task that the agent so accepts.
func (s *session) heard(task core.TaskID, k core.Kind) (accepts bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.work[task]
	if w == nil {
		return false
	}
	w.orphaned.Stop()
	w.orphaned = nil
	accepts, w.accepted = !w.accepted && k != core.KindFailed && k != core.KindCancelled, true
	if k.Ends() {
		s.forgetLocked(task)
	}
	return accepts
}

// cancelling keeps the reason for which a task is to be cancelled.
func (s *session) cancelling(task core.TaskID, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.work[task]; w != nil {
		w.cancel = reason
	}
}

// whyCancelled is that reason, or "".
func (s *session) whyCancelled(task core.TaskID) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.work[task]; w != nil {
		return w.cancel
	}
	return ""
}

// forget notes that the agent has nothing more to do with a task.
func (s *session) forget(task core.TaskID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetLocked(task)
}

// expectMore ends a task whose session was lost unless the agent says something
// more of it soon: some agents never do, and the request would hang.
func (s *session) expectMore(task core.TaskID, lost core.SessionLost) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.work[task]
	if w == nil || w.orphaned != nil {
		return
	}
	var grace *timer.Timer
	grace = timer.After(&s.timers, s.opts.OrphanGrace, func() {
		s.mu.Lock()
		stale := s.work[task] != w || w.orphaned != grace
		if !stale {
			s.forgetLocked(task)
		}
		s.mu.Unlock()
		if stale {
			return
		}
		why := core.NewFault(core.CodeUnreachable, "the agent lost its session: %s", cmp.Or(lost.Reason, "it did not say why"))
		s.report(task, core.Failed{Fault: why}, nil)
	})
	w.orphaned = grace
}

// injectionAck takes the answer to an InjectContext.
func (s *session) injectionAck(m *pb.InjectionAck) {
	s.mu.Lock()
	in, ok := s.injections[m.GetInjectionId()]
	delete(s.injections, m.GetInjectionId())
	s.mu.Unlock()
	if !ok {
		s.refuse("injection_ack", "injection", m.GetInjectionId())
		return
	}
	answered := wire.AnsweredOf(m)
	answered.ID = in.id
	s.report(in.task, answered, nil)
}

// forgetLocked forgets a task that the agent is done with.
func (s *session) forgetLocked(task core.TaskID) {
	if w := s.work[task]; w != nil {
		w.orphaned.Stop()
		w.orphaned = nil
		delete(s.work, task)
	}
	for id, in := range s.injections {
		if in.task == task {
			delete(s.injections, id)
		}
	}
}

// forgetAll forgets every task, when the connection is down.
func (s *session) forgetAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for task := range s.work {
		s.forgetLocked(task)
	}
}
