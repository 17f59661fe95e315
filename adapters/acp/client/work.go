package client

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/link"
)

// Replaced is the Peer of the Fault that [Work] returns when a newer connection of the
// agent replaced this one. Reconnecting would replace that one in turn.
const Replaced = "replaced"

// WorkOptions are the options of [Work]. The zero WorkOptions are the defaults.
type WorkOptions struct {
	// NoProgress does without the extension: answers are sent in one piece.
	NoProgress bool
	// Joined is called once the hub has accepted the agent, from the reader of the
	// connection: it must return soon.
	Joined func()
	// Link bounds the connection.
	Link link.Options
	// Notice is called with every notify, from the reader of the connection: it must
	// return soon. Nil ignores them, and declares that the agent takes no context
	// while it works.
	Notice func(from string, n core.Notice)
	// Log receives what the hub refuses; nil discards it.
	Log *slog.Logger
}

// Work is the agent's end of the dialect: it announces the card, calls the handler for
// each query and delegate, at most card.MaxConcurrent at once, and answers ping, discover
// and cancel. It returns once no handler runs any more: nil when the connection was closed
// normally, a Fault when the hub refused the agent (see [Replaced]), and otherwise the
// *[link.Reason].
//
// The pieces of an answer are sent as they come if the hub understands progress, otherwise
// together at the end. ctx may carry an [agent.Leave].
func Work(ctx context.Context, conn link.Conn[[]byte, []byte], card core.Card, handle core.Handler, opts WorkOptions) error {
	card.MaxConcurrent = max(1, card.MaxConcurrent)
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	w := &worker{card: card, opts: opts, link: link.New(conn, opts.Link), leave: agent.LeaveOf(ctx), since: time.Now()}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	w.tasks = agent.Run(inner, card.MaxConcurrent, card.MaxConcurrent, func(ctx context.Context, _ string, t *task) {
		w.answer(inner, ctx, t, handle)
	})
	// The hub does not answer capabilities that it accepts. A pong after them proves it.
	hello := w.envelope(wire.KindCapabilities, "", "", w.capabilities())
	w.hello = hello.ID
	_ = w.send(inner, hello) // Run returns why it could not
	if opts.Joined != nil {
		probe := w.envelope(wire.KindPing, "", "", struct{}{})
		w.probe = probe.ID
		_ = w.send(inner, probe)
	}
	disconnected := w.leave.Connected(func() {
		_ = w.send(inner, w.envelope(wire.KindCapabilities, "", "", w.capabilities())) // or the connection has ended
	}, func() { _ = w.link.Drain(inner) })
	reason := w.link.Run(ctx, w.receive, nil)
	cancel()
	disconnected()
	w.tasks.Close()
	switch {
	case w.refused != nil:
		return w.refused
	case reason.Cause == link.Normal:
		return nil
	}
	return &reason
}

// worker is an agent's connection to a hub.
type worker struct {
	card  core.Card
	opts  WorkOptions
	link  *link.Link[[]byte, []byte]
	tasks *agent.Tasks[*task] // by the id of the query or delegate
	leave *agent.Leave
	since time.Time // when it connected
	// hello and probe are the ids of the envelopes that announced the agent, refused is
	// why the hub refused it. Only the reader loop touches them.
	hello, probe string
	refused      error

	mu       sync.Mutex
	progress bool // the hub understands the extension
}

// task is a query or delegate that the agent works on.
type task struct {
	e   wire.Envelope
	req core.Request
	// cancels are the cancels of it that are not acknowledged yet.
	cancels []wire.Envelope
}

func (w *worker) capabilities() wire.Capabilities {
	c := wire.CapabilitiesOf(w.card)
	if !w.opts.NoProgress {
		c.Extensions = []string{wire.ExtensionProgress}
	}
	if w.opts.Notice == nil {
		c.TakesContext = new(bool)
	}
	if w.leave.IsAsked() {
		c.MaxConcurrentTasks = new(int64) // none any more
	}
	return c
}

func (w *worker) envelope(kind wire.Kind, to, ref string, payload any) wire.Envelope {
	return wire.New(kind, string(w.card.ID), cmp.Or(to, wire.HubID), ref, payload)
}

func (w *worker) send(ctx context.Context, e wire.Envelope) error {
	raw := e.Encode()
	return w.link.Send(ctx, raw, len(raw))
}

// reply answers an envelope.
func (w *worker) reply(ctx context.Context, to wire.Envelope, kind wire.Kind, payload any) error {
	return w.send(ctx, w.envelope(kind, to.From, to.ID, payload))
}

