package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

// relay passes frames between agents and requesters: it shows what the same libraries cost
// without a hub. It sends the frames that the hub would send, and keeps only the pending
// questions.
type relay struct {
	grpc *grpcserver.Server

	number  atomic.Int64
	mu      sync.Mutex
	agents  map[string]relayAgent
	pending map[string]*relayedQuestion             // by id
	streams map[string]chan *wire.ClientStreamEvent // of Coven clients, by conversation
}

// relayed is a step of an answer.
type relayed int

const (
	relayedAccepted relayed = iota + 1
	relayedText
	relayedEnd
)

// relayedQuestion is a question that an agent works on.
type relayedQuestion struct {
	accepted bool
	step     func(relayed, string) // notifies the requester
}

// relayAgent passes a question on to an agent.
type relayAgent func(id, content string) error

// runRelay relays until ctx ends.
func runRelay(ctx context.Context, args []string) error {
	f, _, ready, _ := peerFlags("relay")
	if err := f.Parse(args); err != nil {
		return err
	}
	grpcListener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	httpListener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	r := &relay{
		grpc:   grpcserver.New(grpcserver.Options{}),
		agents: map[string]relayAgent{}, pending: map[string]*relayedQuestion{}, streams: map[string]chan *wire.ClientStreamEvent{},
	}
	r.grpc.Register(&wire.CovenControl_ServiceDesc, coven.NewService(r.serveCovenAgent))
	r.grpc.Register(&wire.ClientService_ServiceDesc, relayCovenClients{relay: r})
	web := &http.Server{Handler: r.routes(), ReadHeaderTimeout: responseTimeout}
	var group sync.WaitGroup
	failed := make(chan error, 2)
	group.Go(func() { failed <- r.grpc.Serve(grpcListener) })
	group.Go(func() { failed <- web.Serve(httpListener) })
	if err := writeReady(*ready, addresses{GRPC: address(grpcListener), HTTP: address(httpListener)}); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		err = nil
	case err = <-failed:
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), responseTimeout)
	defer cancel()
	web.Close()
	_ = r.grpc.Stop(end) // the result does not matter
	group.Wait()
	return err
}

func address(l net.Listener) string { return l.Addr().String() }

func (r *relay) routes() http.Handler {
	mux := http.NewServeMux()
	either := func(agent func(*relayConn, string), client func(*relayConn)) http.HandlerFunc {
		return func(w http.ResponseWriter, q *http.Request) {
			conn, err := ws.Accept(w, q, ws.AcceptOptions{})
			if err != nil {
				return
			}
			c := &relayConn{Conn: conn, ctx: q.Context()}
			defer c.leave()
			if id := q.Header.Get("X-Agent-Id"); strings.HasPrefix(id, agentID("")) {
				agent(c, id)
				return
			}
			client(c)
		}
	}
	mux.HandleFunc("/", either(nil, r.servePi))
	mux.HandleFunc(acpPath, either(r.serveACPAgent, r.serveACPClient))
	mux.HandleFunc(nativePath, either(r.serveNativeAgent, r.serveNativeClient))
	mux.HandleFunc(parallaxPath, either(r.serveParallaxAgent, r.serveParallaxClient))
	mux.HandleFunc("/v1/tasks", r.serveREST)
	return mux
}

// join adds an agent.
func (r *relay) join(id string, ask relayAgent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.agents[id] = ask
}

// ask passes on a question. step is called for each step of the answer, in order.
func (r *relay) ask(to, id, content string, step func(relayed, string)) error {
	r.mu.Lock()
	agent := r.agents[to]
	r.pending[id] = &relayedQuestion{step: step}
	r.mu.Unlock()
	if agent == nil {
		return fmt.Errorf("no agent %q", to)
	}
	return agent(id, content)
}

// step passes on a step of an answer.
func (r *relay) step(id string, what relayed, text string) {
	r.mu.Lock()
	q := r.pending[id]
	if what == relayedEnd {
		delete(r.pending, id)
	}
	first := q != nil && (what != relayedAccepted || !q.accepted)
	if first && what == relayedAccepted {
		q.accepted = true
	}
	r.mu.Unlock()
	if first {
		q.step(what, text)
	}
}

