package client

import (
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
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// WorkOptions configure an agent. The zero WorkOptions are an agent with all extensions.
type WorkOptions struct {
	// Plain declares no extensions: the agent speaks as on the protocol's page, and
	// answers each task with one message.
	Plain bool
	// Secret signs the agent's messages, and the hub must sign its own with it. Empty
	// signs and checks nothing.
	Secret []byte
	// Registered is called once the hub has accepted the agent. The reader loop calls it:
	// it must return soon.
	Registered func(*Agent)
	// Link bounds the connection.
	Link link.Options
	// Log gets messages for operators; nil discards them.
	Log *slog.Logger
}

// Work runs the agent's end of one connection. It registers card, passes up to
// card.MaxConcurrent tasks at once to handle, and returns when the connection has ended
// and every handler has returned. The context of a handler ends when its task is
// cancelled or the connection ends.
//
// When ctx ends, Work disconnects and returns nil. Else it returns a Fault if the hub
// refused the agent or replaced it, nil if the hub closed the connection normally, or the *link.Reason for its end. ctx may
// carry an [agent.Leave].
func Work(ctx context.Context, conn link.Conn[[]byte, []byte], card core.Card, handle core.Handler, opts WorkOptions) error {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	card.MaxConcurrent = max(1, card.MaxConcurrent)
	base, stop := context.WithCancel(context.WithoutCancel(ctx)) // handlers end when the connection does
	defer stop()
	w := &worker{
		link: link.New(conn, opts.Link), card: card, handle: handle, opts: opts, leave: agent.LeaveOf(ctx),
		registered: make(chan struct{}), asks: map[string]*ask{},
	}
	if err := w.register(ctx); err != nil {
		_ = conn.Close(link.Reason{Cause: link.Normal}) // it was never used
		return err
	}

	w.tasks = agent.Run(base, card.MaxConcurrent, 2*card.MaxConcurrent, func(ctx context.Context, _ string, j *job) { w.run(base, ctx, j) })
	var heartbeats sync.WaitGroup
	heartbeats.Go(func() {
		w.sendHeartbeats(ctx)
		stop()
	})
	disconnected := w.leave.Connected(nil, func() { _ = w.link.Drain(base) }) // sendHeartbeats tells it
	reason := w.link.Run(context.WithoutCancel(ctx), w.receive, nil)
	stop()
	disconnected()
	w.tasks.Close()
	heartbeats.Wait()
	switch {
	case w.refused != nil:
		return w.refused
	case ctx.Err() != nil, reason.Cause == link.Normal:
		return nil
	}
	return &reason
}

// worker is the state of the agent's end of a connection.
type worker struct {
	link   *link.Link[[]byte, []byte]
	card   core.Card
	handle core.Handler
	opts   WorkOptions
	leave  *agent.Leave
	ids    atomic.Uint64
	tasks  *agent.Tasks[*job] // by id

	// Owned by the reader loop. Others may read them once registered is closed or Run
	// has returned.
	registered chan struct{}
	refused    *core.Fault
	id         core.AgentID
	extensions map[string]bool

	interval atomic.Int64 // between heartbeats

	mu   sync.Mutex
	asks map[string]*ask // by request
}

const registerID = "register"

// statusDraining is the status of an agent that finishes its tasks and takes no others.
const statusDraining = "draining"

func (w *worker) register(ctx context.Context) error {
	metadata := maps.Clone(w.card.Metadata)
	if metadata == nil {
		metadata = wire.Members{}
	}
	for name, value := range map[string]string{"name": w.card.Name, "model": w.card.Model} {
		if value != "" {
			metadata[name] = strictjson.Encode(value)
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
	return w.send(ctx, wire.TypeRegister, registerID, p)
}

// receive handles one frame from the hub. It logs and skips one that it does not
// understand.
func (w *worker) receive(ctx context.Context, frame []byte) error {
	m, err := wire.Decode(frame)
	if err == nil && !w.verified(m) {
		err = core.NewFault(core.CodeUnauthenticated, "the signature is missing or wrong")
	}
	if err == nil {
		err = w.dispatch(ctx, m)
	}
	if f := (*core.Fault)(nil); errors.As(err, &f) {
		w.opts.Log.Warn("frame of the hub not understood", "type", m.Type, "id", m.ID, "error", f)
		return nil
	}
	return err
}

// verified reports whether a message is the hub's. A hub that refuses a register may not
// know the secret.
func (w *worker) verified(m wire.Message) bool {
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

func (w *worker) dispatch(ctx context.Context, m wire.Message) error {
	switch m.Type {
	case wire.TypeRegistered:
		return handle(m, w.onRegistered)
	case wire.TypeTask:
		return handle(m, func(p wire.Task) error { return w.onTask(ctx, m, p) })
	case wire.TypeTaskCancelled:
		return handle(m, w.onCancelled)
	case wire.TypeConfigUpdate:
		return handle(m, func(p wire.ConfigUpdate) error { w.setInterval(p.Config.HeartbeatInterval); return nil })
	case wire.TypeError:
		return handle(m, func(p wire.Refusal) error { return w.onError(m, p) })
	case wire.TypeTaskAccepted:
		return handle(m, func(p wire.TaskAccepted) error {
			accepted := core.Accepted{Estimate: wire.Milliseconds(p.EstimatedMs)}
			w.deliver(p.RequestID, func(bool, bool) []core.Body { return []core.Body{accepted} })
			return nil
		})
	case wire.TypeTaskProgress:
		return handle(m, func(p wire.Progress) error {
			bodies, err := p.Bodies()
			w.deliver(p.RequestID, func(bool, bool) []core.Body { return bodies })
			return err
		})
	case wire.TypeTaskResult:
		return handle(m, func(p wire.TaskResult) error { w.deliver(p.RequestID, p.Bodies); return nil })
	case wire.TypeTaskError:
		return handle(m, func(p wire.TaskError) error { w.deliver(p.RequestID, p.Bodies); return nil })
	}
	return nil // heartbeat_ack and disconnect, after which the connection ends
}

// handle decodes the payload of m for its handler.
func handle[P any](m wire.Message, handler func(P) error) error {
	p, err := wire.ReadPayload[P](m)
	if err != nil {
		return err
	}
	return handler(p)
}

func (w *worker) onRegistered(p wire.Registered) error {
	select {
	case <-w.registered:
		return nil // a duplicate
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
		w.opts.Registered(&Agent{worker: w})
	}
	return nil
}

// onError handles an error of the hub. A fatal one is answered by another connection (specification, section Fatal
// Errors), unless it is the agent that the hub does not want.
func (w *worker) onError(m wire.Message, p wire.Refusal) error {
	switch {
	case m.ID == registerID, p.Fatal && p.Code == wire.Replaced:
		w.refused = wire.TaskError{Error: wire.ErrorDetail{Code: p.Code, Message: p.Message}}.Fault()
		return link.Because(link.Protocol, "the hub refused the agent: %s", p.Message)
	case p.Fatal:
		return link.Because(link.Protocol, "the hub ended the connection: %s: %s", p.Code, p.Message)
	}
	w.opts.Log.Warn("the hub refused a message", "id", m.ID, "code", p.Code, "message", p.Message)
	return nil
}

func (w *worker) setInterval(c wire.Count) {
	if c > 0 {
		w.interval.Store(int64(wire.Milliseconds(c)))
	}
}

// sendHeartbeats sends heartbeats until the connection ends. It disconnects when ctx ends,
// or the hub does not answer the register.
func (w *worker) sendHeartbeats(ctx context.Context) {
	select {
	case <-w.registered:
	case <-w.link.Done():
		return
	case <-ctx.Done():
		w.disconnect(ctx)
		return
	case <-time.After(wire.RegisterTimeout):
		w.link.Close(*link.Because(link.Unresponsive, "no answer to register within %v: is this a Parallax hub?", wire.RegisterTimeout))
		return
	}
	var due <-chan time.Time
	leaves := w.leave.Asked()
	for {
		if every := time.Duration(w.interval.Load()); every > 0 {
			due = time.After(every)
		}
		select {
		case <-due:
			active := min(w.tasks.Len(), w.card.MaxConcurrent)
			status := "healthy"
			switch {
			case w.leave.IsAsked():
				status = statusDraining
			case active == w.card.MaxConcurrent:
				status = "busy"
			}
			if w.send(context.WithoutCancel(ctx), wire.TypeHeartbeat, "", wire.Heartbeat{Status: status, ActiveTasks: wire.Count(active)}) != nil {
				return // the connection has ended
			}
		case <-leaves:
			leaves = nil
			if w.send(context.WithoutCancel(ctx), wire.TypeStatusUpdate, "", wire.StatusUpdate{Status: statusDraining, Reason: "the agent is about to leave"}) != nil {
				return
			}
		case <-w.link.Done():
			return
		case <-ctx.Done():
			w.disconnect(ctx)
			return
		}
	}
}

// disconnect ends the connection after a disconnect message.
func (w *worker) disconnect(ctx context.Context) {
	const timeout = time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	_ = w.send(ctx, wire.TypeDisconnect, "", wire.Disconnect{Reason: "shutdown", Graceful: true}) // optional for the hub
	w.link.Close(link.Reason{Cause: link.Normal, Text: "the agent was stopped"})
}
