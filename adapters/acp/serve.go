package acp

import (
	"context"
	"errors"
	"sync"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
)

// Serve serves an ACP peer over a connection of whole messages, one envelope in each: a
// WebSocket or lines of JSON. It returns why the connection ended, once no goroutine of it
// runs any more.
//
// A bad envelope is answered by an error envelope whose ref is its id, as far as that could
// be read; the connection stays open.
func Serve(ctx context.Context, h *hub.Hub, conn link.Conn[[]byte, []byte], opts Options) link.Reason {
	opts = opts.withDefaults()
	out := &linkOutlet{}
	s := newSession(h, opts, out)
	var beside sync.WaitGroup
	s.goAsync = func(ctx context.Context, f func(context.Context)) { beside.Go(func() { f(ctx) }) }
	out.link = link.New(conn, opts.Link)
	if _, ok := conn.(link.Pinger); ok {
		s.probe = out.link.Ping
	}

	pumped := make(chan struct{})
	go func() {
		defer close(pumped)
		select {
		case <-s.identified:
			err := s.pump(ctx)
			s.farewell(ctx, err)
			out.link.Close(reasonOf(err))
		case <-out.link.Done():
		}
	}()
	if err := s.known(ctx, opts); err != nil {
		_ = s.refuse(ctx, wire.Envelope{}, err) // if that fails the link keeps the reason
		out.link.Close(*link.Because(link.Unauthorized, "%s", err))
	}
	reason := out.link.Run(ctx, s.receive, s.rejected)
	s.lined.Wait()
	s.close(reason.Fault(), out.unacked(reason)...)
	beside.Wait()
	<-pumped
	return reason
}

// known identifies the peer if the connection itself states its identity.
func (s *session) known(ctx context.Context, opts Options) error {
	id := opts.AgentID
	if id == "" && opts.Principal.Authenticated {
		id = core.AgentID(opts.Principal.ID)
	}
	if id == "" {
		return nil
	}
	if err := core.CheckAgentID(id); err != nil {
		return err
	}
	s.identify(id)
	return s.welcome(ctx)
}

// rejected tells the peer of a message that the transport refused.
func (s *session) rejected(ctx context.Context, r *link.Reject) error {
	if r.Cause == link.TooLarge {
		return s.refuse(ctx, wire.Peek([]byte(r.Head)), wire.Refusef(wire.CodeTooLarge, "%s: send less, or a reference to it", r.Text))
	}
	return s.refuse(ctx, wire.Envelope{}, wire.Refusef(wire.CodeInvalidEnvelope, "%s", r.Text))
}

// reasonOf returns the reason to close a connection whose pump ended with err.
func reasonOf(err error) link.Reason {
	var r *link.Reason
	var f *core.Fault
	switch {
	case errors.As(err, &r):
		return *r
	case errors.As(err, &f) && f.Code == core.CodeConflict:
		return *link.Because(link.Replaced, "%s", f.Message)
	case errors.As(err, &f) && f.Code == core.CodeUnauthenticated:
		return link.Reason{Cause: link.Unauthorized, Code: closeUnauthenticated, Text: f.Message}
	case errors.As(err, &f) && f.Code == core.CodeTimeout:
		return *link.Because(link.Unresponsive, "%s", f.Message)
	case errors.As(err, &f) && f.Code == core.CodeOverloaded:
		return *link.Because(link.Overloaded, "%s", f.Message)
	case errors.As(err, &f):
		return *link.Because(link.ShuttingDown, "%s", f.Message)
	}
	return link.Reason{Cause: link.ShuttingDown, Text: "shutting down", Err: err}
}

// closeUnauthenticated is the WebSocket close code for a peer whose token is no longer
// valid.
const closeUnauthenticated = 4401
