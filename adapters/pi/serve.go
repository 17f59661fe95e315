package pi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Transport is what carries a connection. A few texts of the specification depend on it.
// The zero Transport is WebSocket.
type Transport string

// The transports (section 3).
const (
	WebSocket Transport = "websocket"
	Stdio     Transport = "stdio"
)

// ConnOptions describe a connection.
type ConnOptions struct {
	// Principal is the client. Without an id it gets a generated one. On an open hub, where
	// clients share their sessions, it is an operator.
	Principal core.Principal
	Transport Transport
	Snapshots render.Snapshots
	Lifecycle Lifecycle
	// Frames keeps the frames of the connection; nil keeps none.
	Frames *frame.Ring
	// Trace is the trace context with which the connection was made: that of commands that bring
	// none.
	Trace core.Trace
}

// Serve serves a connection until it ends, and returns the reason. When it returns, only
// the prompts of the connection may still run. In a cluster another hub may serve it.
func (s *Server) Serve(ctx context.Context, conn link.Conn[[]byte, []byte], o ConnOptions) link.Reason {
	if home := s.home(ctx, o.Principal); home != "" {
		return s.visit(ctx, home, conn, o)
	}
	return s.serve(ctx, conn, o)
}

// serve serves a connection at this hub.
func (s *Server) serve(ctx context.Context, conn link.Conn[[]byte, []byte], o ConnOptions) link.Reason {
	c := s.newConnection(o)
	opts := s.opts.Link
	opts.Frames = o.Frames
	if o.Transport == Stdio {
		opts.EOF = func() { s.engine.EndOfInput(&c.Client) }
	}
	c.link = link.New(conn, opts)
	if full := s.attach(c); full != nil {
		c.link.Close(*full) // nothing is queued, so it closes at once
	}
	log := s.opts.Log.With("principal", c.principal.ID, "transport", string(c.transport))
	log.Info("pi client connected")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var pump sync.WaitGroup
	pump.Go(func() { c.pump(ctx) })
	reason := c.link.Run(ctx, c.receive, c.rejected)
	s.detach(c)
	c.hub.Close(core.NewFault(core.CodeUnreachable, "the connection ended: %s", reason.Error()))
	cancel()
	pump.Wait()
	for st := range c.views {
		c.hub.Unwatch(st.task)
	}
	log.Info("pi client left", "reason", reason.Error())
	return reason
}

func (s *Server) newConnection(o ConnOptions) *connection {
	c := &connection{
		server: s, principal: o.Principal, transport: cmp.Or(o.Transport, WebSocket), snapshots: o.Snapshots, lifecycle: o.Lifecycle, trace: o.Trace, sees: o.Frames, delivery: o.Frames.Delivery(), out: newOutbox(s.opts.BacklogBytes),
		subscriptions: map[*session]struct{}{}, views: map[*step]*render.View{},
	}
	c.principal.ID = cmp.Or(c.principal.ID, "pi-"+core.NewID())
	c.principal.Dialect = cmp.Or(c.principal.Dialect, Name)
	c.Sink, c.Carrier = c, c.transport.carrier()
	c.Scope = scopeOf(c.principal)
	c.hub = s.hub.Connect(hub.Identity{Principal: c.principal, Dialect: Name, Deadline: s.opts.Commands.PromptTimeout, Frames: o.Frames})
	select {
	case <-s.done:
		c.late = true
	default:
	}
	return c
}

// attach adds the connection to those that get broadcasts, and sends it server_ready and
// what the server recovered at its start. It returns the reason why there is no room.
func (s *Server) attach(c *connection) *link.Reason {
	s.engine.Lock()
	defer s.engine.Unlock()
	if full := c.hub.Rejected(); full != nil {
		return overloaded(full.Message)
	}
	c.late = c.late || s.engine.Draining()
	if c.transport == WebSocket {
		if s.sockets >= s.opts.MaxConnections {
			s.engine.Reject(command.OverConnections)
			return overloaded(fmt.Sprintf("Connection limit reached (%d connections)", s.opts.MaxConnections))
		}
		s.sockets++
	}
	c.push(item{frame: render.ServerEvent("server_ready", strictjson.Encode(map[string]any{
		"serverVersion": s.opts.Version, "protocolVersion": ProtocolVersion, "transports": []Transport{WebSocket, Stdio},
	}))})
	c.push(item{frame: render.ServerEvent("startup_recovery_summary", strictjson.Encode(s.engine.Journal().Recovered(c.Scope, redacted, false)))})
	s.recordEvent("server_ready")
	s.clients, c.Attached, c.since = append(s.clients, c), true, time.Now()
	s.connected++
	if c.Namespace = (command.Namespace{Principal: c.Scope}); c.Scope == "" {
		c.Namespace.Conn = s.connected
	}
	return nil
}

// overloaded is why a connection for which there is no room ends.
func overloaded(text string) *link.Reason {
	return &link.Reason{Cause: link.Overloaded, Text: text, Code: 1013}
}

func (s *Server) detach(c *connection) {
	s.engine.Lock()
	defer s.engine.Unlock()
	if !c.Attached {
		return
	}
	s.clients = without(s.clients, c)
	s.engine.Leave(&c.Client)
	if c.transport == WebSocket {
		s.sockets--
	}
	for ss := range c.subscriptions {
		ss.subscribers = without(ss.subscribers, c)
		ss.watchQuestions()
	}
	s.orphanSessions(c)
	if !s.opts.DropTasks {
		return
	}
	for _, ss := range s.sessions {
		if r := ss.run; r != nil && r.prompt != nil && r.prompt.client == c {
			r.prompt.stop(ss, "the client left")
		}
		if ss.compacting != nil && ss.compacting.x.client == c {
			ss.compacting.x.stopSummary(ss, "the client left")
		}
		if ss.bash != nil && ss.bash.x.client == c {
			ss.bash.kill()
		}
	}
}

// receive handles one frame. It blocks while the outbox is full, so that a client cannot
// send faster than it reads.
func (c *connection) receive(ctx context.Context, frame []byte) error {
	if err := c.out.wait(ctx); err != nil {
		return nil // the link is closed and knows why
	}
	limit := c.server.opts.MaxMessageBytes
	if len(frame) > limit {
		c.refuseSize(len(frame), limit)
		return nil
	}
	cmd, err := command.Decode(frame, limit)
	if _, ok := cmd.Text("type"); c.transport == Stdio && (err != nil || !ok) {
		text := "Invalid JSON"
		var slips command.Problems
		command.CheckKeys(&slips, cmd)
		switch {
		case err != nil && json.Valid(frame):
			text += ": " + err.Error()
		case len(slips) > 0:
			text += ": " + strings.Join(slips, "; ")
		}
		c.push(item{frame: command.Refusal(text)})
		return nil
	}
	if err != nil {
		c.push(item{frame: command.Refusal(err.Error())})
		return nil
	}
	c.submit(cmd)
	return nil
}

// rejected answers a frame that the transport did not accept.
func (c *connection) rejected(_ context.Context, r *link.Reject) error {
	if r.Cause == link.TooLarge && r.Size > 0 {
		c.refuseSize(r.Size, r.Limit)
		return nil
	}
	c.push(item{frame: command.Refusal(r.Text)})
	return nil
}

func (c *connection) refuseSize(size, limit int) {
	c.server.engine.Reject(command.OverSize)
	c.push(item{frame: command.Refusal(fmt.Sprintf("Message size %d exceeds limit %d", size, limit))})
}

// carrier is the reference's word for the transport in its errors.
func (t Transport) carrier() string {
	if t == Stdio {
		return "transport"
	}
	return "connection"
}
