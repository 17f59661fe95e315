package parallax

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/timer"
)

// Serve runs one connection of a Parallax agent until it ends, and returns why it ended.
// By then every goroutine of the connection has ended and the agent has left the hub.
// When ctx ends, the connection closes as shutting down. It does not keep opts.
func Serve(ctx context.Context, h *hub.Hub, conn link.Conn[[]byte, []byte], opts *Options) link.Reason {
	return newSession(h, conn, opts).run(ctx)
}

// newSession returns the session of a connection that has not begun.
func newSession(h *hub.Hub, conn link.Conn[[]byte, []byte], opts *Options) *session {
	s := &session{hub: h, opts: opts.withDefaults(), tasks: newTasks(), requests: map[string]*request{}}
	s.link = link.New(conn, s.opts.Link)
	s.log = s.opts.Log.With("connection", s.opts.ConnectionID)
	s.throttle = newThrottle(s.opts.MaxMessagesPerSecond)
	return s
}

// run is Serve. Keep its frame small: it stays on the stack of the reader loop for as long
// as the connection lasts.
func (s *session) run(ctx context.Context) link.Reason {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.begin(ctx)
	reason := s.link.Run(ctx, s.receive, s.rejected)
	s.registerTimer.Stop()
	s.watchdog.stop()
	if s.agent != nil {
		s.agent.Close(reason.Fault())
	}
	cancel()
	s.beside.Wait()
	if s.stopDelivery != nil {
		s.stopDelivery()
	}
	return reason
}

// begin waits for the agent to register, and sets what needs the context of the connection.
func (s *session) begin(ctx context.Context) {
	s.registerTimer = timer.After(&s.beside, wire.RegisterTimeout, func() {
		s.closeFor(s.fail(ctx, "", wire.CodeRegisterTimeout, "no register within "+wire.RegisterTimeout.String()+": send it right after connecting", link.Reason{Cause: link.Protocol, Code: closeRegisterTimeout}))
	})
	s.startResolving = func(c claim) {
		s.beside.Go(func() {
			if err := s.resolve(ctx, c); err != nil {
				s.closeFor(err)
			}
		})
	}
	s.startDelivery = func() {
		s.stopDelivery = s.agent.Consume(ctx, func(b hub.Batch, err error) bool { return s.handleBatch(ctx, b, err) })
	}
}

// session is the state of one connection. Two goroutines use it: the reader loop (receive
// and what it calls) and the delivery goroutine (handleBatch), which exists only while the hub
// has something for the agent.
type session struct {
	hub     *hub.Hub
	link    *link.Link[[]byte, []byte]
	opts    Options
	log     *slog.Logger
	ids     atomic.Uint64
	gateway *gatewayConn // nil for a WebSocket

	beside sync.WaitGroup // registerTimer, and what startResolving starts

	// Owned by the reader loop. The delivery goroutine may read them, and run after Run.
	throttle    *throttle
	agent       *hub.Session // nil until a register was accepted; the id may still be disputed
	id          core.AgentID
	extensions  map[string]bool
	interval    time.Duration // heartbeat interval that the agent chose; 0 for none
	maxTaskTime time.Duration // task timeout that the agent chose; 0 for none
	joined      atomic.Bool   // the agent is registered
	lastSeen    time.Time     // when the hub was last told that the agent is alive

	registerTimer  *timer.Timer // stopped once an accepted register has come
	startResolving func(claim)  // decides a register for an id that is connected
	// stopDelivery is nil until startDelivery was called.
	startDelivery, stopDelivery func()

	watchdog watchdog
	// operatorInterval is the heartbeat interval that an operator set, 0 for none;
	// registeredInterval is that of the message registered.
	operatorInterval, registeredInterval atomic.Int64
	// secret signs messages; nil for none.
	secret atomic.Pointer[[]byte]

	mu       sync.Mutex
	card     core.Card
	status   status
	tasks    tasks
	requests map[string]*request // task_requests of the agent, by their id
}

// handleBatch sends what the hub has for the agent, in order, and reports whether it is to be
// called again. It runs in the delivery goroutine.
func (s *session) handleBatch(ctx context.Context, b hub.Batch, err error) bool {
	if err != nil {
		err = s.hubEnded(ctx, err)
	} else {
		err = s.deliverAll(ctx, b)
	}
	if err != nil {
		s.closeFor(err)
	}
	return err == nil
}

// closeFor closes the connection for an error.
func (s *session) closeFor(err error) {
	var r *link.Reason
	if !errors.As(err, &r) {
		r = &link.Reason{Cause: link.Internal, Text: "internal error", Err: err}
		s.log.Error("a parallax connection failed", "error", err)
	}
	s.link.Close(*r)
}

// deliverAll delivers a batch of the hub, and those that are ready after it, in one write.
func (s *session) deliverAll(ctx context.Context, b hub.Batch) error {
	s.link.Hold()
	defer s.link.Flush()
	return s.agent.Drain(b, func(b hub.Batch) error { return s.deliver(ctx, b) })
}

func (s *session) deliver(ctx context.Context, b hub.Batch) error {
	switch {
	case b.Draining != "":
		return s.send(ctx, wire.TypeDisconnect, "", wire.Disconnect{Reason: b.Draining, Graceful: true})
	case b.SettingsChanged != nil:
		return s.updateConfig(ctx, b.SettingsChanged)
	case b.Role == task.Agent:
		return s.toAgent(ctx, b)
	case b.Role == task.Requester:
		return s.toRequester(ctx, b)
	}
	return nil
}

// hubEnded tells the agent why the hub ended its session, and returns the reason to close
// the connection.
func (s *session) hubEnded(ctx context.Context, err error) error {
	f := core.AsFault(err)
	switch {
	case ctx.Err() != nil, f.Code == core.CodeUnreachable:
		return &link.Reason{Cause: link.ShuttingDown, Text: f.Message, Code: closeGoingAway}
	case f.Code == core.CodeUnauthenticated:
		return s.fail(ctx, "", wire.CodeExpired, f.Message, link.Reason{Cause: link.Unauthorized, Code: closeUnauthenticated})
	case f.Code == core.CodeConflict:
		return s.fail(ctx, "", wire.Replaced, f.Message, link.Reason{Cause: link.Replaced, Code: closeDuplicate})
	}
	return s.fail(ctx, "", wire.CodeOf(f), f.Message, link.Reason{Cause: link.Protocol, Code: closeUnhealthy})
}
