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
// runs any more. It does not keep opts.
//
// A bad envelope is answered by an error envelope whose ref is its id, as far as that could
// be read; the connection stays open.
func Serve(ctx context.Context, h *hub.Hub, conn link.Conn[[]byte, []byte], opts *Options) link.Reason {
	// The frame of Serve stays on the stack of the reader loop for as long as the connection
	// lasts: what is large is elsewhere.
	c := newConnection(h, conn, opts)
	c.begin(ctx)
	reason := c.outlet.link.Run(ctx, c.receive, c.rejected)
	c.end(reason)
	return reason
}

// connection is the session of a peer that has a connection of its own.
type connection struct {
	*session
	outlet linkOutlet
	beside sync.WaitGroup // what goAsync runs
	// stopDelivery is nil until the peer is identified.
	stopDelivery func()
}

func newConnection(h *hub.Hub, conn link.Conn[[]byte, []byte], opts *Options) *connection {
	c := &connection{}
	c.session = newSession(h, opts.withDefaults(), &c.outlet)
	c.goAsync = func(ctx context.Context, f func(context.Context)) { c.beside.Go(func() { f(ctx) }) }
	c.outlet.link = link.New(conn, c.opts.Link)
	if _, ok := conn.(link.Pinger); ok {
		c.probe = c.outlet.link.Ping
	}
	return c
}

// begin identifies the peer if the connection itself states its identity.
func (c *connection) begin(ctx context.Context) {
	c.startDelivery = func() {
		c.stopDelivery = c.self.Consume(ctx, func(b hub.Batch, err error) bool { return c.handleBatch(ctx, b, err) })
	}
	if err := link.Apart(func() error { return c.known(ctx) }); err != nil {
		_ = c.refuse(ctx, wire.Envelope{}, err) // if that fails the link keeps the reason
		c.outlet.link.Close(*link.Because(link.Unauthorized, "%s", err))
	}
}

// handleBatch sends what the hub has for the peer, in order, and reports whether it is to be
// called again. It runs in the delivery goroutine.
func (c *connection) handleBatch(ctx context.Context, b hub.Batch, err error) bool {
	if err == nil {
		err = c.deliverAll(ctx, b)
	}
	if err != nil {
		c.farewell(ctx, err)
		c.outlet.link.Close(reasonOf(err))
	}
	return err == nil
}

// end closes the session once the connection has ended.
func (c *connection) end(reason link.Reason) {
	c.lined.Wait()
	c.close(reason.Fault(), c.outlet.unacked(reason)...)
	c.beside.Wait()
	if c.stopDelivery != nil {
		c.stopDelivery()
	}
}

// known identifies the peer if the connection itself states its identity.
func (s *session) known(ctx context.Context) error {
	id := s.opts.AgentID
	if p := &s.opts.Principal; id == "" && p.Authenticated {
		id = core.AgentID(p.ID)
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

// reasonOf returns the reason to close a connection whose delivery ended with err.
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
