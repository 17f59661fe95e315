package coven

import (
	"context"
	"errors"
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// deliver sends one batch to the agent, in the delivery goroutine. Its error means that
// the link is closed.
func (s *session) deliver(ctx context.Context, b hub.Batch) error {
	switch {
	case b.Draining != "":
		s.mu.Lock()
		s.draining = b.Draining
		s.mu.Unlock()
	case b.Tool != nil:
		if err := s.sendToolResult(ctx, b.Tool); err != nil {
			return err
		}
	case b.Task != nil && b.Role == task.Agent:
		if s.endedUnsent(b) {
			s.report(b.Task.ID(), core.Cancelled{Reason: "it ended before the agent was given it"}, nil)
			break
		}
		s.sink = taskSink{ctx, s, b.Task}
		for _, e := range b.Events {
			if err := e.DeliverToAgent(&s.sink); err != nil {
				return err
			}
		}
	}
	return s.shutdownIfIdle(ctx)
}

// endedUnsent reports whether a task that the batch assigns to the agent has ended already.
// It is not sent, but the hub still waits for its end.
func (s *session) endedUnsent(b hub.Batch) bool {
	n := len(b.Events)
	return n > 0 && b.Events[n-1].Body.Kind().Ends() && slices.ContainsFunc(b.Events, func(e core.Event) bool {
		a, ok := e.Body.(core.Assigned)
		return ok && a.Agent == s.card.ID
	})
}

// sendTask sends a message about a task. One that is too large fails the task, or answers
// the injection, and is not sent.
func (s *session) sendTask(ctx context.Context, task core.TaskID, m *pb.ServerMessage, sent func()) error {
	err := s.send(ctx, m, sent)
	if err == nil {
		return nil
	}
	var big *errTooLarge
	if !errors.As(err, &big) {
		return err
	}
	s.hub.Count(Name + ".refused.too_large")
	f := core.NewFault(core.CodeTooLarge, "the message to agent %s has %d bytes, it takes %d: send less, or fewer attachments", s.card.ID, big.size, big.limit)
	switch p := m.GetPayload().(type) {
	case *pb.ServerMessage_InjectContext:
		s.mu.Lock()
		in := s.injections[p.InjectContext.GetInjectionId()]
		delete(s.injections, p.InjectContext.GetInjectionId())
		s.mu.Unlock()
		s.report(in.task, core.InjectionAnswered{ID: in.id, Reason: f.Message}, nil)
	default:
		s.forget(task)
		s.report(task, core.Failed{Fault: f}, nil)
	}
	return nil
}

// taskSink sends the events of one batch to the agent that works on the task.
type taskSink struct {
	ctx     context.Context //nolint:containedctx // it is that of deliver, for one batch
	session *session
	task    *task.Task
}

var _ core.AgentSink = (*taskSink)(nil)

func (t *taskSink) send(m *pb.ServerMessage) error {
	return t.session.sendTask(t.ctx, t.task.ID(), m, nil)
}

// Assigned sends the request.
func (t *taskSink) Assigned(_ core.Event, b core.Assigned) error {
	s, id := t.session, t.task.ID()
	if b.Agent != s.card.ID {
		return nil
	}
	m, folded := wire.PromptOf(id, t.task.From(), t.task.AgentRequest())
	if p := m.GetSendMessage(); p.GetContent() == "" && len(p.GetAttachments()) == 0 {
		// A frame of a kind that only another dialect knows: nothing of it fits.
		s.hub.Count(Name + ".refused.foreign")
		s.report(id, core.Failed{Fault: core.NewFault(core.CodeUnknownKind, "a Coven agent takes text, data and files, and the request has none")}, nil)
		return nil
	}
	if folded {
		s.hub.Count(Name + ".folded.opened")
	}
	if s.ext.SenderProof && t.task.From().Authenticated {
		wire.MarkProven(m.GetSendMessage())
	}
	if s.ext.Trace {
		wire.SetTrace(m.GetSendMessage(), t.task.Trace())
	}
	s.mu.Lock()
	s.requests[id] = &request{}
	s.mu.Unlock()
	return s.sendTask(t.ctx, id, m, func() { s.agent.Delivered(id) })
}

// ApprovalDecided sends the decision, unless the agent asks for another input under the same id by
// now: the message names the call alone.
func (t *taskSink) ApprovalDecided(_ core.Event, b core.ApprovalDecided) error {
	for _, a := range t.task.Approvals() {
		if a.ID == b.ID && b.InputSHA256 != "" && a.InputSHA256 != b.InputSHA256 {
			t.session.hub.Count(Name + ".refused.approval_decided")
			return nil
		}
	}
	return t.send(&pb.ServerMessage{Payload: &pb.ServerMessage_ToolApproval{ToolApproval: wire.ApprovalOf(b)}})
}

// Injected sends context to an agent that declared injection.
func (t *taskSink) Injected(_ core.Event, b core.Injected) error {
	s := t.session
	if !s.card.Features.Has(core.FeatureInjection) {
		s.hub.Count(Name + ".refused.injected")
		s.report(t.task.ID(), core.InjectionAnswered{ID: b.ID, Reason: "the agent does not take injections"}, nil)
		return nil
	}
	id := wire.ValidUTF8(b.ID)
	s.mu.Lock()
	// InjectionAck names no request: no two pending injections may have the same id.
	if _, used := s.injections[id]; used || id == "" {
		id = core.NewID()
	}
	if s.injections == nil {
		s.injections = make(map[string]injection)
	}
	s.injections[id] = injection{t.task.ID(), b.ID}
	s.mu.Unlock()
	in := wire.InjectOf(b)
	in.InjectionId = id
	return t.send(&pb.ServerMessage{Payload: &pb.ServerMessage_InjectContext{InjectContext: in}})
}

// CancelRequested sends the cancellation to an agent that declared it.
func (t *taskSink) CancelRequested(_ core.Event, b core.CancelRequested) error {
	if !t.session.card.Features.Has(core.FeatureCancellation) {
		t.session.hub.Count(Name + ".refused.cancel_requested")
		return nil
	}
	return t.send(&pb.ServerMessage{Payload: &pb.ServerMessage_CancelRequest{CancelRequest: wire.CancelOf(t.task.ID(), b)}})
}

func (t *taskSink) ended() error {
	t.session.forget(t.task.ID())
	return nil
}

func (t *taskSink) Done(core.Event, core.Done) error { return t.ended() }

func (t *taskSink) Failed(core.Event, core.Failed) error { return t.ended() }

func (t *taskSink) Cancelled(core.Event, core.Cancelled) error { return t.ended() }

func shutdownOf(reason string) *pb.ServerMessage {
	return &pb.ServerMessage{Payload: &pb.ServerMessage_Shutdown{Shutdown: &pb.Shutdown{Reason: wire.ValidUTF8(reason)}}}
}
