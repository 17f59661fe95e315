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

// toAgent tells the agent what happened to its tasks.
func (s *session) toAgent(ctx context.Context, b hub.Batch) error {
	sink := &agentSink{s: s, task: b.Task}
	for _, e := range b.Events {
		if err := e.DeliverToAgent(sink); err != nil {
			return err
		}
	}
	return s.sendAll(ctx, sink.out)
}

// outgoing is a frame that is ready to be sent, and what to do once the
// transport has taken it.
type outgoing struct {
	kind  string
	frame []byte
	sent  func()
}

// agentSink turns the events of one task into frames to the agent that works on it.
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
	if b.By == hubName && b.Reason == deadlineReason {
		reason = "execution_timeout" // as the page has it
	}
	return a.cancel(reason, nil)
}

// What the hub calls itself, and a deadline, in a cancel.
const (
	hubName        = "hub"
	deadlineReason = "deadline"
)

func (a *agentSink) Done(_ core.Event, b core.Done) error           { return a.cancel("ended", b) }
func (a *agentSink) Failed(_ core.Event, b core.Failed) error       { return a.cancel(b.Fault.Message, b) }
func (a *agentSink) Cancelled(_ core.Event, b core.Cancelled) error { return a.cancel(b.Reason, b) }

// Injected and ApprovalDecided never come to an agent that declared no injection
// and asks for no approvals.
func (a *agentSink) Injected(_ core.Event, b core.Injected) error               { return a.refuse(b) }
func (a *agentSink) ApprovalDecided(_ core.Event, b core.ApprovalDecided) error { return a.refuse(b) }

func (a *agentSink) refuse(b core.Body) error {
	a.s.hub.Count("parallax.refused." + b.Kind().String())
	return nil
}

// assign gives the agent the task, or fails it where it cannot be given.
func (a *agentSink) assign(attempt int) error {
	s, id, r := a.s, a.task.ID(), a.task.Request()
	who := wire.TaskRef{TaskID: string(id), ExecutionID: executionOf(id, attempt)}
	notice := r.Intent == core.IntentNotify
	if notice && !s.takesNotices() {
		f := core.NewFault(core.CodeUnsupported, "agent %s no longer takes notices: ask it instead", s.id)
		return ignoreFault(s.agent.Report(id, core.Failed{Fault: f}, nil))
	}
	frame, err := s.taskFrame(a.task, r, who)
	if err != nil {
		s.hub.Count("parallax.refused.assignment")
		return ignoreFault(s.agent.Report(id, core.Failed{Fault: core.AsFault(err)}, nil))
	}
	s.mu.Lock()
	s.tasks.tasks[id] = &holding{execution: who.ExecutionID, notice: notice}
	s.mu.Unlock()
	a.out = append(a.out, outgoing{wire.TypeTask, frame, func() { s.agent.Delivered(id) }})
	return nil
}

// ignoreFault drops the fault of a report about a task that ended meanwhile.
func ignoreFault(err error) error {
	if err == nil || core.AsFault(err).Code != core.CodeInternal {
		return nil
	}
	return err
}

// executionOf names one attempt at a task: a task that is given to another agent
// keeps its id and gets a new execution (page, "Task Assignment").
func executionOf(id core.TaskID, attempt int) string { return fmt.Sprintf("%s.%d", id, attempt) }

// taskFrame is the task message. Earlier turns that do not fit are left out,
// oldest first, and the agent is told how many; anything else that does not fit is
// a too_large Fault.
func (s *session) taskFrame(t *task.Task, r core.Request, a wire.TaskRef) ([]byte, error) {
	s.mu.Lock()
	capability := capabilityOf(r, s.card.Capabilities)
	s.mu.Unlock()
	history := r.History
	r.History = nil
	p, err := wire.TaskOf(r)
	if err != nil {
		return nil, err
	}
	p.TaskRef, p.Capability = a, capability
	p.Context.Requester = t.From().ID
	p.Timeout = max(1, wire.MillisecondsOf(time.Until(t.Due())))
	for {
		frame, err := wire.Encode(wire.TypeTask, s.nextID(), time.Now(), p)
		if err == nil {
			frame, err = s.sealed(wire.WithHistory(frame, history), r.Foreign)
		}
		size := len(frame)
		if err == nil && s.gate != nil {
			size, err = s.gate.sizeOf(frame)
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

// capabilityOf is the capability under which an agent gets a request: the one it
// was addressed by, else the domain if that is one, else the agent's first.
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

// cancel tells the agent to stop, once, if it still works on the task. end, unless
// it is nil, is how the task ended on the hub: nothing the agent still says counts.
func (a *agentSink) cancel(reason string, end core.Body) error {
	s, id := a.s, a.task.ID()
	s.mu.Lock()
	t := s.tasks.tasks[id]
	tell := t != nil && !t.over && !t.told && !t.notice
	if t != nil {
		t.told = t.told || tell
		if end != nil {
			s.tasks.ends(id, t)
		}
	}
	s.mu.Unlock()
	if !tell {
		return nil
	}
	if end != nil {
		s.hub.Count("parallax.folded." + end.Kind().String())
	}
	who := wire.TaskRef{TaskID: string(id), ExecutionID: t.execution}
	frame, err := s.frame(wire.TypeTaskCancelled, "", wire.TaskCancelled{TaskRef: who, Reason: cmp.Or(reason, "cancelled")})
	a.out = append(a.out, outgoing{kind: wire.TypeTaskCancelled, frame: frame})
	return err
}
