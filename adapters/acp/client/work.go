package client

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
)

// Replaced is the Peer of the Fault with which [Work] ends when a newer connection
// took the place of the agent. Coming back would only take it back.
const Replaced = "replaced"

// WorkOptions are the options of [Work]. The zero WorkOptions are the defaults.
type WorkOptions struct {
	// NoProgress leaves the extension out: answers are sent in one piece.
	NoProgress bool
	// MaxEnvelopeBytes bounds an envelope in either direction; 0 means
	// [DefaultMaxEnvelopeBytes].
	MaxEnvelopeBytes int
	// Joined is told once the hub has taken the agent in, from the reader of the
	// connection: it must return soon.
	Joined func()
	// Link bounds the connection.
	Link link.Options
	// Notice is told every notify, from the reader of the connection: it must
	// return soon. Nil ignores them, and says of the agent that it takes no context
	// while it works.
	Notice func(from string, n core.Notice)
	// Log gets what is worth knowing; nil discards it.
	Log *slog.Logger
}

// Work is the agent's end of the dialect: it announces the card, has the handler
// answer queries and delegates, at most card.MaxConcurrent at once, and honours
// ping, discover and cancel. It returns nil when the connection ended in good
// order, a Fault when the hub turned the agent away (see [Replaced]), and else the
// *[link.Reason], once no handler runs any more.
//
// Pieces of an answer leave at once when the hub understands progress, else
// together at the end.
func Work(ctx context.Context, conn link.Conn[[]byte, []byte], card core.Card, handle core.Handler, opts WorkOptions) error {
	card.MaxConcurrent = max(1, card.MaxConcurrent)
	opts.MaxEnvelopeBytes = cmp.Or(max(0, opts.MaxEnvelopeBytes), wire.DefaultMaxEnvelopeBytes)
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	a := &agent{
		card: card, opts: opts, link: link.New(conn, opts.Link), since: time.Now(),
		queue: make(chan *assigned, card.MaxConcurrent), running: map[string]*assigned{},
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	var workers sync.WaitGroup
	for range card.MaxConcurrent {
		workers.Go(func() {
			for t := range a.queue {
				a.answer(inner, t, handle)
			}
		})
	}
	// The hub answers no capabilities that it takes. The pong behind them proves it.
	hello := a.envelope(wire.KindCapabilities, "", "", a.capabilities())
	a.hello = hello.ID
	_ = a.send(inner, hello) // Run says why it could not
	if opts.Joined != nil {
		knock := a.envelope(wire.KindPing, "", "", struct{}{})
		a.knock = knock.ID
		_ = a.send(inner, knock)
	}
	reason := a.link.Run(ctx, func(ctx context.Context, raw []byte) error { return a.receive(inner, ctx, raw) }, nil)
	cancel()
	close(a.queue)
	workers.Wait()
	switch {
	case a.turned != nil:
		return a.turned
	case reason.Cause == link.Normal:
		return nil
	}
	return &reason
}

// agentEnd is an agent's connection to a hub.
type agent struct {
	card  core.Card
	opts  WorkOptions
	link  *link.Link[[]byte, []byte]
	queue chan *assigned
	// The ids of the envelopes that announced the agent, and why the hub refused
	// it; of the reader loop alone.
	hello, knock string
	turned       error

	since time.Time // when it connected

	mu       sync.Mutex
	running  map[string]*assigned // by the id of the query or delegate
	progress bool                 // the hub understands it
}

// assigned is a query or delegate that the agent works on.
type assigned struct {
	e      wire.Envelope
	req    core.Request
	ctx    context.Context //nolint:containedctx // it waits in a queue with the task that it belongs to
	cancel context.CancelCauseFunc
	// cancels are the envelopes that asked to stop it; agentEnd.mu guards them.
	cancels []wire.Envelope
}

func (a *agent) capabilities() wire.Capabilities {
	c := wire.CapabilitiesOf(a.card)
	if !a.opts.NoProgress {
		c.Extensions = []string{wire.ExtensionProgress}
	}
	if a.opts.Notice == nil {
		c.TakesContext = new(bool)
	}
	return c
}

func (a *agent) envelope(kind wire.Kind, to, ref string, payload any) wire.Envelope {
	return wire.New(kind, string(a.card.ID), cmp.Or(to, wire.HubID), ref, payload)
}

func (a *agent) send(ctx context.Context, e wire.Envelope) error {
	raw := e.Encode()
	return a.link.Send(ctx, raw, len(raw))
}

// reply answers an envelope.
func (a *agent) reply(ctx context.Context, to wire.Envelope, kind wire.Kind, payload any) error {
	return a.send(ctx, a.envelope(kind, to.From, to.ID, payload))
}

// receive takes an envelope of the hub. What it starts lives in the context of the
// work, not in that of the call.
func (a *agent) receive(work, ctx context.Context, raw []byte) error {
	e, err := wire.Decode(raw, a.opts.MaxEnvelopeBytes)
	if err == nil {
		err = e.Check()
	}
	if err != nil {
		return a.reply(ctx, e, wire.KindError, wire.AsError(err))
	}
	switch e.Kind {
	case wire.KindQuery, wire.KindDelegate:
		return a.take(work, ctx, e)
	case wire.KindCancel:
		return a.stop(ctx, e)
	case wire.KindPing:
		return a.reply(ctx, e, wire.KindPong, a.pong())
	case wire.KindDiscover:
		var d wire.Discover
		if e.Read(&d) == nil {
			a.learn(d.Extensions)
		}
		return a.reply(ctx, e, wire.KindCapabilities, a.capabilities())
	case wire.KindNotify:
		var n wire.Notify
		if a.opts.Notice != nil && e.Read(&n) == nil {
			a.opts.Notice(e.From, *n.Request().Notice)
		}
		return nil
	case wire.KindPong:
		if e.Ref != "" && e.Ref == a.knock {
			a.opts.Joined()
		}
		return nil
	case wire.KindError:
		switch told := readError(e); {
		case e.Ref == a.hello:
			a.turned = told.Fault()
			return link.Because(link.Normal, "the hub refused the agent")
		case e.Ref == "" && told.Code == wire.CodeConflict:
			replaced := told.Fault()
			replaced.Peer = Replaced
			a.turned = replaced
			return link.Because(link.Normal, "the hub has another connection of the agent")
		case e.Ref == "" && told.Code == wire.CodeNotAuthorized:
			a.turned = told.Fault()
			return link.Because(link.Normal, "the hub knows the agent no longer")
		}
		a.opts.Log.Warn("the hub refused an envelope", "ref", e.Ref)
		a.opts.Log.Debug("the refusal", "ref", e.Ref, "payload", string(e.Payload))
		return nil
	}
	if e.Kind.Known() {
		return nil // an answer to nothing that this end asks
	}
	return a.reply(ctx, e, wire.KindError, wire.Refusef(wire.CodeUnknownKind, "this agent does not know the kind %q: send one of %s", e.Kind, wire.KindList()))
}

// readError reads the payload of an error; what cannot be read is unhandled.
func readError(e wire.Envelope) wire.Error {
	told := wire.Error{Code: wire.CodeUnhandled}
	_ = e.Read(&told)
	return told
}

// learn notes which extensions the hub understands.
func (a *agent) learn(extensions []string) {
	for _, x := range extensions {
		if x == wire.ExtensionProgress && !a.opts.NoProgress {
			a.mu.Lock()
			a.progress = true
			a.mu.Unlock()
		}
	}
}

func (a *agent) pong() wire.Pong {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := wire.Pong{Status: "idle", UptimeSecs: int64(time.Since(a.since) / time.Second), ActiveTasks: int64(len(a.running)), AgentName: a.card.Name}
	if len(a.running) > 0 {
		p.Status = "busy" // the hub knows how much it takes, and gives it no more
	}
	return p
}

// take queues a query or a delegate for a worker that is free.
func (a *agent) take(work, ctx context.Context, e wire.Envelope) error {
	req, err := e.Request(time.Now())
	if err != nil {
		return a.reply(ctx, e, wire.KindError, wire.AsError(err))
	}
	req.To = core.ToAgent(a.card.ID)
	req.Foreign = &core.Foreign{Dialect: wire.Dialect, JSON: e.Raw}
	t := &assigned{e: e, req: req}
	t.ctx, t.cancel = context.WithCancelCause(work)
	a.mu.Lock()
	again := a.running[e.ID] != nil
	full := len(a.running) >= a.card.MaxConcurrent
	if !again && !full {
		a.running[e.ID] = t
	}
	a.mu.Unlock()
	switch {
	case again:
		return nil // it is under way, and its answer answers both
	case full:
		fault := core.NewFault(core.CodeOverloaded, "this agent runs %d tasks at once: try again later", a.card.MaxConcurrent)
		return a.reply(ctx, e, wire.KindError, wire.ErrorOf(fault))
	}
	a.queue <- t // it has room for as many as run
	return nil
}

// stop cancels what an envelope names. The worker acknowledges it once the handler
// has returned, since only then the agent has room again.
func (a *agent) stop(ctx context.Context, e wire.Envelope) error {
	var c wire.Cancel
	_ = e.Read(&c) // a cancel without a reason is one too
	a.mu.Lock()
	t := a.running[e.Ref]
	if t != nil {
		t.cancels = append(t.cancels, e)
	}
	a.mu.Unlock()
	if t == nil {
		return a.reply(ctx, e, wire.KindAck, wire.Ack{Accepted: false, Reason: "it is not running here"})
	}
	t.cancel(core.NewFault(core.CodeCancelled, "%s", cmp.Or(c.Reason, "cancelled")))
	return nil
}
