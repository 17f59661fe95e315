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
)

// Serve runs one connection of a Parallax agent until it ends, and returns why it ended.
// By then every goroutine of the connection has ended and the agent has left the hub.
// When ctx ends, the connection closes as shutting down.
func Serve(ctx context.Context, h *hub.Hub, conn link.Conn[[]byte, []byte], opts Options) link.Reason {
	return newSession(h, conn, opts).serve(ctx)
}

// newSession returns the session of a connection that has not begun.
func newSession(h *hub.Hub, conn link.Conn[[]byte, []byte], opts Options) *session {
	opts = opts.withDefaults()
	return &session{
		hub: h, link: link.New(conn, opts.Link), opts: opts, log: opts.Log.With("connection", opts.ConnectionID),
		throttle: newThrottle(opts.MaxMessagesPerSecond), claims: make(chan claim, 1), joined: make(chan struct{}),
		tasks: newTasks(), requests: map[string]*request{},
	}
}

func (s *session) serve(ctx context.Context) link.Reason {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	var pump sync.WaitGroup
	pump.Go(func() { s.pump(inner) })

	reason := s.link.Run(ctx, s.receive, s.rejected)
	s.watchdog.stop()
	if s.agent != nil {
		s.agent.Close(reason.Fault())
	}
	cancel()
	pump.Wait()
	return reason
}

// session is the state of one connection. Two goroutines use it: the reader loop (receive
// and what it calls) and the pump.
type session struct {
	hub     *hub.Hub
	link    *link.Link[[]byte, []byte]
	opts    Options
	log     *slog.Logger
	ids     atomic.Uint64
	gateway *gatewayConn // nil for a WebSocket

	// Owned by the reader loop. The pump may read them once joined is closed, and
	// serve after Run.
	throttle    *throttle
	agent       *hub.Session // nil until a register was accepted; the id may still be disputed
	id          core.AgentID
	extensions  map[string]bool
	interval    time.Duration // heartbeat interval that the agent chose; 0 for none
	maxTaskTime time.Duration // task timeout that the agent chose; 0 for none
	claims      chan claim    // a register for an id that is connected, for the pump
	joined      chan struct{} // closed once the agent is registered
	lastSeen    time.Time     // when the hub was last told that the agent is alive

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

// pump sends what happens on the hub to the agent until the connection or the agent's
// hub session ends.
func (s *session) pump(ctx context.Context) {
	timer := time.NewTimer(wire.RegisterTimeout)
	defer timer.Stop()
	var err error
	select {
	case <-s.joined:
	case c := <-s.claims:
		err = s.resolve(ctx, c)
	case <-s.link.Done():
		return
	case <-timer.C:
		err = s.fail(ctx, "", wire.CodeRegisterTimeout, "no register within "+wire.RegisterTimeout.String()+": send it right after connecting", link.Reason{Cause: link.Protocol, Code: closeRegisterTimeout})
	}
	timer.Stop()
	for err == nil {
		err = s.deliverNext(ctx)
	}
	var r *link.Reason
	if !errors.As(err, &r) {
		r = &link.Reason{Cause: link.Internal, Text: "internal error", Err: err}
		s.log.Error("parallax pump ended", "error", err)
	}
	s.link.Close(*r)
}

// deliverNext waits for a batch of the hub and sends it.
func (s *session) deliverNext(ctx context.Context) error {
	b, err := s.agent.Next(ctx)
	if err != nil {
		return s.hubEnded(ctx, err)
	}
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