// receive handles an envelope of the hub.
func (w *worker) receive(ctx context.Context, raw []byte) error {
	e, err := wire.Decode(raw, wire.DefaultMaxEnvelopeBytes)
	if err == nil {
		err = e.Check()
	}
	if err != nil {
		return w.reply(ctx, e, wire.KindError, wire.AsError(err))
	}
	switch e.Kind {
	case wire.KindQuery, wire.KindDelegate:
		return w.accept(ctx, e)
	case wire.KindCancel:
		return w.stop(ctx, e)
	case wire.KindPing:
		return w.reply(ctx, e, wire.KindPong, w.pong())
	case wire.KindDiscover:
		var d wire.Discover
		if e.Read(&d) == nil {
			w.declare(d.Extensions)
		}
		return w.reply(ctx, e, wire.KindCapabilities, w.capabilities())
	case wire.KindNotify:
		w.notice(e)
		return nil
	case wire.KindPong:
		if e.Ref != "" && e.Ref == w.probe {
			w.opts.Joined()
		}
		return nil
	case wire.KindError:
		return w.hearRefusal(e)
	}
	if e.Kind.Known() {
		return nil // it answers nothing that was sent
	}
	return w.reply(ctx, e, wire.KindError, wire.Refusef(wire.CodeUnknownKind, "this agent does not know the kind %q: send one of %s", e.Kind, wire.KindList()))
}

// notice passes on a notice.
func (w *worker) notice(e wire.Envelope) {
	var n wire.Notify
	if w.opts.Notice != nil && e.Read(&n) == nil {
		w.opts.Notice(e.From, *n.Request().Notice)
	}
}

// hearRefusal handles an error. It returns why the connection ends if it is the agent that is refused.
func (w *worker) hearRefusal(e wire.Envelope) error {
	refusal := wire.Error{Code: wire.CodeUnhandled}
	_ = e.Read(&refusal)
	fault := refusal.Fault()
	switch {
	case e.Ref == w.hello:
		w.refused = fault
		return link.Because(link.Normal, "the hub refused the agent")
	case e.Ref == "" && refusal.Code == wire.CodeConflict:
		fault.PeerCode = Replaced
		w.refused = fault
		return link.Because(link.Normal, "the hub has another connection of the agent")
	case e.Ref == "" && refusal.Code == wire.CodeNotAuthorized:
		w.refused = fault
		return link.Because(link.Normal, "the hub no longer knows the agent")
	}
	w.opts.Log.Warn("the hub refused an envelope", "ref", e.Ref)
	w.opts.Log.Debug("the refusal", "ref", e.Ref, "payload", string(e.Payload))
	return nil
}

// declare notes which extensions the hub understands.
func (w *worker) declare(extensions []string) {
	if slices.Contains(extensions, wire.ExtensionProgress) && !w.opts.NoProgress {
		w.mu.Lock()
		w.progress = true
		w.mu.Unlock()
	}
}

func (w *worker) pong() wire.Pong {
	active := w.tasks.Len()
	p := wire.Pong{Status: "idle", UptimeSecs: int64(time.Since(w.since) / time.Second), ActiveTasks: int64(active), AgentName: w.card.Name}
	switch {
	case w.leave.IsAsked():
		p.Status = "overloaded"
	case active > 0:
		p.Status = "busy" // not overloaded: the hub assigns no more than the agent takes
	}
	return p
}

// accept queues a query or a delegate.
func (w *worker) accept(ctx context.Context, e wire.Envelope) error {
	req, err := e.Request(time.Now())
	if err != nil {
		return w.reply(ctx, e, wire.KindError, wire.AsError(err))
	}
	req.To = core.ToAgent(w.card.ID)
	req.Foreign = &core.Foreign{Dialect: wire.Dialect, JSON: e.Raw}
	if refused := w.tasks.Add(e.ID, &task{e: e, req: req}); refused != nil {
		return w.reply(ctx, e, wire.KindError, wire.ErrorOf(refused))
	}
	return nil // the answer to a repeated envelope answers both
}

// stop cancels the task that an envelope names. The ack follows once the handler has
// returned, since only then the agent has room again.
func (w *worker) stop(ctx context.Context, e wire.Envelope) error {
	var c wire.Cancel
	_ = e.Read(&c) // a cancel needs no reason
	why := core.NewFault(core.CodeCancelled, "%s", cmp.Or(c.Reason, "cancelled"))
	if !w.tasks.Cancel(e.Ref, why, func(t *task) { t.cancels = append(t.cancels, e) }) {
		return w.reply(ctx, e, wire.KindAck, wire.Ack{Accepted: false, Reason: "it is not running here"})
	}
	return nil
}
