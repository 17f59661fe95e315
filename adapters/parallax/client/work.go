package client

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/link"
)

// WorkOptions are how an agent works. The zero WorkOptions are an agent with all
// extensions that beats as the hub asks it to.
type WorkOptions struct {
	// Plain leaves the extensions out: the agent speaks as the protocol's page
	// does, and answers each task in one message.
	Plain bool
	// HeartbeatInterval is how often it sends a heartbeat; zero does as the hub
	// says, negative sends none.
	HeartbeatInterval time.Duration
	// Secret signs what it says; what the hub says must be signed with it then. Empty
	// signs and checks nothing.
	Secret []byte
	// MaxMessageBytes bounds a message that it sends; zero means
	// wire.DefaultMaxMessageBytes.
	MaxMessageBytes int
	// Registered is called once the hub has taken the agent in, from the reader
	// loop: it must return soon.
	Registered func(*Agent)
	// Link are the bounds of the connection.
	Link link.Options
	// Log gets what operators should know; nil discards it.
	Log *slog.Logger
}

// Work is the agent's end of one connection: it registers as card, hands up to
// card.MaxConcurrent tasks at once to handle, and returns when the connection has
// ended and every handler has returned. The contexts of the handlers end when
// their task is cancelled or the connection ends.
//
// It returns nil when ctx ended, after it has said so to the hub; a Fault when
// the hub refused the agent; else the *link.Reason for which the connection
// ended.
func Work(ctx context.Context, conn link.Conn[[]byte, []byte], card core.Card, handle core.Handler, opts WorkOptions) error {
	opts.MaxMessageBytes = cmp.Or(opts.MaxMessageBytes, wire.DefaultMaxMessageBytes)
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	card.MaxConcurrent = max(1, card.MaxConcurrent)
	// Handlers outlive neither the connection nor, while it is told goodbye, ctx.
	base, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	w := &worker{
		link: link.New(conn, opts.Link), card: card, handle: handle, opts: opts,
		registered: make(chan struct{}), asks: map[string]*ask{},
	}
	w.agent = &Agent{worker: w}
	if err := w.register(ctx); err != nil {
		_ = conn.Close(link.Reason{Cause: link.Normal}) // it was never used
		return err
	}

	w.tasks = agent.Run(base, card.MaxConcurrent, 2*card.MaxConcurrent, func(ctx context.Context, _ string, j *job) { w.run(base, ctx, j) })
	var beating sync.WaitGroup
	beating.Go(func() {
		w.beat(ctx)
		stop()
	})
	reason := w.link.Run(context.WithoutCancel(ctx), w.receive, nil)
	stop()
	w.tasks.Close()
	beating.Wait()
	switch {
	case w.refused != nil:
		return w.refused
	case ctx.Err() != nil:
		return nil
	}
	return &reason
}

// worker is the state of an agent's end of a connection.
type worker struct {
	link   *link.Link[[]byte, []byte]
	card   core.Card
	handle core.Handler
	opts   WorkOptions
	agent  *Agent
	ids    atomic.Uint64
	tasks  *agent.Tasks[*job] // by id

	// Of the reader loop, until registered is closed or Run has returned.
	registered chan struct{}
	refused    *core.Fault
	id         core.AgentID
	extensions map[string]bool

	interval atomic.Int64 // between heartbeats

	mu   sync.Mutex
	asks map[string]*ask // by request
}

const registerID = "register"

func (w *worker) register(ctx context.Context) error {
	metadata := maps.Clone(w.card.Metadata)
	if metadata == nil {
		metadata = wire.Members{}
	}
	for name, value := range map[string]string{"name": w.card.Name, "model": w.card.Model} {
		if raw, err := wire.Marshal(value); err == nil && value != "" {
			metadata[name] = raw
		}
	}
	p := wire.Register{
		AgentID: string(w.card.ID), Capabilities: w.card.Capabilities, Domains: w.card.Domains, Metadata: metadata,
		Config: wire.RegisterConfig{MaxConcurrentTasks: wire.Count(w.card.MaxConcurrent)},
	}
	if p.Capabilities == nil {
		p.Capabilities = []string{}
	}
	if !w.opts.Plain {
		p.Config.Extensions = []string{wire.ExtensionAccepted, wire.ExtensionProgress, wire.ExtensionRequest}
	}
	return w.reply(ctx, wire.TypeRegister, registerID, p)
}

// receive takes one frame from the hub. An agent survives what it does not
// understand.
func (w *worker) receive(ctx context.Context, frame []byte) error {
	m, err := wire.Decode(frame)
	if err == nil && !w.trusts(m) {
		err = core.NewFault(core.CodeUnauthenticated, "the signature is missing or wrong")
	}
	if err == nil {
		err = w.take(ctx, m)
	}
	if f := (*core.Fault)(nil); errors.As(err, &f) {
		w.opts.Log.Warn("frame of the hub not understood", "type", m.Type, "id", m.ID, "error", f)
		return nil
	}
	return err
}

