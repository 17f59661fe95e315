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

// HeartbeatInterval is how often an agent that sends nothing else sends a Heartbeat.
const HeartbeatInterval = 30 * time.Second

// maxMessageBytes is the largest message that a hub accepts.
const maxMessageBytes = wire.DefaultMaxMessageBytes

// backlog is how many requests may wait beyond those that run. A hub that keeps to what
// the agent declared never needs it.
const backlog = 64

// WorkOptions are the settings of [Work]. Its functions run in the reader loop: they must
// return soon.
type WorkOptions struct {
	// Joined is called with the hub's Welcome, before the first request. Nil for none.
	Joined func(*pb.Welcome)
	// Injected is called with injected context and returns what passes it on, once the hub has
	// been told that it is accepted; or nil and why it is not. Nil for an agent that does not
	// declare injection.
	Injected func(core.Injected) (pass func(), reason string)
	// Decided is called with the decision on a tool call for which a handler has reported
	// [core.ApprovalRequested]. Nil for none.
	Decided func(core.ApprovalDecided)
}

// Work is the agent's end of the dialect: it registers with the card and runs handle for
// each request, up to card.MaxConcurrent at once, until the connection ends. The context of
// a handler ends when its request is cancelled and when the connection is lost; [CallTool]
// takes that context.
//
// It returns nil when the hub sent Shutdown or ended the stream normally, a Fault when the
// hub rejected the agent (conflict: the id is taken), the cause of ctx when that ended, and
// otherwise the *[link.Reason] for which the connection was lost. It returns once every
// handler has; conn is closed then. ctx may carry an [agent.Leave].
func Work(ctx context.Context, conn link.Conn[*pb.ServerMessage, *pb.AgentMessage], card core.Card, handle core.Handler, opts WorkOptions) error {
	card.MaxConcurrent = max(card.MaxConcurrent, 1)
	w := &worker{
		card: card, handle: handle, opts: opts,
		calls: make(map[string]chan *pb.PackToolResult),
	}
	features := []string{wire.FeatureUsage, wire.FeatureToolStates, wire.FeatureCancellation, wire.FeatureRegistrationError, wire.FeatureFaultCodes, wire.FeatureSenderProof, wire.FeatureTrace}
	if opts.Injected != nil {
		features = append(features, wire.FeatureInjection)
	}
	register, err := wire.RegisterOf(card, features...)
	if err == nil && proto.Size(register) > maxMessageBytes {
		err = core.NewFault(core.CodeTooLarge, "the card has %d bytes, the hub accepts %d", proto.Size(register), maxMessageBytes)
	}
	if err != nil {
		_ = conn.Close(link.Reason{Cause: link.Normal}) // nothing was sent on it
		return err
	}
	w.link = link.New(conn, link.Options{})
	// The queue is empty: this neither blocks nor fails.
	_ = w.send(ctx, &pb.AgentMessage{Payload: &pb.AgentMessage_Register{Register: register}})

	// The contexts of handlers end only once nothing more is sent: what a handler then
	// returns must not look like an answer.
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	w.tasks = agent.Run(inner, card.MaxConcurrent, 2*card.MaxConcurrent+backlog, w.run)
	var heartbeats sync.WaitGroup
	heartbeats.Go(func() {
		w.sendHeartbeats(inner)
		reason := w.link.Reason()
		cancel(&reason)
	})
	disconnected := agent.LeaveOf(ctx).Connected(nil, func() { _ = w.link.Drain(inner) })
	reason := w.link.Run(ctx, w.receive, nil)
	disconnected()
	w.tasks.Close()
	heartbeats.Wait()
	return w.outcome(ctx, reason)
}

// worker is the agent's end of one connection.
type worker struct {
	card   core.Card
	handle core.Handler
	opts   WorkOptions

	link   *link.Link[*pb.ServerMessage, *pb.AgentMessage]
	tasks  *agent.Tasks[*job] // by request id
	active atomic.Bool        // something was sent since the last heartbeat interval

	// The reader loop owns these.
	joined   bool
	rejected *core.Fault

	leaving atomic.Bool // Shutdown was received

	mu    sync.Mutex
	calls map[string]chan *pb.PackToolResult // by request id
}

