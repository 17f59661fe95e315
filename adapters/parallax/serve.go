package parallax

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/task"
)

// Serve holds one connection of a Parallax agent until it ends, and returns why.
// When it returns every goroutine of the connection has ended, and the agent has
// left the hub. When ctx ends the connection closes as shutting down.
func Serve(ctx context.Context, h *hub.Hub, conn link.Conn[[]byte, []byte], opts Options) link.Reason {
	return newSession(h, conn, opts).serve(ctx)
}

// newSession is the state of a connection that has not begun.
func newSession(h *hub.Hub, conn link.Conn[[]byte, []byte], opts Options) *session {
	opts = opts.withDefaults()
	return &session{
		hub: h, link: link.New(conn, opts.Link), opts: opts, log: opts.Log.With("connection", opts.ConnectionID),
		pace: newPace(opts.MaxMessagesPerSecond), claims: make(chan claim, 1), joined: make(chan struct{}), tasks: newHeld(), asked: map[string]*asking{},
	}
}

func (s *session) serve(ctx context.Context) link.Reason {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	var pump sync.WaitGroup
	pump.Go(func() { s.pump(inner) })

	reason := s.link.Run(ctx, s.receive, s.rejected)
	s.silence.stop()
	if s.agent != nil {
		s.agent.Close(reason.Fault())
	}
	cancel()
	pump.Wait()
	return reason
}

// session is the state of one connection. The reader loop (receive and what it
// calls) and the pump touch it; each field says who.
type session struct {
	hub  *hub.Hub
	link *link.Link[[]byte, []byte]
	opts Options
	log  *slog.Logger
	ids  atomic.Uint64
	gate *gateway // what is peculiar to an agent of the gateway; nil for one of a WebSocket

	// Of the reader loop; the pump may read them once joined is closed, and what
	// comes after Run may too.
	pace       *pace
	agent      *hub.Session // nil until a register was taken, whose id may be claimed by two
	id         core.AgentID
	extensions map[string]bool
	declared   time.Duration // the interval between heartbeats that the agent chose; 0 for none
	most       time.Duration // how long a task may take, as the agent says; 0 for the deadline
	claims     chan claim    // a register for an id that another has, for the pump
	joined     chan struct{} // closed once the agent is in
	seen       time.Time     // when the hub was last told of a sign of life

	silence silence
	// imposed is the interval between heartbeats that an operator set; 0 for none. told
	// is the one that registered told.
	imposed, told atomic.Int64
	// secret is what messages are signed with; nil for none.
	secret atomic.Pointer[[]byte]

	mu        sync.Mutex
	card      core.Card
	condition condition
	tasks     held
	asked     map[string]*asking // by the agent's own id of a request
}

// receive takes one frame from the agent. It runs in the reader loop.
func (s *session) receive(ctx context.Context, frame []byte) error {
	if s.gate == nil && len(frame) > s.opts.MaxMessageBytes {
		return s.rejected(ctx, &link.Reject{Cause: link.TooLarge, Size: len(frame), Limit: s.opts.MaxMessageBytes})
	}
	m, err := wire.Decode(frame)
	if !s.streams(m) {
		if err := s.pace.wait(ctx, s); err != nil {
			return err
		}
	}
	defer s.opts.Traffic.came(m.Type, time.Now())
	s.heard(false)
	if err != nil {
		return s.refuse(ctx, m.ID, wire.CodeInvalidMessage, core.AsFault(err).Message)
	}
	switch {
	case s.agent == nil && m.Type != wire.TypeRegister:
		return s.refuse(ctx, m.ID, wire.CodeNotRegistered, m.Type+" came before register: send register first")
	case s.agent != nil && !s.isAgent():
		return s.refuse(ctx, m.ID, wire.CodeNotRegistered, m.Type+" came before registered: another connection has the id, and it is being asked whether it is still there")
	}
	if s.agent != nil {
		if code, text := s.unsigned(m, s.key()); code != "" {
			return s.refuse(ctx, m.ID, code, text)
		}
	}
	return s.handle(ctx, m)
}

