package coven

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/timer"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// Service is the gRPC service coven.CovenControl.
type Service struct {
	pb.UnimplementedCovenControlServer
	accept func(pb.CovenControl_AgentStreamServer) error
}

// NewService returns a service that passes each stream to accept, which turns it into a
// connection for [Serve] and returns the status of the stream. The stream ends when accept
// returns.
func NewService(accept func(pb.CovenControl_AgentStreamServer) error) *Service {
	return &Service{accept: accept}
}

// AgentStream implements CovenControl.
func (s *Service) AgentStream(stream pb.CovenControl_AgentStreamServer) error {
	return s.accept(stream)
}

// Serve holds the connection of one agent from RegisterAgent to the end and returns why it
// ended. Code and Text of the reason are the gRPC status of the stream, where the
// specification names one. When Serve returns, the connection is closed, the agent has
// left the hub and no goroutine or timer is left. It does not keep opts.
func Serve(ctx context.Context, h *hub.Hub, conn link.Conn[*pb.AgentMessage, *pb.ServerMessage], opts *Options) link.Reason {
	return newSession(h, conn, opts).run(ctx)
}

func newSession(h *hub.Hub, conn link.Conn[*pb.AgentMessage, *pb.ServerMessage], opts *Options) *session {
	s := &session{
		hub:      h,
		opts:     opts.withDefaults(),
		requests: make(map[core.TaskID]*request),
	}
	s.log = s.opts.Logger
	s.link = link.New(conn, s.opts.Link)
	return s
}

// run is Serve. Keep its frame small: it stays on the stack of the reader loop for as long
// as the connection lasts.
func (s *session) run(ctx context.Context) link.Reason {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.registerTimer = timer.After(&s.timers, registerTimeout, func() {
		s.link.Close(*wire.Reason(codes.DeadlineExceeded, "no RegisterAgent within "+registerTimeout.String()))
	})
	s.startDelivery = func() {
		s.stopDelivery = s.agent.Consume(ctx, func(b hub.Batch, err error) bool { return s.handleBatch(ctx, b, err) })
	}
	reason := s.link.Run(ctx, s.receive, s.rejected)
	s.registerTimer.Stop()
	cancel()
	if s.agent != nil {
		if s.revoke != nil {
			s.revoke()
		}
		s.agent.Close(reason.Fault())
		if s.stopDelivery != nil {
			s.stopDelivery()
		}
	}
	s.forgetAll()
	s.timers.Wait()
	return reason
}

// session is the state of one agent's connection.
type session struct {
	hub    *hub.Hub
	opts   Options
	log    *slog.Logger
	link   *link.Link[*pb.AgentMessage, *pb.ServerMessage]
	timers sync.WaitGroup // of those that are set or running

	// The reader loop owns these. stopDelivery is nil until startDelivery was called.
	registerTimer               *timer.Timer // nil once the agent has registered
	startDelivery, stopDelivery func()
	lastSeen                    time.Time // when the hub last got a sign of life

	sink taskSink // owned by the delivery goroutine

	// The reader loop sets these when it queues Welcome. Delivery starts after that.
	agent    *hub.Session
	card     core.Card
	ext      wire.Extensions
	mcpToken string
	revoke   func() // invalidates mcpToken; nil without one

	mu           sync.Mutex
	requests     map[core.TaskID]*request // sent to the agent and not ended
	injections   map[string]injection     // not answered yet, by the id on the wire; made when needed
	calls        map[string]struct{}      // tool calls without a result, by request id; made when needed
	draining     string                   // why the hub is stopping
	shutdownSent bool
}

// request is one request that the agent works on.
type request struct {
	accepted    bool
	orphanTimer *timer.Timer // set between session_orphaned and the next event
}

// injection is the injection for which an InjectContext was sent.
type injection struct {
	task core.TaskID
	id   string
}

// handleBatch sends what the hub has for the agent, in order, and reports whether it is
// to be called again. It runs in the delivery goroutine.
func (s *session) handleBatch(ctx context.Context, b hub.Batch, end error) bool {
	if end != nil {
		f := core.AsFault(end)
		if ctx.Err() == nil && s.shutdown(ctx, f.Message) == nil {
			s.link.Close(*wire.ReasonOf(f))
		}
		return false
	}
	s.link.Hold()
	defer s.link.Flush()
	return s.agent.Drain(b, func(b hub.Batch) error { return s.deliver(ctx, b) }) == nil // an error means that the link is closed
}

// shutdownIfIdle sends Shutdown once the hub is stopping and the agent has nothing left to
// do: existing agents leave at once, and their work would be lost.
func (s *session) shutdownIfIdle(ctx context.Context) error {
	s.mu.Lock()
	reason, calls := s.draining, len(s.calls)
	s.mu.Unlock()
	if reason == "" || calls > 0 {
		return nil
	}
	// Ask the hub: it may have assigned more that has not reached the session.
	if a, here := s.hub.Agent(component, s.card.ID); here && a.Load.Active+a.Load.Queued > 0 {
		return nil
	}
	return s.shutdown(ctx, reason)
}

// shutdown sends Shutdown, once.
func (s *session) shutdown(ctx context.Context, reason string) error {
	s.mu.Lock()
	sent := s.shutdownSent
	s.shutdownSent = true
	s.mu.Unlock()
	if sent {
		return nil
	}
	s.agent.SetLoad(core.LoadDraining)
	return s.send(ctx, shutdownOf(reason), nil)
}

// errTooLarge is the error for a message that would end the agent's stream.
type errTooLarge struct{ size, limit int }

func (e *errTooLarge) Error() string { return "message over the limit" }

// send queues a message, or returns *errTooLarge without sending it.
func (s *session) send(ctx context.Context, m *pb.ServerMessage, sent func()) error {
	size := proto.Size(m)
	if size > s.opts.MaxMessageBytes {
		return &errTooLarge{size, s.opts.MaxMessageBytes}
	}
	return s.link.SendThen(ctx, m, size, sent)
}

// refuse counts something that the agent should not have sent. Coven has no message to
// tell it so.
func (s *session) refuse(what string, attrs ...any) {
	s.hub.Count(Name + ".refused." + what)
	s.log.Debug("refused a message of an agent", append([]any{"agent", s.card.ID, "what", what}, attrs...)...)
}

// rejected handles a message that the transport refused.
func (s *session) rejected(_ context.Context, r *link.Reject) error {
	s.refuse("message", "why", r.Text)
	return nil
}
