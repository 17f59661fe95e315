package parallax

import (
	"context"
	"io"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/adapters/parallax/gateway"
	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	pb "github.com/dragoman-hub/dragoman/proto/parallax/gateway"
)

// GatewayConn is a stream of parallax.gateway.AgentGateway/Connect, at the hub's end.
type GatewayConn = link.Conn[*pb.AgentToControlPlane, *pb.ControlPlaneToAgent]

// GatewayOptions configure a stream of the gateway. Of the Options, MaxMessageBytes bounds
// a message of the stream.
type GatewayOptions struct {
	Options
	// Address is the agent's network address. Refusals delays agents that were refused
	// before; nil delays none.
	Address  string
	Refusals *Refusals
	// Frames returns the frames of the stream, which are passed to messageOf to get what is on the
	// wire: nil for what is not. Nil keeps none.
	Frames func(messageOf func(frame []byte) proto.Message) *frame.Ring
}

// ServeGateway runs one stream of the gateway until it ends, and returns why it ended. It
// is [Serve] for an agent that speaks gRPC.
func ServeGateway(ctx context.Context, h *hub.Hub, conn GatewayConn, opts *GatewayOptions) link.Reason {
	s := newGatewaySession(h, conn, opts)
	reason := s.run(ctx)
	if reason.Cause == link.Replaced {
		s.gateway.countRefusal()
	}
	return reason
}

func newGatewaySession(h *hub.Hub, conn GatewayConn, opts *GatewayOptions) *session {
	g := &gatewayConn{conn: conn, hub: h, address: opts.Address, refusals: opts.Refusals, received: make(chan struct{})}
	own := opts.Options
	if opts.Frames != nil {
		own.Link.Frames = opts.Frames(g.messageOf)
	}
	s := newSession(h, g, &own)
	s.gateway = g
	return s
}

// gatewayConn makes a stream of the gateway a connection of WebSocket frames.
type gatewayConn struct {
	conn     GatewayConn
	hub      *hub.Hub
	address  string
	refusals *Refusals

	mu       sync.Mutex
	key      string        // of the agent in refusals; "" before its hello
	accepted bool          // the agent got its ack
	message  proto.Message // that was received last, and the frame that it is
	frame    []byte
	received chan struct{} // closed by the next message of the agent
}

var _ link.Conn[[]byte, []byte] = (*gatewayConn)(nil)

// Receive implements [link.Conn]. It skips messages that the hub has no use for.
func (g *gatewayConn) Receive(ctx context.Context) ([]byte, error) {
	for {
		m, err := g.conn.Receive(ctx)
		if err != nil {
			return nil, err
		}
		switch key := g.noteReceived(m.GetHello()); {
		case key == "":
			g.hub.Count("parallax.ignored.before_hello") // as the gateway of Parallax does
			continue
		case m.GetHello() != nil:
			if err := g.refusals.wait(ctx, key); err != nil {
				return nil, err
			}
		}
		text, ignored := gateway.Decode(m)
		if ignored != "" {
			g.hub.Count("parallax.ignored." + ignored)
		}
		if text != nil {
			g.mu.Lock()
			g.message, g.frame = m, text
			g.mu.Unlock()
			return text, nil
		}
	}
}

// messageOf returns the message on the wire that a frame of the session is.
func (g *gatewayConn) messageOf(text []byte) proto.Message {
	g.mu.Lock()
	received, of := g.message, g.frame
	g.mu.Unlock()
	if len(text) > 0 && len(of) > 0 && &text[0] == &of[0] {
		return received
	}
	if m, _, err := gateway.Encode(text); err == nil && m != nil {
		return m
	}
	return nil
}

// Send implements [link.Conn]. It drops frames that the gateway has no message for, which
// no agent needs. An error before registered refuses the agent and ends the stream.
func (g *gatewayConn) Send(ctx context.Context, text []byte) error {
	m, kind, err := gateway.Encode(text)
	if err != nil {
		return err // not of a task, which sizeOf tried
	}
	ack := m.GetAck()
	g.mu.Lock()
	accepted := g.accepted
	g.accepted = accepted || ack.GetAccepted()
	g.mu.Unlock()
	switch {
	case m == nil:
		if kind != wire.TypeHeartbeatAck {
			g.hub.Count("parallax.folded." + kind)
		}
		return nil
	case ack == nil:
		return g.conn.Send(ctx, m)
	case ack.Accepted:
		ack.AssignedNodeId = g.hub.ID()
		return g.conn.Send(ctx, m)
	case accepted:
		return nil // the session has counted the error
	}
	g.countRefusal()
	if err := g.conn.Send(ctx, m); err != nil {
		return err
	}
	return &link.Reason{Cause: refusalCause(text), Text: ack.Message}
}

// refusalCause returns why an agent is refused that gets an error in place of registered.
func refusalCause(frame []byte) link.Cause {
	if m, err := wire.Decode(frame); err == nil {
		p, _ := wire.ReadPayload[wire.Refusal](m)
		if f := (wire.TaskError{Error: wire.ErrorDetail{Code: p.Code}}).Fault(); f.Code == core.CodeOverloaded {
			return link.Overloaded
		}
	}
	return link.Unauthorized
}

// Close implements [link.Conn].
func (g *gatewayConn) Close(r link.Reason) error { return g.conn.Close(r) }

// sizeOf returns the size of the message for a frame. The error is a Fault if the gateway
// cannot carry it.
func (g *gatewayConn) sizeOf(frame []byte) (int, error) {
	m, _, err := gateway.Encode(frame)
	return proto.Size(m), err
}

// noteReceived wakes probe, and returns the agent's key in refusals. hello is nil for any
// other message.
func (g *gatewayConn) noteReceived(hello *pb.AgentHello) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.received)
	g.received = make(chan struct{})
	if hello != nil {
		g.key = g.address + "\x00" + hello.GetAgentId()
	}
	return g.key
}

func (g *gatewayConn) countRefusal() {
	g.mu.Lock()
	key := g.key
	g.mu.Unlock()
	if key != "" {
		g.refusals.add(key)
	}
}

// probe pings an agent of the gateway and returns once any message comes.
func (s *session) probe(ctx context.Context) error {
	s.gateway.mu.Lock()
	received := s.gateway.received
	s.gateway.mu.Unlock()
	frame, err := wire.Encode(gateway.TypePing, "", time.Now(), struct{}{})
	if err != nil {
		return err
	}
	if err := s.link.Send(ctx, frame, len(frame)); err != nil {
		return err
	}
	select {
	case <-received:
		return nil
	case <-s.link.Done():
		return io.EOF
	case <-ctx.Done():
		return ctx.Err()
	}
}

// GatewayService is the gRPC service parallax.gateway.AgentGateway.
type GatewayService struct {
	pb.UnimplementedAgentGatewayServer
	accept func(pb.AgentGateway_ConnectServer) error
}

// NewGatewayService returns the service. It passes each stream to accept, which calls
// [ServeGateway] and returns the status of the stream.
func NewGatewayService(accept func(pb.AgentGateway_ConnectServer) error) *GatewayService {
	return &GatewayService{accept: accept}
}

// Connect implements AgentGateway.
func (s *GatewayService) Connect(stream pb.AgentGateway_ConnectServer) error {
	return s.accept(stream)
}