func (s *session) handle(ctx context.Context, m wire.Message) error {
	switch m.Type {
	case wire.TypeRegister:
		return with(ctx, s, m, s.register)
	case wire.TypeHeartbeat:
		return with(ctx, s, m, s.heartbeat)
	case wire.TypeStatusUpdate:
		return with(ctx, s, m, s.statusUpdate)
	case wire.TypeDisconnect:
		return with(ctx, s, m, s.disconnect)
	case wire.TypeTaskResult:
		return with(ctx, s, m, s.taskResult)
	case wire.TypeTaskError:
		return with(ctx, s, m, s.taskError)
	case wire.TypeTaskAccepted:
		return extension(ctx, s, m, wire.ExtensionAccepted, s.taskAccepted)
	case wire.TypeTaskProgress:
		return extension(ctx, s, m, wire.ExtensionProgress, s.taskProgress)
	case wire.TypeTaskRequest:
		return extension(ctx, s, m, wire.ExtensionRequest, s.taskRequest)
	case wire.TypeTaskCancel:
		return extension(ctx, s, m, wire.ExtensionRequest, s.taskCancel)
	}
	return s.refuse(ctx, m.ID, wire.CodeInvalidMessage, m.Type+" is sent by the hub alone: agents do not send it")
}

// with reads the payload of m and hands it on.
func with[P any](ctx context.Context, s *session, m wire.Message, do func(context.Context, wire.Message, P) error) error {
	p, err := wire.ReadPayload[P](m)
	if err != nil {
		return s.refuse(ctx, m.ID, wire.CodeInvalidMessage, core.AsFault(err).Message)
	}
	return do(ctx, m, p)
}

// extension is with, for a message that the agent must have declared.
func extension[P any](ctx context.Context, s *session, m wire.Message, name string, do func(context.Context, wire.Message, P) error) error {
	if !s.extensions[name] {
		return s.refuse(ctx, m.ID, wire.CodeUnsupported, m.Type+" is an extension: declare "+name+" in register.payload.config.extensions")
	}
	return with(ctx, s, m, do)
}

// streams reports whether m is a part of an answer, which may come in bursts.
func (s *session) streams(m wire.Message) bool {
	return m.Type == wire.TypeTaskProgress && len(m.Payload) > 0 && s.extensions[wire.ExtensionProgress]
}

// rejected answers a message that was too large to be read.
func (s *session) rejected(ctx context.Context, r *link.Reject) error {
	defer s.opts.Traffic.came(unknownType, time.Now())
	if r.Cause != link.TooLarge {
		return s.refuse(ctx, "", wire.CodeInvalidMessage, r.Text)
	}
	text := "the message is over the limit of " + strconv.Itoa(s.opts.MaxMessageBytes) + " bytes"
	if r.Size > 0 {
		text = "the message has " + strconv.Itoa(r.Size) + " bytes, the limit is " + strconv.Itoa(s.opts.MaxMessageBytes)
	}
	return s.refuse(ctx, "", wire.CodeMessageTooLarge, text+": send less, or in parts by task_progress")
}

// refuse tells the agent what was wrong with its message; the connection lives on.
func (s *session) refuse(ctx context.Context, id, code, text string) error {
	s.hub.Count("parallax.error." + code)
	return s.reply(ctx, wire.TypeError, id, wire.Refusal{Code: code, Message: text})
}

// fail tells the agent what ends its connection, and ends it.
func (s *session) fail(ctx context.Context, id, code, text string, r link.Reason) error {
	s.hub.Count("parallax.error." + code)
	if err := s.reply(ctx, wire.TypeError, id, wire.Refusal{Code: code, Message: text, Fatal: true}); err != nil {
		return err
	}
	r.Text = text
	return &r
}

// send queues a message with an id of its own.
func (s *session) send(ctx context.Context, kind string, payload any) error {
	return s.reply(ctx, kind, "", payload)
}

