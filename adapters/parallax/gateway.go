package parallax

import (
	"context"
	"io"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	pb "github.com/dragoman-hub/dragoman/proto/parallax/gateway"
)

// GatewayConn is a stream of parallax.gateway.AgentGateway/Connect, at the hub's end.
type GatewayConn = link.Conn[*pb.AgentToControlPlane, *pb.ControlPlaneToAgent]

// GatewayOptions are what is known of a stream of the gateway. Of the Options,
// MaxMessageBytes bounds a message of the stream.
type GatewayOptions struct {
	Options
	// Address is where the agent comes from, and Refusals remembers who was refused;
	// nil remembers nobody.
	Address  string
	Refusals *Refusals
}

// ServeGateway holds one stream of a Parallax agent until it ends, and returns why.
// It is Serve for what is said in another form: the same agents, under the same rules.
func ServeGateway(ctx context.Context, h *hub.Hub, conn GatewayConn, opts GatewayOptions) link.Reason {
	g := &gateway{conn: conn, hub: h, address: opts.Address, refusals: opts.Refusals, heard: make(chan struct{})}
	s := newSession(h, g, opts.Options)
	s.gate = g
	reason := s.serve(ctx)
	if reason.Cause == link.Replaced {
		g.refused()
	}
	return reason
}

// gateway is a stream of the gateway that reads and writes the messages of a
// WebSocket, so that one session serves both.
type gateway struct {
	conn     GatewayConn
	hub      *hub.Hub
	address  string
	refusals *Refusals

	mu       sync.Mutex
	key      string        // of the agent among the refusals; "" before its hello
	accepted bool          // the agent was told that it is in
	heard    chan struct{} // closed by the next message of the agent
}

// Receive implements [link.Conn]. What says nothing to the hub is passed over.
func (g *gateway) Receive(ctx context.Context) ([]byte, error) {
	for {
		m, err := g.conn.Receive(ctx)
		if err != nil {
			return nil, err
		}
		switch key := g.hears(m.GetHello()); {
		case key == "":
			g.hub.Count("parallax.ignored.before_hello") // as the gateway of Parallax does
			continue
		case m.GetHello() != nil:
			if err := g.refusals.wait(ctx, key); err != nil {
				return nil, err
			}
		}
		frame, ignored := fromGateway(m)
		if ignored != "" {
			g.hub.Count("parallax.ignored." + ignored)
		}
		if frame != nil {
			return frame, nil
		}
	}
}

// Send implements [link.Conn]. What the gateway has no message for is left out: it
// is nothing that an agent needs to know to do its work. An error instead of
// registered is the refusal of the agent, after which the stream ends.
func (g *gateway) Send(ctx context.Context, frame []byte) error {
	m, kind, err := toGateway(frame)
	if err != nil {
		return err // a task was tried before: there is no such frame
	}
	ack := m.GetAck()
	g.mu.Lock()
	in := g.accepted
	g.accepted = in || ack.GetAccepted()
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
	case in:
		return nil // the session has counted what was wrong
	}
	g.refused()
	if err := g.conn.Send(ctx, m); err != nil {
		return err
	}
	return &link.Reason{Cause: link.Unauthorized, Text: ack.Message}
}

// Close implements [link.Conn].
func (g *gateway) Close(r link.Reason) error { return g.conn.Close(r) }

// sizeOf is how large the message for a frame is. The error is a Fault: it cannot be
// said to an agent of the gateway.
func (g *gateway) sizeOf(frame []byte) (int, error) {
	m, _, err := toGateway(frame)
	return proto.Size(m), err
}

// hears tells whoever waits for a sign of life, and returns what the agent is called
// by among the refusals. hello is nil for any other message.
func (g *gateway) hears(hello *pb.AgentHello) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.heard)
	g.heard = make(chan struct{})
	if hello != nil {
		g.key = g.address + "\x00" + hello.GetAgentId()
	}
	return g.key
}

// refused remembers that the agent may not stay.
func (g *gateway) refused() {
	g.mu.Lock()
	key := g.key
	g.mu.Unlock()
	if key != "" {
		g.refusals.add(key)
	}
}

// typePing is the ping of the gateway, which a WebSocket has by itself.
const typePing = "ping"

// probe returns once the agent has given a sign of life, for which it is asked.
func (s *session) probe(ctx context.Context) error {
	s.gate.mu.Lock()
	heard := s.gate.heard
	s.gate.mu.Unlock()
	frame, err := wire.Encode(typePing, "", time.Now(), struct{}{})
	if err != nil {
		return err
	}
	if err := s.link.Send(ctx, frame, len(frame)); err != nil {
		return err
	}
	select {
	case <-heard:
		return nil
	case <-s.link.Done():
		return io.EOF
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pingOf is the ping of a moment.
func pingOf(now time.Time) *pb.ControlPlaneToAgent {
	return &pb.ControlPlaneToAgent{Payload: &pb.ControlPlaneToAgent_Ping{Ping: &pb.Ping{ServerTime: timestamppb.New(now)}}}
}

// GatewayService is the gRPC service parallax.gateway.AgentGateway.
type GatewayService struct {
	pb.UnimplementedAgentGatewayServer
	accept func(pb.AgentGateway_ConnectServer) error
}

// NewGatewayService returns a service that hands each stream to accept, which turns
// it into a connection for [ServeGateway] and returns the status that the stream ends
// with.
func NewGatewayService(accept func(pb.AgentGateway_ConnectServer) error) *GatewayService {
	return &GatewayService{accept: accept}
}

// Connect implements AgentGateway.
func (s *GatewayService) Connect(stream pb.AgentGateway_ConnectServer) error {
	return s.accept(stream)
}

var _ link.Conn[[]byte, []byte] = (*gateway)(nil)

// gatewayLimits bound the JSON of an agent of the gateway, which is put two objects
// deep into a frame.
var gatewayLimits = strictjson.Limits{Depth: wire.Limits.Depth - 2}