// send queues a message. It returns a too_large Fault for one that would end the stream,
// and the errors of [link.Link.Send].
func (w *worker) send(ctx context.Context, m *pb.AgentMessage) error {
	size := proto.Size(m)
	if size > maxMessageBytes {
		return core.NewFault(core.CodeTooLarge, "the message has %d bytes, the hub accepts %d", size, maxMessageBytes)
	}
	w.active.Store(true)
	return w.link.Send(ctx, m, size)
}

// sendHeartbeats sends a Heartbeat after every interval in which nothing else was sent,
// until the link is closed.
func (w *worker) sendHeartbeats(ctx context.Context) {
	ticker := time.NewTicker(HeartbeatInterval)
	defer ticker.Stop()
	for {
		select {
		case <-w.link.Done():
			return
		case now := <-ticker.C:
			if w.active.Swap(false) {
				continue
			}
			beat := &pb.Heartbeat{TimestampMs: now.UnixMilli()}
			// It fails only when the link is closed, which ends the loop.
			_ = w.send(ctx, &pb.AgentMessage{Payload: &pb.AgentMessage_Heartbeat{Heartbeat: beat}})
			w.active.Store(false)
		}
	}
}

// receive handles the hub's messages in order.
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
		return w.inject(ctx, p.InjectContext)
	case *pb.ServerMessage_ToolApproval:
		if w.opts.Decided != nil {
			w.opts.Decided(wire.DecisionOf(p.ToolApproval))
		}
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
	// A second Welcome, a late RegistrationError and unknown messages are ignored.
	return nil
}

// join handles the first message.
func (w *worker) join(m *pb.ServerMessage) error {
	switch p := m.GetPayload().(type) {
	case *pb.ServerMessage_Welcome:
		w.joined = true
		if w.opts.Joined != nil {
			w.opts.Joined(p.Welcome)
		}
		return nil
	case *pb.ServerMessage_RegistrationError:
		text := p.RegistrationError.GetReason()
		if free := p.RegistrationError.GetSuggestedId(); free != "" {
			text += ": choose another id, such as " + free + ", or wait until it has left"
		}
		w.rejected = core.NewFault(core.CodeConflict, "%s", text)
		return &link.Reason{Cause: link.Normal, Text: text}
	case *pb.ServerMessage_Shutdown:
		w.leave()
		return nil
	}
	return link.Because(link.Protocol, "the first message of the hub must be Welcome or RegistrationError")
}

// admit queues a request, or fails it when a hub does not keep to what the agent declared, or does not know that the
// agent leaves: Coven has no word for that.
func (w *worker) admit(ctx context.Context, m *pb.SendMessage) error {
	id := m.GetRequestId()
	if refused := w.tasks.Add(id, &job{worker: w, message: m}); refused != nil {
		return w.sendBody(ctx, id, core.Failed{Fault: refused}, false)
	}
	return nil
}

func (w *worker) inject(ctx context.Context, m *pb.InjectContext) error {
	in := wire.InjectionOf(m)
	answer := core.InjectionAnswered{ID: in.ID, Reason: "this agent takes no injections"}
	var pass func()
	if w.opts.Injected != nil {
		pass, answer.Reason = w.opts.Injected(in)
		answer.Accepted = pass != nil
	}
	err := w.send(ctx, &pb.AgentMessage{Payload: &pb.AgentMessage_InjectionAck{InjectionAck: wire.AckOf(answer)}})
	if err == nil && pass != nil { // after the answer, which is late once the agent has ended the request
		pass()
	}
	return err
}

// leave closes the connection once no request is left (specification, section Shutdown).
func (w *worker) leave() {
	w.leaving.Store(true)
	if w.tasks.Len() == 0 {
		w.link.Close(link.Reason{Cause: link.Normal, Text: "shutdown"})
	}
}

// outcome returns the result of Work.
func (w *worker) outcome(ctx context.Context, r link.Reason) error {
	switch {
	case w.rejected != nil:
		return w.rejected
	case w.leaving.Load():
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
