package native

import (
	"context"

	"github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/task"
)

// maxLater is how many calls of a connection may wait for the journal or another connection.
const maxLater = 64

// later holds the calls that may wait. A goroutine executes them in order while there are any.
// session.mu guards it.
type later struct {
	calls   []waitingCall
	bytes   int // of their frames
	running bool
}

// waitingCall is a call with the size of its frame.
type waitingCall struct {
	wire.Call
	bytes int
}

// callLater queues a call that may wait for the journal or for another connection. Together such
// calls have at most the size of one frame.
func (s *session) callLater(ctx context.Context, c wire.Call, bytes int) error {
	s.mu.Lock()
	waiting := len(s.later.calls)
	full := waiting >= maxLater || waiting > 0 && s.later.bytes+bytes > s.opts.FrameBytes
	if !full {
		s.later.calls = append(s.later.calls, waitingCall{c, bytes})
		s.later.bytes += bytes
		if !s.later.running {
			s.later.running = true
			s.goroutines.Go(s.runLater)
		}
	}
	s.mu.Unlock()
	if full {
		return s.refuse(ctx, wire.Refusal{ID: c.ID, Fault: core.NewFault(core.CodeOverloaded, "too many calls wait already (%d): wait for the result of one", waiting)})
	}
	return nil
}

// runLater executes the queued calls until there are none.
func (s *session) runLater() {
	for {
		s.mu.Lock()
		if len(s.later.calls) == 0 || s.ctx.Err() != nil {
			s.later = later{}
			s.mu.Unlock()
			return
		}
		c := s.later.calls[0]
		s.later.calls = s.later.calls[1:]
		s.later.bytes -= c.bytes
		s.mu.Unlock()
		if err := s.execute(s.ctx, c.Call); err != nil {
			s.leave(s.ctx, err)
			return
		}
	}
}

// execute executes a call that may wait.
func (s *session) execute(ctx context.Context, c wire.Call) error {
	switch cmd := c.Command.(type) {
	case core.Cancel, core.Inject, core.Decide:
		return s.steer(ctx, ctx, c)
	case core.Read:
		return s.read(ctx, c, cmd)
	case core.Readers:
		readers, err := s.hub.Readers(ctx, s.principal(), cmd.Task)
		return s.reply(ctx, c.ID, struct {
			done
			Readers []task.ReaderStatus `json:"readers"`
		}{done{c.ID}, readers}, err)
	case core.List:
		return s.list(ctx, c, cmd)
	case core.Reply:
		outcome, err := s.asks.AnswerQuestion(ctx, cmd)
		return s.reply(ctx, c.ID, struct {
			done
			Outcome question.Outcome `json:"outcome"`
		}{done{c.ID}, outcome}, err)
	case core.Join:
		id, err := s.join(ctx, cmd.Card)
		if err != nil {
			s.log.Warn("agent rejected", "agent", wire.Excerpt(cmd.Card.ID), "code", core.AsFault(err).Code, "why", core.AsFault(err).Message)
		}
		return s.reply(ctx, c.ID, struct {
			done
			Agent core.AgentID `json:"agent"`
		}{done{c.ID}, id}, err)
	case core.Configure:
		status, err := s.hub.Configure(ctx, s.principal(), cmd)
		return s.reply(ctx, c.ID, struct {
			done
			Status hub.AgentStatus `json:"status"`
		}{done{c.ID}, status}, err)
	case core.Restart:
		return s.reply(ctx, c.ID, done{c.ID}, s.hub.Restart(ctx, s.principal(), cmd.Name))
	case core.Admit:
		return s.reply(ctx, c.ID, done{c.ID}, s.hub.Admit(ctx, s.principal(), cmd))
	case core.Drain:
		return s.reply(ctx, c.ID, done{c.ID}, s.hub.Drain(s.principal()))
	case core.Forget:
		return s.reply(ctx, c.ID, done{c.ID}, s.hub.Forget(ctx, s.principal(), cmd))
	}
	return s.reply(ctx, c.ID, nil, core.NewFault(core.CodeUnsupported, "the act %s cannot be called here", c.Command.Act()))
}

func (s *session) read(ctx context.Context, c wire.Call, cmd core.Read) error {
	t, err := s.hub.Task(ctx, s.principal(), cmd.Task)
	if err != nil {
		return s.reply(ctx, c.ID, nil, err)
	}
	result := struct {
		done
		Status task.Status `json:"status"`
	}{done{c.ID}, t.Status()}
	if c.With.Stop {
		s.asks.Unwatch(t)
		return s.send(ctx, "result", result)
	}
	if !c.With.Watch {
		return s.send(ctx, "result", result)
	}
	after, err := core.ParseCursor(c.With.After)
	if err != nil {
		return s.reply(ctx, c.ID, nil, core.NewFault(core.CodeInvalid, "with.after: %s", core.AsFault(err).Message))
	}
	b := &beginning{call: c.ID, result: result}
	if err := s.asks.Watch(t, after, b); err != nil {
		return s.reply(ctx, c.ID, nil, err)
	}
	return s.begin(ctx, b, t.ID())
}

// join makes the peer an agent, or replaces its card.
func (s *session) join(ctx context.Context, card core.Card) (core.AgentID, error) {
	own := s.ownID()
	switch {
	case s.supervised || card.ID == "" && own != "":
		card.ID = own
	case own != "" && card.ID != own:
		return "", core.NewFault(core.CodeNotAuthorized, "this connection is agent %q, not %q: send that id, or none", own, card.ID)
	case card.ID == "" && s.principal().Authenticated:
		card.ID = core.AgentID(s.principal().ID)
	}
	card.Dialect = Dialect
	if before := s.agent.AgentID(); before != "" && before != card.ID {
		return "", core.NewFault(core.CodeConflict, "this connection is agent %q already: open another for %q", before, card.ID)
	}
	if s.supervised {
		card = wire.Supervise(s.opts.Card, card)
		if err := s.agent.Update(card); err != nil {
			return "", err
		}
	} else if err := s.agent.Update(card); err != nil { // it has not joined yet
		if err := s.agent.Take(ctx, card, hub.JoinOptions{Probe: s.probe}); err != nil {
			return "", err
		}
		s.agent.Resubscribe()
	}
	if s.opts.Ready != nil {
		s.opts.Ready(card)
	}
	return card.ID, nil
}