// reply queues a message that correlates with one of the agent's by its id.
func (s *session) reply(ctx context.Context, kind, id string, payload any) error {
	frame, err := s.frame(kind, id, payload)
	if err != nil {
		return err
	}
	s.opts.Traffic.goes(kind)
	return s.link.Send(ctx, frame, len(frame))
}

// sendAll queues frames in order.
func (s *session) sendAll(ctx context.Context, out []outgoing) error {
	for _, o := range out {
		s.opts.Traffic.goes(o.kind)
		if err := s.link.SendThen(ctx, o.frame, len(o.frame), o.sent); err != nil {
			return err
		}
	}
	return nil
}

// frame writes a message and signs it.
func (s *session) frame(kind, id string, payload any) ([]byte, error) {
	return s.frameOf(kind, id, payload, nil)
}

func (s *session) frameOf(kind, id string, payload any, f *core.Foreign) ([]byte, error) {
	if id == "" {
		id = s.nextID()
	}
	frame, err := wire.Encode(kind, id, time.Now(), payload)
	if err != nil {
		return nil, err
	}
	return s.sealed(frame, f)
}

// sealed is a frame with what a peer of the same dialect said beside it, signed.
func (s *session) sealed(frame []byte, f *core.Foreign) ([]byte, error) {
	return wire.Sign(wire.Restore(frame, f), s.key())
}

func (s *session) nextID() string { return "hub_" + strconv.FormatUint(s.ids.Add(1), 10) }

// frameLike is frame, with what a peer of the same dialect said beside it.
func (s *session) frameLike(kind string, payload any, f *core.Foreign) ([]byte, error) {
	return s.frameOf(kind, "", payload, f)
}

// foreign is what a message says beyond its meaning, of which left is of the
// payload. Its signature cannot be passed on, and the page has no word to say so.
func (s *session) foreign(m wire.Message, left json.RawMessage) *core.Foreign {
	if m.Signature != "" && s.key() == nil {
		s.hub.Count("parallax.refused.signature")
	}
	return m.Foreign(left)
}

// pump turns what happens on the hub into frames until the connection or the
// agent's session ends.
func (s *session) pump(ctx context.Context) {
	timer := time.NewTimer(s.opts.RegisterTimeout)
	defer timer.Stop()
	select {
	case <-s.joined:
	case c := <-s.claims:
		if err := s.settle(ctx, c); err != nil {
			s.end(err)
			return
		}
	case <-s.link.Done():
		return
	case <-timer.C:
		err := s.fail(ctx, "", wire.CodeRegisterTimeout, "no register within "+s.opts.RegisterTimeout.String()+": send it right after connecting", link.Reason{Cause: link.Protocol, Code: closeRegisterTimeout})
		s.end(err)
		return
	}
	timer.Stop()
	for {
		b, err := s.agent.Next(ctx)
		if err != nil {
			s.end(s.farewell(ctx, err))
			return
		}
		s.link.Hold()
		err = s.agent.Drain(b, func(b hub.Batch) error { return s.deliver(ctx, b) })
		s.link.Flush()
		if err != nil {
			s.end(err)
			return
		}
	}
}

// deliver tells the agent one batch of news.
func (s *session) deliver(ctx context.Context, b hub.Batch) error {
	switch {
	case b.Draining != "":
		return s.send(ctx, wire.TypeDisconnect, wire.Disconnect{Reason: b.Draining, Graceful: true})
	case b.SettingsChanged != nil:
		return s.imposedOn(ctx, b.SettingsChanged)
	case b.Role == task.Agent:
		return s.toAgent(ctx, b)
	case b.Role == task.Requester:
		return s.toRequester(ctx, b)
	}
	return nil
}

// farewell is why the hub ended the session.
func (s *session) farewell(ctx context.Context, err error) error {
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

// end closes the link for an error of the pump.
func (s *session) end(err error) {
	var r *link.Reason
	if !errors.As(err, &r) {
		r = &link.Reason{Cause: link.Internal, Text: "internal error", Err: err}
		s.log.Error("parallax pump ended", "error", err)
	}
	s.link.Close(*r)
}
