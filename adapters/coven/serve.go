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

// Serve holds the connection of one agent from its RegisterAgent to the end and
// returns why it ended. The gRPC status to end the stream with, where the
// specification names one, is the Code and Text of the reason. When Serve returns,
// the connection is down, the agent has left the hub and nothing runs any more. It
// keeps nothing of opts.
func Serve(ctx context.Context, h *hub.Hub, conn link.Conn[*pb.AgentMessage, *pb.ServerMessage], opts *Options) link.Reason {
	return newSession(h, conn, opts).run(ctx)
}

func newSession(h *hub.Hub, conn link.Conn[*pb.AgentMessage, *pb.ServerMessage], opts *Options) *session {
	s := &session{
		hub:  h,
		opts: opts.withDefaults(),
		work: make(map[core.TaskID]*work),
	}
	s.log = s.opts.Logger
	s.link = link.New(conn, s.opts.Link)
	return s
}

// run is Serve. Its frame, and those of its callers, stand below the reader loop for
// as long as the connection lasts: they are to be small.
func (s *session) run(ctx context.Context) link.Reason {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	late := timer.After(&s.timers, s.opts.RegisterTimeout, func() {
		s.link.Close(*wire.Reason(codes.DeadlineExceeded, "no RegisterAgent within "+s.opts.RegisterTimeout.String()))
	})
	s.onTime = func() {
		late.Stop()
		late = nil
	}

	s.onJoined = func() {
		s.dismiss = s.peer.Consume(ctx, func(b hub.Batch, err error) bool { return s.news(ctx, b, err) })
	}
	reason := s.link.Run(ctx, s.receive, s.rejected)
	s.onTime()
	cancel()
	if s.peer != nil {
		if s.revoke != nil {
			s.revoke()
		}
		s.peer.Close(reason.Fault())
		if s.dismiss != nil {
			s.dismiss()
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
	timers sync.WaitGroup // that are set, or run
	// These belong to the reader loop: what stops the watch over the registration, what
	// starts the pump, what ends it, once it was, and when the hub was last told that the
	// agent lives.
	onTime, onJoined, dismiss func()
	lastSeen                  time.Time

	saying said // the pump's own: what it tells the agent now

	// What follows is set once Welcome is queued, by the reader loop, and not changed
	// after: the pump sends nothing before.
	peer *hub.Session
	card core.Card
	ext  wire.Extensions
	// mcpToken is void once revoke was called, which is nil if there is none.
	mcpToken string
	revoke   func()

	mu         sync.Mutex
	work       map[core.TaskID]*work // what the agent has been given and has not ended
	injections map[string]injection  // by the id on the wire, until answered; made when one is needed
	calls      map[string]struct{}   // tools that the agent waits for, by request id; likewise
	draining   string                // why the hub is stopping
	told       bool                  // Shutdown was sent
}

// work is one request that the agent has.
type work struct {
	accepted bool
	cancel   string       // the reason of the CancelRequest that it was sent
	orphaned *timer.Timer // set between session_orphaned and what follows
}

// injection is what an InjectContext was of.
type injection struct {
	task core.TaskID
	id   string
}

// news takes what the hub has for the agent, in order, and sends it. It runs in the
// pump, and reports whether there is to be more.
func (s *session) news(ctx context.Context, b hub.Batch, end error) bool {
	if end != nil {
		s.leave(ctx, end)
		return false
	}
	s.link.Hold()
	defer s.link.Flush()
	return s.peer.Drain(b, func(b hub.Batch) error { return s.deliver(ctx, b) }) == nil // else the link is closed and knows why
}

// leave ends a connection that the hub has nothing more for.
func (s *session) leave(ctx context.Context, why error) {
	if ctx.Err() != nil {
		return
	}
	f := core.AsFault(why)
	if err := s.shutdown(ctx, f.Message); err != nil {
		return
	}
	s.link.Close(*wire.ReasonOf(f))
}

// settle sends the Shutdown that was put off until the agent has ended what it has:
// existing agents leave at once when they are told, and their work would be lost.
func (s *session) settle(ctx context.Context) error {
	s.mu.Lock()
	reason, calls := s.draining, len(s.calls)
	s.mu.Unlock()
	if reason == "" || calls > 0 {
		return nil
	}
	// The hub knows better than the session: it may have assigned more just now.
	if a, here := s.hub.Agent(s.card.ID); here && a.Load.Active+a.Load.Queued > 0 {
		return nil
	}
	return s.shutdown(ctx, reason)
}

// shutdown tells the agent, once, to finish and leave.
func (s *session) shutdown(ctx context.Context, reason string) error {
	s.mu.Lock()
	told := s.told
	s.told = true
	s.mu.Unlock()
	if told {
		return nil
	}
	s.peer.SetLoad(core.LoadDraining)
	return s.send(ctx, shutdownOf(reason), nil)
}

// errTooLarge is a message that would end the stream of the agent.
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

// refuse counts what the agent should not have sent. Coven has no frame to tell
// it so.
func (s *session) refuse(what string, attrs ...any) {
	s.hub.Count(Name + ".refused." + what)
	s.log.Debug("refused what an agent sent", append([]any{"agent", s.card.ID, "what", what}, attrs...)...)
}

// rejected takes a message that the transport refused.
func (s *session) rejected(_ context.Context, r *link.Reject) error {
	s.refuse("message", "why", r.Text)
	return nil
}
