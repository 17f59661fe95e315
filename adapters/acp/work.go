package acp

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

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
	opts.MaxEnvelopeBytes = cmp.Or(max(0, opts.MaxEnvelopeBytes), DefaultMaxEnvelopeBytes)
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	a := &agentEnd{
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
	hello := a.envelope(KindCapabilities, "", "", a.capabilities())
	a.hello = hello.ID
	_ = a.send(inner, hello) // Run says why it could not
	if opts.Joined != nil {
		knock := a.envelope(KindPing, "", "", struct{}{})
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
type agentEnd struct {
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
	e      Envelope
	req    core.Request
	ctx    context.Context //nolint:containedctx // it waits in a queue with the task that it belongs to
	cancel context.CancelCauseFunc
	// cancels are the envelopes that asked to stop it; agentEnd.mu guards them.
	cancels []Envelope
}

func (a *agentEnd) capabilities() Capabilities {
	c := capabilitiesOf(a.card)
	if !a.opts.NoProgress {
		c.Extensions = []string{ExtensionProgress}
	}
	if a.opts.Notice == nil {
		c.TakesContext = new(bool)
	}
	return c
}

func (a *agentEnd) envelope(kind Kind, to, ref string, payload any) Envelope {
	return Envelope{
		ID: newID(), From: string(a.card.ID), To: cmp.Or(to, hubID), TS: time.Now().UnixMilli(), Kind: kind, Ref: ref,
		Payload: encode(payload),
	}
}

func (a *agentEnd) send(ctx context.Context, e Envelope) error {
	raw := e.Encode()
	return a.link.Send(ctx, raw, len(raw))
}

// reply answers an envelope.
func (a *agentEnd) reply(ctx context.Context, to Envelope, kind Kind, payload any) error {
	return a.send(ctx, a.envelope(kind, to.From, to.ID, payload))
}

// receive takes an envelope of the hub. What it starts lives in the context of the
// work, not in that of the call.
func (a *agentEnd) receive(work, ctx context.Context, raw []byte) error {
	e, err := Decode(raw, a.opts.MaxEnvelopeBytes)
	if err == nil {
		err = e.Check()
	}
	if err != nil {
		return a.reply(ctx, e, KindError, asError(err))
	}
	switch e.Kind {
	case KindQuery, KindDelegate:
		return a.take(work, ctx, e)
	case KindCancel:
		return a.stop(ctx, e)
	case KindPing:
		return a.reply(ctx, e, KindPong, a.pong())
	case KindDiscover:
		var d Discover
		if e.Read(&d) == nil {
			a.learn(d.Extensions)
		}
		return a.reply(ctx, e, KindCapabilities, a.capabilities())
	case KindNotify:
		var n Notify
		if a.opts.Notice != nil && e.Read(&n) == nil {
			a.opts.Notice(e.From, *n.Request().Notice)
		}
		return nil
	case KindPong:
		if e.Ref != "" && e.Ref == a.knock {
			a.opts.Joined()
		}
		return nil
	case KindError:
		switch told := readError(e); {
		case e.Ref == a.hello:
			a.turned = told.Fault()
			return link.Because(link.Normal, "the hub refused the agent")
		case e.Ref == "" && told.Code == CodeConflict:
			replaced := told.Fault()
			replaced.Peer = Replaced
			a.turned = replaced
			return link.Because(link.Normal, "the hub has another connection of the agent")
		case e.Ref == "" && told.Code == CodeNotAuthorized:
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
	return a.reply(ctx, e, KindError, refusef(CodeUnknownKind, "this agent does not know the kind %q: send one of %s", e.Kind, kindList()))
}

// readError reads the payload of an error; what cannot be read is unhandled.
func readError(e Envelope) Error {
	told := Error{Code: CodeUnhandled}
	_ = e.Read(&told)
	return told
}

// learn notes which extensions the hub understands.
func (a *agentEnd) learn(extensions []string) {
	for _, x := range extensions {
		if x == ExtensionProgress && !a.opts.NoProgress {
			a.mu.Lock()
			a.progress = true
			a.mu.Unlock()
		}
	}
}

func (a *agentEnd) pong() Pong {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := Pong{Status: "idle", UptimeSecs: seconds(a.since), ActiveTasks: int64(len(a.running)), AgentName: a.card.Name}
	if len(a.running) > 0 {
		p.Status = "busy" // the hub knows how much it takes, and gives it no more
	}
	return p
}

// take queues a query or a delegate for a worker that is free.
func (a *agentEnd) take(work, ctx context.Context, e Envelope) error {
	now := time.Now()
	var req core.Request
	var err error
	if e.Kind == KindQuery {
		var q Query
		err = e.Read(&q)
		req = q.Request(now)
	} else {
		var d Delegate
		err = e.Read(&d)
		req = d.Request(now)
	}
	if err != nil {
		return a.reply(ctx, e, KindError, asError(err))
	}
	req.To = core.ToAgent(a.card.ID)
	req.Foreign = &core.Foreign{Dialect: Dialect, JSON: e.Raw}
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
		return a.reply(ctx, e, KindError, errorOf(fault))
	}
	a.queue <- t // it has room for as many as run
	return nil
}

// stop cancels what an envelope names. The worker acknowledges it once the handler
// has returned, since only then the agent has room again.
func (a *agentEnd) stop(ctx context.Context, e Envelope) error {
	var c Cancel
	_ = e.Read(&c) // a cancel without a reason is one too
	a.mu.Lock()
	t := a.running[e.Ref]
	if t != nil {
		t.cancels = append(t.cancels, e)
	}
	a.mu.Unlock()
	if t == nil {
		return a.reply(ctx, e, KindAck, Ack{Accepted: false, Reason: "it is not running here"})
	}
	t.cancel(core.NewFault(core.CodeCancelled, "%s", cmp.Or(c.Reason, "cancelled")))
	return nil
}
