package client

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/link"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// DefaultHeartbeat is how often an agent that has nothing else to say sends a
// Heartbeat.
const DefaultHeartbeat = 30 * time.Second

// backlog is how many requests beyond those that run may wait at the agent's end.
// A hub that keeps to what the agent declared never needs it.
const backlog = 64

// WorkOption changes how [Work] works.
type WorkOption func(*worker)

// WithInjections declares that the agent takes injected context, and hands it to
// take, which says whether it was accepted and, if not, why. take runs in the
// reader loop: it must return soon.
func WithInjections(take func(core.Injected) (accepted bool, reason string)) WorkOption {
	return func(w *worker) { w.inject = take }
}

// WithJoined calls joined with the hub's Welcome, in the reader loop, before the
// first request.
func WithJoined(joined func(*pb.Welcome)) WorkOption {
	return func(w *worker) { w.onJoined = joined }
}

// WithHeartbeat sets how often a silent agent sends a Heartbeat; zero or less for
// never.
func WithHeartbeat(every time.Duration) WorkOption {
	return func(w *worker) { w.heartbeat = every }
}

// WithMaxMessageBytes sets the largest message that is sent: 4 MiB.
func WithMaxMessageBytes(n int) WorkOption {
	return func(w *worker) { w.maxBytes = n }
}

// WithLink bounds the connection.
func WithLink(o link.Options) WorkOption {
	return func(w *worker) { w.linkOptions = o }
}

// Work is the agent's end of the dialect: it registers with the card and runs
// handle for each request, up to card.MaxConcurrent at once, until the connection
// ends. A handler's context ends when its request is cancelled and when the
// connection is lost; [CallTool], [AwaitApproval] and [Sender] take that context.
//
// It returns nil when the hub sent Shutdown or ended the stream in good order, a
// Fault when the hub turned the agent away (conflict: the id is taken), the cause
// of ctx when that ended, and otherwise the *[link.Reason] for which the connection
// was lost. It returns once every handler has; conn is closed then.
func Work(ctx context.Context, conn link.Conn[*pb.ServerMessage, *pb.AgentMessage], card core.Card, handle core.Handler, opts ...WorkOption) error {
	card.MaxConcurrent = max(card.MaxConcurrent, 1)
	w := &worker{
		card: card, handle: handle, heartbeat: DefaultHeartbeat, maxBytes: wire.DefaultMaxMessageBytes,
		calls:     make(map[string]chan *pb.PackToolResult),
		approvals: make(map[string][]chan core.ApprovalDecided),
	}
	for _, o := range opts {
		o(w)
	}
	register, err := w.registration()
	if err == nil && proto.Size(register) > w.maxBytes {
		err = core.NewFault(core.CodeTooLarge, "the card has %d bytes, the hub takes %d", proto.Size(register), w.maxBytes)
	}
	if err != nil {
		_ = conn.Close(link.Reason{Cause: link.Normal}) // nothing was said on it
		return err
	}
	w.link = link.New(conn, w.linkOptions)
	// It fits, and the queue is empty: this does not wait and cannot fail.
	_ = w.send(ctx, &pb.AgentMessage{Payload: &pb.AgentMessage_Register{Register: register}})

	// Handlers are told of the end only once nothing more is sent: what they make of
	// it must not look like an answer.
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	w.tasks = agent.Run(inner, card.MaxConcurrent, 2*card.MaxConcurrent+backlog, w.run)
	var beating sync.WaitGroup
	beating.Go(func() {
		w.beat(inner)
		reason := w.link.Reason()
		cancel(&reason)
	})
	reason := w.link.Run(ctx, w.receive, nil)
	w.tasks.Close()
	beating.Wait()
	return w.outcome(ctx, reason)
}

// worker is the agent's end of one connection.
type worker struct {
	card        core.Card
	handle      core.Handler
	inject      func(core.Injected) (bool, string)
	onJoined    func(*pb.Welcome)
	heartbeat   time.Duration
	maxBytes    int
	linkOptions link.Options

	link   *link.Link[*pb.ServerMessage, *pb.AgentMessage]
	tasks  *agent.Tasks[*job] // by request id
	spoken atomic.Bool        // something was sent since the last look

	// These belong to the reader loop.
	joined  bool
	refused *core.Fault

	mu        sync.Mutex
	calls     map[string]chan *pb.PackToolResult
	approvals map[string][]chan core.ApprovalDecided // by tool id, first come first served
	leaving   bool                                   // Shutdown was received
}

func (w *worker) registration() (*pb.RegisterAgent, error) {
	features := []string{wire.FeatureUsage, wire.FeatureToolStates, wire.FeatureCancellation, wire.FeatureRegistrationError, wire.FeatureFaultCodes}
	if w.inject != nil {
		features = append(features, wire.FeatureInjection)
	}
	return wire.RegisterOf(w.card, features...)
}

// send queues a message. It returns a too_large Fault for one that would end the
// stream, and otherwise what [link.Link.Send] does.
func (w *worker) send(ctx context.Context, m *pb.AgentMessage) error {
	size := proto.Size(m)
	if size > w.maxBytes {
		return core.NewFault(core.CodeTooLarge, "the message has %d bytes, the hub takes %d", size, w.maxBytes)
	}
	w.spoken.Store(true)
	return w.link.Send(ctx, m, size)
}