// trusts reports whether a message is the hub's. A hub that refuses a register may not
// know by what to sign that.
func (w *worker) trusts(m wire.Message) bool {
	if len(w.opts.Secret) == 0 {
		return true
	}
	select {
	case <-w.registered:
	default:
		if m.Type == wire.TypeError && m.Signature == "" {
			return true
		}
	}
	return wire.Verify(m.Frame, m.Signature, w.opts.Secret)
}

func (w *worker) take(ctx context.Context, m wire.Message) error {
	switch m.Type {
	case wire.TypeRegistered:
		return of(m, w.takeRegistered)
	case wire.TypeTask:
		p, err := wire.ReadPayload[wire.Task](m)
		if err != nil {
			return err
		}
		return w.takeTask(ctx, m, p)
	case wire.TypeTaskCancelled:
		return of(m, w.takeCancelled)
	case wire.TypeConfigUpdate:
		return of(m, func(p wire.ConfigUpdate) error { w.setInterval(p.Config.HeartbeatInterval); return nil })
	case wire.TypeError:
		return of(m, func(p wire.Refusal) error { return w.takeError(m, p) })
	case wire.TypeTaskAccepted:
		return of(m, func(p wire.TaskAccepted) error {
			w.hear(p.RequestID, core.Accepted{Estimate: wire.Milliseconds(p.EstimatedMs)})
			return nil
		})
	case wire.TypeTaskProgress:
		return of(m, func(p wire.Progress) error {
			bodies, err := p.Bodies()
			w.hear(p.RequestID, bodies...)
			return err
		})
	case wire.TypeTaskResult:
		return of(m, func(p wire.TaskResult) error {
			w.hearing(p.RequestID, func(q *ask) []core.Body { return p.Bodies(q.streamed, true) })
			return nil
		})
	case wire.TypeTaskError:
		return of(m, func(p wire.TaskError) error {
			w.hearing(p.RequestID, func(q *ask) []core.Body { return p.Bodies(q.streamed, true) })
			return nil
		})
	}
	return nil // heartbeat_ack, disconnect: the end of the connection says the rest
}

// of reads the payload of m and hands it on.
func of[P any](m wire.Message, do func(P) error) error {
	p, err := wire.ReadPayload[P](m)
	if err != nil {
		return err
	}
	return do(p)
}

func (w *worker) takeRegistered(p wire.Registered) error {
	select {
	case <-w.registered:
		return nil // a repetition
	default:
	}
	w.id = core.AgentID(p.AgentID)
	w.extensions = map[string]bool{}
	for _, name := range p.Config.Extensions {
		w.extensions[name] = true
	}
	w.setInterval(p.Config.HeartbeatInterval)
	close(w.registered)
	if w.opts.Registered != nil {
		w.opts.Registered(w.agent)
	}
	return nil
}

func (w *worker) takeError(m wire.Message, p wire.Refusal) error {
	f := wire.TaskError{Error: wire.ErrorDetail{Code: p.Code, Message: p.Message}}.Fault()
	if m.ID == registerID || p.Fatal {
		w.refused = f
		return link.Because(link.Protocol, "the hub refused the agent: %s", p.Message)
	}
	w.opts.Log.Warn("the hub refused a message", "id", m.ID, "code", p.Code, "message", p.Message)
	return nil
}

func (w *worker) setInterval(c wire.Count) {
	switch {
	case w.opts.HeartbeatInterval != 0:
		w.interval.Store(int64(max(0, w.opts.HeartbeatInterval)))
	case c > 0:
		w.interval.Store(int64(wire.Milliseconds(c)))
	}
}

// beat sends heartbeats until the connection ends, and says goodbye when ctx does.
func (w *worker) beat(ctx context.Context) {
	select {
	case <-w.registered:
	case <-w.link.Done():
		return
	case <-ctx.Done():
		w.leave(ctx)
		return
	case <-time.After(wire.DefaultRegisterTimeout):
		w.link.Close(*link.Because(link.Unresponsive, "no answer to register within %v: is this a Parallax hub?", wire.DefaultRegisterTimeout))
		return
	}
	var due <-chan time.Time
	for {
		if every := time.Duration(w.interval.Load()); every > 0 {
			due = time.After(every)
		}
		select {
		case <-due:
			active := min(w.tasks.Len(), w.card.MaxConcurrent)
			status := "healthy"
			if active == w.card.MaxConcurrent {
				status = "busy"
			}
			if w.send(context.WithoutCancel(ctx), wire.TypeHeartbeat, wire.Heartbeat{Status: status, ActiveTasks: wire.Count(active)}) != nil {
				return // the connection has ended
			}
		case <-w.link.Done():
			return
		case <-ctx.Done():
			w.leave(ctx)
			return
		}
	}
}

// leave tells the hub goodbye and ends the connection.
func (w *worker) leave(ctx context.Context) {
	const patience = time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	_ = w.send(ctx, wire.TypeDisconnect, wire.Disconnect{Reason: "shutdown", Graceful: true}) // a hub that takes nothing needs no goodbye
	w.link.Close(link.Reason{Cause: link.Normal, Text: "the agent was stopped"})
}
