package client

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
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
	w := &worker{
		card: card, opts: opts, link: link.New(conn, opts.Link), since: time.Now(),
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	w.tasks = agent.Run(inner, card.MaxConcurrent, card.MaxConcurrent, func(ctx context.Context, _ string, j *job) {
		w.answer(inner, ctx, j, handle)
	})
	// The hub does not answer capabilities that it accepts. A pong after them proves it.
	hello := w.envelope(wire.KindCapabilities, "", "", w.capabilities())
	w.hello = hello.ID
	_ = w.send(inner, hello) // Run says why it could not
	if opts.Joined != nil {
		probe := w.envelope(wire.KindPing, "", "", struct{}{})
		w.probe = probe.ID
		_ = w.send(inner, probe)
	}
	reason := w.link.Run(ctx, w.receive, nil)
	cancel()
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
	tasks *agent.Tasks[*job] // by the id of the query or delegate
	// hello and probe are the ids of the envelopes that announced the agent, refused is
	// why the hub refused it. Only the reader loop touches them.
	hello, probe string
	refused      error

	since time.Time // when it connected

	mu       sync.Mutex
	progress bool // the hub understands it
}

// job is a query or delegate that the agent works on.
type job struct {
	e   wire.Envelope
	req core.Request
	// cancels are the envelopes that asked to stop it, until the task is released.
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

// receive takes an envelope of the hub.
func (w *worker) receive(ctx context.Context, raw []byte) error {
	e, err := wire.Decode(raw, w.opts.MaxEnvelopeBytes)
	if err == nil {
		err = e.Check()
	}
	if err != nil {
		return w.reply(ctx, e, wire.KindError, wire.AsError(err))
	}
	switch e.Kind {
	case wire.KindQuery, wire.KindDelegate:
		return w.take(ctx, e)
	case wire.KindCancel:
		return w.stop(ctx, e)
	case wire.KindPing:
		return w.reply(ctx, e, wire.KindPong, w.pong())
	case wire.KindDiscover:
		var d wire.Discover
		if e.Read(&d) == nil {
			w.learn(d.Extensions)
		}
		return w.reply(ctx, e, wire.KindCapabilities, w.capabilities())
	case wire.KindNotify:
		var n wire.Notify
		if w.opts.Notice != nil && e.Read(&n) == nil {
			w.opts.Notice(e.From, *n.Request().Notice)
		}
		return nil
	case wire.KindPong:
		if e.Ref != "" && e.Ref == w.probe {
			w.opts.Joined()
		}
		return nil
	case wire.KindError:
		switch told := readError(e); {
		case e.Ref == w.hello:
			w.refused = told.Fault()
			return link.Because(link.Normal, "the hub refused the agent")
		case e.Ref == "" && told.Code == wire.CodeConflict:
			replaced := told.Fault()
			replaced.Peer = Replaced
			w.refused = replaced
			return link.Because(link.Normal, "the hub has another connection of the agent")
		case e.Ref == "" && told.Code == wire.CodeNotAuthorized:
			w.refused = told.Fault()
			return link.Because(link.Normal, "the hub knows the agent no longer")
		}
		w.opts.Log.Warn("the hub refused an envelope", "ref", e.Ref)
		w.opts.Log.Debug("the refusal", "ref", e.Ref, "payload", string(e.Payload))
		return nil
	}
	if e.Kind.Known() {
		return nil // an answer to nothing that this end asks
	}
	return w.reply(ctx, e, wire.KindError, wire.Refusef(wire.CodeUnknownKind, "this agent does not know the kind %q: send one of %s", e.Kind, wire.KindList()))
}

// readError reads the payload of an error; what cannot be read is unhandled.
func readError(e wire.Envelope) wire.Error {
	told := wire.Error{Code: wire.CodeUnhandled}
	_ = e.Read(&told)
	return told
}

// learn notes which extensions the hub understands.
func (w *worker) learn(extensions []string) {
	for _, x := range extensions {
		if x == wire.ExtensionProgress && !w.opts.NoProgress {
			w.mu.Lock()
			w.progress = true
			w.mu.Unlock()
		}
	}
}

func (w *worker) pong() wire.Pong {
	active := w.tasks.Len()
	p := wire.Pong{Status: "idle", UptimeSecs: int64(time.Since(w.since) / time.Second), ActiveTasks: int64(active), AgentName: w.card.Name}
	if active > 0 {
		p.Status = "busy" // the hub knows how much it takes, and gives it no more
	}
	return p
}

// take queues a query or a delegate for a worker that is free.
func (w *worker) take(ctx context.Context, e wire.Envelope) error {
	req, err := e.Request(time.Now())
	if err != nil {
		return w.reply(ctx, e, wire.KindError, wire.AsError(err))
	}
	req.To = core.ToAgent(w.card.ID)
	req.Foreign = &core.Foreign{Dialect: wire.Dialect, JSON: e.Raw}
	if w.tasks.Add(e.ID, &job{e: e, req: req}) == agent.Full {
		fault := core.NewFault(core.CodeOverloaded, "this agent runs %d tasks at once: try again later", w.card.MaxConcurrent)
		return w.reply(ctx, e, wire.KindError, wire.ErrorOf(fault))
	}
	return nil // the answer to one that came again answers both
}

// stop cancels what an envelope names. The worker acknowledges it once the handler
// has returned, since only then the agent has room again.
func (w *worker) stop(ctx context.Context, e wire.Envelope) error {
	var c wire.Cancel
	_ = e.Read(&c) // a cancel without a reason is one too
	why := core.NewFault(core.CodeCancelled, "%s", cmp.Or(c.Reason, "cancelled"))
	if !w.tasks.Cancel(e.Ref, why, func(j *job) { j.cancels = append(j.cancels, e) }) {
		return w.reply(ctx, e, wire.KindAck, wire.Ack{Accepted: false, Reason: "it is not running here"})
	}
	return nil
}