// beat sends a Heartbeat whenever there was nothing else for a while, until the
// link is closed.
func (w *worker) beat(ctx context.Context) {
	var tick <-chan time.Time
	if w.heartbeat > 0 {
		ticker := time.NewTicker(w.heartbeat)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case <-w.link.Done():
			return
		case now := <-tick:
			if w.spoken.Swap(false) {
				continue
			}
			beat := &pb.Heartbeat{TimestampMs: now.UnixMilli()}
			// It fails only when the link is closed, which ends the loop.
			_ = w.send(ctx, &pb.AgentMessage{Payload: &pb.AgentMessage_Heartbeat{Heartbeat: beat}})
			w.spoken.Store(false)
		}
	}
}

// receive takes the hub's messages in order.
func (w *worker) receive(ctx context.Context, m *pb.ServerMessage) error {
	if !w.joined {
		return w.join(m)
	}
	switch p := m.GetPayload().(type) {
	case *pb.ServerMessage_SendMessage:
		return w.admit(ctx, p.SendMessage)
	case *pb.ServerMessage_CancelRequest:
		why := core.NewFault(core.CodeCancelled, "%s", p.CancelRequest.GetReason())
		w.tasks.Cancel(p.CancelRequest.GetRequestId(), why, nil)
	case *pb.ServerMessage_InjectContext:
		return w.injected(ctx, p.InjectContext)
	case *pb.ServerMessage_ToolApproval:
		w.decided(p.ToolApproval)
	case *pb.ServerMessage_PackToolResult:
		w.mu.Lock()
		answer := w.calls[p.PackToolResult.GetRequestId()]
		delete(w.calls, p.PackToolResult.GetRequestId())
		w.mu.Unlock()
		if answer != nil {
			answer <- p.PackToolResult
		}
	case *pb.ServerMessage_Shutdown:
		w.leave()
	}
	// A second Welcome, a late RegistrationError and what this agent does not know
	// change nothing.
	return nil
}

// join takes the first message.
func (w *worker) join(m *pb.ServerMessage) error {
	switch p := m.GetPayload().(type) {
	case *pb.ServerMessage_Welcome:
		w.joined = true
		if w.onJoined != nil {
			w.onJoined(p.Welcome)
		}
		return nil
	case *pb.ServerMessage_RegistrationError:
		text := p.RegistrationError.GetReason()
		if free := p.RegistrationError.GetSuggestedId(); free != "" {
			text += "; the id " + free + " is free"
		}
		w.refused = core.NewFault(core.CodeConflict, "%s", text)
		return &link.Reason{Cause: link.Normal, Text: text}
	case *pb.ServerMessage_Shutdown:
		w.leave()
		return nil
	}
	return link.Because(link.Protocol, "the first message of the hub must be Welcome or RegistrationError")
}

// admit puts a request in line. The hub keeps to what the agent declared; one
// that does not is told.
func (w *worker) admit(ctx context.Context, m *pb.SendMessage) error {
	id := m.GetRequestId()
	if w.tasks.Add(id, &job{worker: w, message: m}) != agent.Full {
		return nil // what is said of one that came again would end the first
	}
	f := core.NewFault(core.CodeOverloaded, "%d requests wait already", w.card.MaxConcurrent+backlog)
	return w.tell(ctx, id, core.Failed{Fault: f}, false)
}

func (w *worker) injected(ctx context.Context, m *pb.InjectContext) error {
	in := wire.InjectionOf(m)
	answer := core.InjectionAnswered{ID: in.ID, Reason: "this agent takes no injections"}
	if w.inject != nil {
		answer.Accepted, answer.Reason = w.inject(in)
	}
	return w.send(ctx, &pb.AgentMessage{Payload: &pb.AgentMessage_InjectionAck{InjectionAck: wire.AckOf(answer)}})
}

// decided hands a decision to whoever asked for it first.
func (w *worker) decided(m *pb.ToolApprovalResponse) {
	w.mu.Lock()
	defer w.mu.Unlock()
	waiting := w.approvals[m.GetId()]
	if len(waiting) == 0 {
		return
	}
	waiting[0] <- wire.DecisionOf(m)
	if w.approvals[m.GetId()] = waiting[1:]; len(waiting) == 1 {
		delete(w.approvals, m.GetId())
	}
}

// leave ends the connection once what the agent has is done (specification,
// section Shutdown).
func (w *worker) leave() {
	w.mu.Lock()
	w.leaving = true
	w.mu.Unlock()
	if w.tasks.Len() == 0 {
		w.link.Close(link.Reason{Cause: link.Normal, Text: "shutdown"})
	}
}

// outcome is what Work returns.
func (w *worker) outcome(ctx context.Context, r link.Reason) error {
	switch {
	case w.refused != nil:
		return w.refused
	case w.leaving:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case r.Cause == link.Normal:
		return nil
	case !w.joined && r.Code != 0:
		if code, ok := wire.CodeOf(codes.Code(uint32(r.Code))); ok {
			return core.NewFault(code, "%s", r.Text).Because(&r)
		}
	}
	return fmt.Errorf("connection to the hub: %w", &r)
}