// newID returns an id for a question without one, as long as the hub's ids.
func (r *relay) newID() string { return fmt.Sprintf("relay-%030d", r.number.Add(1)) }

// serveCovenAgent serves the stream of a Coven agent.
func (r *relay) serveCovenAgent(stream wire.CovenControl_AgentStreamServer) error {
	m, err := stream.Recv()
	if err != nil {
		return err
	}
	welcome := &wire.Welcome{ServerId: "relay", AgentId: m.GetRegister().GetAgentId()}
	if err := stream.Send(&wire.ServerMessage{Payload: &wire.ServerMessage_Welcome{Welcome: welcome}}); err != nil {
		return err
	}
	var sending sync.Mutex
	r.join(m.GetRegister().GetAgentId(), func(id, content string) error {
		ask := &wire.SendMessage{RequestId: id, Content: content}
		sending.Lock()
		defer sending.Unlock()
		return stream.Send(&wire.ServerMessage{Payload: &wire.ServerMessage_SendMessage{SendMessage: ask}})
	})
	for {
		m, err := stream.Recv()
		if err != nil {
			return nil //nolint:nilerr // the agent has left
		}
		e := m.GetResponse()
		if text := e.GetText(); text != "" {
			r.step(e.GetRequestId(), relayedAccepted, "") // as the hub does at the first event
			r.step(e.GetRequestId(), relayedText, text)
		}
		if e.GetDone() != nil {
			r.step(e.GetRequestId(), relayedEnd, "")
		}
	}
}

// relayCovenClients is the ClientService of Coven.
type relayCovenClients struct {
	wire.UnimplementedClientServiceServer
	relay *relay
}

// SendMessage passes a message to the agent that the conversation key begins with.
func (s relayCovenClients) SendMessage(_ context.Context, m *wire.ClientSendMessageRequest) (*wire.ClientSendMessageResponse, error) {
	r, key := s.relay, m.GetConversationKey()
	agent, _, _ := strings.Cut(key, "/")
	r.mu.Lock()
	to := r.streams[key]
	r.mu.Unlock()
	id, at := r.newID(), timestampNow()
	say := func(e *wire.ClientStreamEvent) {
		e.ConversationKey, e.Timestamp, e.EventId = key, at, id
		to <- e
	}
	content := m.GetContent()
	say(&wire.ClientStreamEvent{Payload: &wire.ClientStreamEvent_Event{Event: &wire.Event{
		Id: id, ConversationKey: key, Direction: "inbound_to_agent", Author: "client", Timestamp: at, Type: "message", Text: &content,
	}}})
	var whole strings.Builder
	err := r.ask(agent, id, content, func(what relayed, text string) {
		switch what {
		case relayedText:
			whole.WriteString(text)
			say(&wire.ClientStreamEvent{Payload: &wire.ClientStreamEvent_Text{Text: &wire.TextChunk{Content: text}}})
		case relayedEnd:
			text := whole.String()
			say(&wire.ClientStreamEvent{Payload: &wire.ClientStreamEvent_Done{Done: &wire.StreamDone{FullResponse: &text}}})
		}
	})
	return &wire.ClientSendMessageResponse{Status: "accepted", MessageId: id}, err
}

// StreamEvents sends the events of a conversation.
func (s relayCovenClients) StreamEvents(q *wire.StreamEventsRequest, stream wire.ClientService_StreamEventsServer) error {
	events := make(chan *wire.ClientStreamEvent, 64)
	s.relay.mu.Lock()
	s.relay.streams[q.GetConversationKey()] = events
	s.relay.mu.Unlock()
	if err := stream.SendHeader(nil); err != nil {
		return err
	}
	for {
		select {
		case e := <-events:
			if err := stream.Send(e); err != nil {
				return err
			}
		case <-stream.Context().Done():
			return nil
		}
	}
}
