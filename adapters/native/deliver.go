package native

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/pack"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// deliver sends one batch of the hub.
func (s *session) deliver(ctx context.Context, b hub.Batch) error {
	switch {
	case b.Draining != "":
		return s.send(ctx, "draining", struct {
			Reason string `json:"reason"`
		}{b.Draining})
	case b.SettingsChanged != nil:
		c := b.SettingsChanged
		return s.send(ctx, "settings", struct {
			MaxConcurrent int           `json:"max_concurrent"`
			Heartbeat     time.Duration `json:"heartbeat_ns"`
			Concurrent    int           `json:"concurrent"`
			Reason        string        `json:"reason,omitempty"`
		}{c.MaxConcurrent, c.Heartbeat, c.Concurrent, c.Reason})
	case b.Tool != nil:
		return s.returned(ctx, b.Tool)
	case b.Execute != nil:
		return s.sendExecution(ctx, b.Execute)
	case b.Withdrawn != "":
		return s.send(ctx, "withdrawn", struct {
			Execution string `json:"execution"`
		}{b.Withdrawn})
	case b.Question != nil:
		return s.show(ctx, b.Question)
	case b.ToolsChanged:
		return s.send(ctx, "tools", toolsOf(s.asks.Tools()))
	case b.Gap != nil:
		return s.sendGap(ctx, b)
	case b.Task == nil:
		return nil
	case b.Role == task.Agent:
		return s.toAgent(ctx, b)
	}
	return s.toReader(ctx, b)
}

// toReader sends the events of a task to who asked for them.
func (s *session) toReader(ctx context.Context, b hub.Batch) error {
	if begun, ok := b.Tag.(*beginning); ok {
		if err := s.begin(ctx, begun, b.Task.ID()); err != nil {
			return err
		}
	}
	head := wire.Head{Task: b.Task.ID(), Role: b.Role.String(), Call: callOf(b.Tag)}
	var sent func()
	if b.Role == task.Subscriber {
		sent = func() { s.asks.NoticeDelivered(b.Task, b.Tag) }
	}
	for _, e := range b.Events {
		if err := s.sendEvent(ctx, head, e, sent); err != nil {
			return err
		}
	}
	return nil
}

// sendEvent sends an event. sent, which may be nil, is called once the transport took it.
func (s *session) sendEvent(ctx context.Context, h wire.Head, e core.Event, sent func()) error {
	const room = 256 // of the members around a piece of text
	frame, err := wire.AppendEvent(make([]byte, 0, room), h, e)
	if err != nil {
		return err
	}
	return s.link.SendThen(ctx, frame, len(frame), sent)
}

// toAgent sends the events of a task to the peer that works on it.
func (s *session) toAgent(ctx context.Context, b hub.Batch) error {
	id := b.Task.ID()
	head := wire.Head{Task: id, Role: b.Role.String()}
	for _, e := range b.Events {
		var sent func()
		switch k := e.Body.Kind(); {
		case k == core.KindAssigned:
			if e.Body.(core.Assigned).Agent != s.agent.AgentID() {
				continue // an attempt of another agent
			}
			s.hold(id)
			if err := s.sendOpened(ctx, head, b.Task); err != nil {
				return err
			}
			sent = func() {
				s.agent.Delivered(id)
				if b.Task.IsNotice() {
					s.drop(id)
				}
			}
		case k.Ends():
			if !s.drop(id) {
				continue // the peer has ended it itself, or never had it
			}
		case !s.holds(id):
			continue
		}
		if err := s.sendEvent(ctx, head, e, sent); err != nil {
			return err
		}
	}
	return nil
}

// sendOpened sends the request of a task to its agent, with the history of its thread.
func (s *session) sendOpened(ctx context.Context, h wire.Head, t *task.Task) error {
	log := t.Log()
	e := log.At(0)
	o, ok := e.Body.(core.Opened)
	if !ok {
		return core.NewFault(core.CodeInternal, "task %s has lost its beginning", t.ID())
	}
	o.Request = t.AgentRequest()
	e.Body = o
	return s.sendEvent(ctx, h, e, nil)
}

// returned answers a call of a tool.
func (s *session) returned(ctx context.Context, r *tool.Result) error {
	if r.Fault != nil {
		return s.refuse(ctx, wire.Refusal{ID: r.Call, Output: r.Output, Fault: s.fault(r.Fault)})
	}
	return s.send(ctx, "result", struct {
		done
		Output json.RawMessage `json:"output"`
		Pack   string          `json:"pack,omitempty"`
	}{done{r.Call}, orNull(r.Output), r.Pack})
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(bytes.TrimSpace(raw)) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

func (s *session) sendExecution(ctx context.Context, e *pack.Execution) error {
	return s.send(ctx, "execute", struct {
		ID       string          `json:"id"`
		Tool     string          `json:"tool"`
		Input    json.RawMessage `json:"input"`
		Deadline time.Time       `json:"deadline"`
		From     core.Principal  `json:"from"`
		Agent    core.AgentID    `json:"agent,omitempty"`
	}{e.ID, e.Tool, orNull(e.Input), e.Deadline, e.From, e.Agent})
}

// show shows the peer a question that it watches.
func (s *session) show(ctx context.Context, u *question.Update) error {
	tag, ok := u.Tag.(*watching)
	if !ok {
		return nil
	}
	select {
	case <-tag.answered:
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.send(ctx, "question", struct {
		Call     string            `json:"call"`
		Question question.Question `json:"question"`
		Outcome  *question.Outcome `json:"outcome,omitempty"`
	}{tag.call, u.Question, u.Outcome})
}

func (s *session) sendGap(ctx context.Context, b hub.Batch) error {
	g := wire.Gap{Role: b.Role.String(), Call: callOf(b.Tag), From: b.Gap.From, To: b.Gap.To}
	if b.Task != nil {
		g.Task = b.Task.ID()
	}
	if begun, ok := b.Tag.(*beginning); ok {
		if err := s.begin(ctx, begun, g.Task); err != nil {
			return err
		}
	}
	return s.send(ctx, "gap", g)
}
