package parallax

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// toAgent sends the events of a task to the agent that works on it.
func (s *session) toAgent(ctx context.Context, b hub.Batch) error {
	sink := &agentSink{s: s, task: b.Task}
	for _, e := range b.Events {
		if err := e.DeliverToAgent(sink); err != nil {
			return err
		}
	}
	return s.sendAll(ctx, sink.out)
}

// agentSink turns the events of a task into frames to the agent that works on it.
type agentSink struct {
	s    *session
	task *task.Task
	out  []outgoing
}

var _ core.AgentSink = (*agentSink)(nil)

func (a *agentSink) Assigned(_ core.Event, b core.Assigned) error {
	if b.Agent != a.s.id {
		return nil
	}
	return a.assign(b.Attempt)
}

func (a *agentSink) CancelRequested(_ core.Event, b core.CancelRequested) error {
	reason := b.Reason
	if b.By == hubName && (b.Reason == deadlineReason || b.Reason == silenceReason) {
		reason = "execution_timeout" // the text of the page
	}
	return a.cancel(reason, nil)
}

// The By and the Reasons of a CancelRequested of a task that timed out.
const (
	hubName        = "hub"
	deadlineReason = "deadline"
	silenceReason  = "silence"
)

func (a *agentSink) Done(_ core.Event, b core.Done) error           { return a.cancel("ended", b) }
func (a *agentSink) Failed(_ core.Event, b core.Failed) error       { return a.cancel(b.Fault.Message, b) }
func (a *agentSink) Cancelled(_ core.Event, b core.Cancelled) error { return a.cancel(b.Reason, b) }

// The hub sends neither Injected nor ApprovalDecided to an agent without the features.
func (a *agentSink) Injected(_ core.Event, b core.Injected) error               { return a.refuse(b) }
func (a *agentSink) ApprovalDecided(_ core.Event, b core.ApprovalDecided) error { return a.refuse(b) }

func (a *agentSink) refuse(b core.Body) error {
	a.s.hub.Count("parallax.refused." + b.Kind().String())
	return nil
}

// assign sends the task to the agent, or fails it if that is not possible.
func (a *agentSink) assign(attempt int) error {
	s, id, r := a.s, a.task.ID(), a.task.AgentRequest()
	ref := wire.TaskRef{TaskID: string(id), ExecutionID: executionOf(id, attempt)}
	notice := r.Intent == core.IntentNotify
	if notice && !s.takesNotices() {
		return a.failTask(core.NewFault(core.CodeUnsupported, "agent %s no longer takes notices: ask it instead", s.id))
	}
	frame, err := s.taskFrame(a.task, r, ref)
	if len(r.Handed) > 0 && err != nil && core.AsFault(err).Code == core.CodeTooLarge {
		s.hub.Count("parallax.folded.handed_files")
		frame, err = s.taskFrame(a.task, r.WithoutHanded(), ref)
	}
	if err != nil {
		s.hub.Count("parallax.refused.assignment")
		return a.failTask(core.AsFault(err))
	}
	s.mu.Lock()
	s.tasks.byID[id] = &heldTask{execution: ref.ExecutionID, notice: notice}
	s.mu.Unlock()
	a.out = append(a.out, outgoing{wire.TypeTask, frame, func() { s.agent.Delivered(id) }})
	return nil
}

// failTask fails the task, unless it has ended meanwhile.
func (a *agentSink) failTask(f *core.Fault) error {
	err := a.s.agent.Report(a.task.ID(), core.Failed{Fault: f}, nil)
	if err != nil && core.AsFault(err).Code == core.CodeInternal {
		return err
	}
	return nil
}

// executionOf identifies one attempt at a task: a task that is assigned again has the same
// id and a new execution (page, "Task Assignment").
func executionOf(id core.TaskID, attempt int) string { return fmt.Sprintf("%s.%d", id, attempt) }

// taskFrame returns the task message. The oldest turns that do not fit are left out and
// counted; if the rest does not fit, the error is a too_large Fault.
func (s *session) taskFrame(t *task.Task, r core.Request, ref wire.TaskRef) ([]byte, error) {
	s.mu.Lock()
	capability := capabilityOf(r, s.card.Capabilities)
	s.mu.Unlock()
	history := r.History
	r.History = nil
	p, err := wire.TaskOf(r)
	if err != nil {
		return nil, err
	}
	p.TaskRef, p.Capability = ref, capability
	p.Context.Requester = t.From().ID
	if s.extensions[wire.ExtensionTrace] {
		if p.Metadata = wire.TraceMetadata(t.Trace()); p.Metadata != nil {
			r.Foreign = wire.WithoutTrace(r.Foreign)
		}
	}
	p.Timeout = max(1, wire.MillisecondsOf(time.Until(t.Due())))
	for {
		frame, err := wire.Encode(wire.TypeTask, s.nextID(), time.Now(), p)
		if err == nil {
			frame, err = s.seal(wire.WithHistory(frame, history), r.Foreign)
		}
		size := len(frame)
		if err == nil && s.gateway != nil {
			size, err = s.gateway.sizeOf(frame)
		}
		switch n := len(history); {
		case err != nil:
			return nil, err
		case size <= s.opts.MaxMessageBytes:
			return frame, nil
		case n == 0:
			return nil, core.NewFault(core.CodeTooLarge, "the request makes a message of %d bytes and agent %s takes %d: send less", size, s.id, s.opts.MaxMessageBytes)
		default:
			drop := (n + 1) / 2
			history = history[drop:]
			p.Context.HistoryOmitted += drop
			s.hub.Count("parallax.folded.history")
		}
	}
}

// capabilityOf returns the capability of a task message: the first that the request was
// addressed by, else the domain if the agent has it as a capability, else the agent's
// first.
func capabilityOf(r core.Request, capabilities []string) string {
	switch {
	case r.Intent == core.IntentNotify:
		return wire.CapabilityNotify
	case len(r.To.Capabilities()) > 0:
		return r.To.Capabilities()[0]
	}
	for _, c := range capabilities {
		if c == r.Domain || c == r.To.Domain() {
			return c
		}
	}
	for _, c := range capabilities {
		if c != wire.CapabilityNotify {
			return c
		}
	}
	return ""
}

// cancel tells the agent once to stop, if it still works on the task. end is the end of
// the task on the hub, after which reports of the agent are ignored; nil for none.
func (a *agentSink) cancel(reason string, end core.Body) error {
	s, id := a.s, a.task.ID()
	s.mu.Lock()
	t := s.tasks.byID[id]
	tell := t != nil && !t.ended && !t.cancelSent && !t.notice
	if t != nil {
		t.cancelSent = t.cancelSent || tell
		if end != nil {
			s.tasks.end(id, t)
		}
	}
	s.mu.Unlock()
	if !tell {
		return nil
	}
	if end != nil {
		s.hub.Count("parallax.folded." + end.Kind().String())
	}
	ref := wire.TaskRef{TaskID: string(id), ExecutionID: t.execution}
	frame, err := s.frame(wire.TypeTaskCancelled, "", wire.TaskCancelled{TaskRef: ref, Reason: cmp.Or(reason, "cancelled")}, nil)
	a.out = append(a.out, outgoing{kind: wire.TypeTaskCancelled, frame: frame})
	return err
}
