package native

import (
	"context"
	"errors"

	"github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// errStopped ends a feed that the peer wants no longer.
var errStopped = core.NewFault(core.CodeCancelled, "the peer reads no further")

// watchAll shows the peer the events of all tasks: from now on, or with their positions, from one on.
func (s *session) watchAll(ctx context.Context, c wire.Call) error {
	if c.With.Stop {
		s.mu.Lock()
		all := s.all
		s.all = nil
		s.mu.Unlock()
		if all == nil {
			return s.reply(ctx, c.ID, nil, core.NewFault(core.CodeInvalid, "with.stop: you follow no tasks with positions"))
		}
		all.Close(errStopped)
		return s.reply(ctx, c.ID, done{c.ID}, nil)
	}
	if !c.With.Positions && c.With.After == "" {
		return s.reply(ctx, c.ID, done{c.ID}, s.asks.WatchAll())
	}
	all := s.asks.Child()
	f, err := all.Feed(c.With.After)
	s.mu.Lock()
	if err == nil && s.all != nil {
		err = core.NewFault(core.CodeConflict, "you follow all tasks already: stop that first")
	}
	if err == nil {
		s.all = all
	}
	s.mu.Unlock()
	if err != nil {
		all.Close(errStopped)
		return s.reply(ctx, c.ID, nil, err)
	}
	result := struct {
		done
		Position string `json:"position"`
	}{done{c.ID}, string(f.Position(nil))}
	if err := s.send(ctx, "result", result); err != nil {
		return err
	}
	s.goroutines.Go(func() {
		err := s.pumpFeed(s.ctx, c.ID, f)
		s.mu.Lock()
		if s.all == all {
			s.all = nil
		}
		s.mu.Unlock()
		all.Close(errStopped)
		if s.ctx.Err() == nil && !errors.Is(err, errStopped) {
			_ = s.refuse(s.ctx, wire.Refusal{ID: c.ID, Fault: s.fault(err)}) // the link may have ended
		}
	})
	return nil
}

// pumpFeed sends the events of all tasks. It returns why there are no more.
func (s *session) pumpFeed(ctx context.Context, call string, f *hub.Feed) error {
	for {
		b, err := f.Next(ctx)
		if err != nil {
			return err
		}
		if b.After != "" || b.Gap != nil {
			g := wire.Gap{Task: b.Task, Role: task.Viewer.String(), Call: call, After: b.After}
			if b.Gap != nil {
				g.From, g.To = b.Gap.From, b.Gap.To
			}
			if err := s.send(ctx, "gap", g); err != nil {
				return err
			}
		}
		head := wire.Head{Task: b.Task, Role: task.Viewer.String(), Call: call}
		for _, e := range b.Events { // the session of the connection says that the hub stops
			head.Position = string(f.Append(nil, b.Task, e))
			if err := s.sendEvent(ctx, head, e, nil); err != nil {
				return err
			}
		}
	}
}
