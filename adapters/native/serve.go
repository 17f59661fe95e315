package native

import (
	"context"
	"errors"

	"github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/core"
	coreagent "github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
)

// Accept serves a connection that has come to the hub, and returns why it ended. By then no
// goroutine of it runs any more, and the peer has left the hub. When ctx ends, the connection
// closes as shutting down.
func Accept(ctx context.Context, h *hub.Hub, conn link.Conn[[]byte, []byte], opts Options) link.Reason {
	opts = opts.withDefaults()
	p := opts.Principal
	if p.ID == "" { // who may connect to an open hub may do everything, as over REST
		p.ID, p.Operator = string(opts.AgentID), true
		if p.ID == "" {
			p.ID = Dialect + "-" + core.NewID()
		}
	}
	if p.Dialect == "" {
		p.Dialect = Dialect
	}
	own := h.Connect(hub.Identity{Principal: p, Dialect: Dialect, Deadline: opts.Deadline, Checked: true, Frames: opts.Link.Frames, Trace: opts.Trace})
	s := newSession(h, conn, opts, own, own)
	if _, ok := conn.(link.Pinger); ok {
		s.probe = s.link.Ping
	}
	return s.run(ctx, func(reason link.Reason) { own.Close(reason.Fault()) })
}

// Serve serves the connection of an agent that the hub itself started or connected to, over a
// session that has joined as the agent with the card of the options. It returns why the
// connection ended: nil after a normal end, a *[core.Fault] if the session itself has ended,
// and otherwise the *[link.Reason]. The session stays open, for another Serve; what the
// agent worked on has failed as unreachable, and what it asked, offered and read has ended.
// Nobody else calls Next of the session meanwhile.
func Serve(ctx context.Context, h *hub.Hub, agent *hub.Session, conn link.Conn[[]byte, []byte], opts Options) error {
	opts = opts.withDefaults()
	asks := agent.Child()
	s := newSession(h, conn, opts, agent, asks)
	s.supervised, s.noise = true, coreagent.NewNoise(s.log, h.Count)
	reason := s.run(ctx, func(reason link.Reason) {
		if opts.Lost != nil {
			opts.Lost(&reason)
		}
		asks.Close(reason.Fault())
		s.failHeld(reason.Fault())
	})
	var f *core.Fault
	switch {
	case errors.As(reason.Err, &f):
		return f
	case reason.Cause == link.Normal:
		return nil
	}
	return &reason
}

// run runs the connection. ended is called once nothing more is received.
func (s *session) run(ctx context.Context, ended func(link.Reason)) link.Reason {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	s.ctx = inner
	s.greet()
	s.goroutines.Go(func() { s.pump(inner, s.agent, true) })
	if s.asks != s.agent {
		s.goroutines.Go(func() { s.pump(inner, s.asks, false) })
	}
	reason := s.link.Run(ctx, s.receive, s.rejected)
	if s.supervised {
		cancel() // Next of the agent returns nothing that nobody delivers
		s.goroutines.Wait()
		ended(reason)
		return reason
	}
	ended(reason)
	cancel()
	s.goroutines.Wait()
	return reason
}

// greet queues the first frame.
func (s *session) greet() {
	hello := wire.Hello{
		Native: wire.Version, Hub: s.opts.HubName, Version: s.opts.Version, Principal: s.asks.Identity().Principal, Agent: s.ownID(),
		Limits: wire.Limits{FrameBytes: s.opts.FrameBytes},
	}
	_ = s.send(s.ctx, "hello", hello) // a new queue has room
}

// pump sends what a session of the hub says, until the session ends or sending is pointless.
// Only one pump of a connection holds messages back.
func (s *session) pump(ctx context.Context, from *hub.Session, holds bool) {
	for {
		b, err := from.Next(ctx)
		if err != nil {
			s.leave(ctx, err)
			return
		}
		if holds {
			s.link.Hold()
		}
		err = from.Drain(b, func(b hub.Batch) error {
			if b.Draining != "" && from != s.agent {
				return nil // the other session says so too
			}
			return s.deliver(ctx, b)
		})
		if holds {
			s.link.Flush()
		}
		if err != nil {
			s.leave(ctx, err)
			return
		}
	}
}

// leave ends the connection because the session of the hub has ended, which the peer is told,
// or because nothing can be sent.
func (s *session) leave(ctx context.Context, err error) {
	var r *link.Reason
	var f *core.Fault
	switch {
	case ctx.Err() != nil:
		return // the connection ends already
	case errors.As(err, &r):
	case errors.As(err, &f):
		_ = s.send(ctx, "error", wire.Refusal{Fault: f, Fatal: true})
		r = reasonOf(f)
		if s.supervised {
			r.Err = f
		}
	default:
		s.log.Error("native pump ended", "error", err)
		r = &link.Reason{Cause: link.Internal, Text: "internal error", Err: err}
	}
	s.link.Close(*r)
}

// closeUnauthenticated is the WebSocket close code for a peer whose token is no longer valid.
const closeUnauthenticated = 4401

// reasonOf returns the reason to close the connection of a session that ended with a Fault.
func reasonOf(f *core.Fault) *link.Reason {
	switch f.Code {
	case core.CodeConflict:
		return link.Because(link.Replaced, "%s", f.Message)
	case core.CodeUnauthenticated:
		return &link.Reason{Cause: link.Unauthorized, Code: closeUnauthenticated, Text: f.Message}
	case core.CodeTimeout:
		return link.Because(link.Unresponsive, "%s", f.Message)
	case core.CodeOverloaded:
		return link.Because(link.Overloaded, "%s", f.Message)
	}
	return link.Because(link.ShuttingDown, "%s", f.Message)
}
