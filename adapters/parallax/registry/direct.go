package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/proto/parallax/confidence"
	"github.com/dragoman-hub/dragoman/proto/parallax/gateway"
)

// The bounds of one agent: its concurrent calls, and its messages that wait to be read.
const (
	maxCalls    = 64
	maxIncoming = maxCalls + 2
)

// directStream is a stream of the gateway for an agent that is a gRPC server itself
// (direct mode of Parallax): a task becomes a call of the agent, and its response an
// answer.
type directStream struct {
	agent confidence.ConfidenceAgentClient
	base  context.Context //nolint:containedctx // calls end with the stream, not with the call that began it
	stop  context.CancelFunc

	incoming chan *gateway.AgentToControlPlane // messages of the agent
	calls    chan call                         // for an idle caller
	acked    chan *gateway.ServerAck           // the answer to the hello
	group    sync.WaitGroup                    // of callers

	mu      sync.Mutex
	callers int
	running map[string]context.CancelFunc // by task
}

// call is a message for a caller. ctx is that of a task, which may be cancelled before
// there is a caller for it.
type call struct {
	message *gateway.ControlPlaneToAgent
	ctx     context.Context //nolint:containedctx // it ends with the call
}

// newDirectStream returns a stream on which the agent has sent hello. It lives until
// Close.
func newDirectStream(agent confidence.ConfidenceAgentClient, hello *gateway.AgentHello) *directStream {
	d := &directStream{
		agent: agent, incoming: make(chan *gateway.AgentToControlPlane, maxIncoming), calls: make(chan call),
		acked: make(chan *gateway.ServerAck, 1), running: map[string]context.CancelFunc{},
	}
	d.base, d.stop = context.WithCancel(context.Background())
	d.incoming <- &gateway.AgentToControlPlane{RequestId: "hello-" + hello.AgentId, Payload: &gateway.AgentToControlPlane_Hello{Hello: hello}}
	return d
}

// heartbeat adds a heartbeat of the agent, unless other messages wait, which show as well
// that it is alive.
func (d *directStream) heartbeat() {
	beat := &gateway.AgentToControlPlane{Payload: &gateway.AgentToControlPlane_Heartbeat{Heartbeat: &gateway.AgentHeartbeat{Status: "healthy"}}}
	select {
	case d.incoming <- beat:
	default:
	}
}

// Receive implements [link.Conn].
func (d *directStream) Receive(ctx context.Context) (*gateway.AgentToControlPlane, error) {
	select {
	case m := <-d.incoming:
		return m, nil
	default:
	}
	select {
	case m := <-d.incoming:
		return m, nil
	case <-d.base.Done():
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Send implements [link.Conn].
func (d *directStream) Send(ctx context.Context, m *gateway.ControlPlaneToAgent) error {
	switch p := m.GetPayload().(type) {
	case *gateway.ControlPlaneToAgent_Ack:
		select {
		case d.acked <- p.Ack:
		default: // the first counts
		}
		return nil
	case *gateway.ControlPlaneToAgent_CancelTask:
		d.mu.Lock()
		defer d.mu.Unlock()
		if cancel := d.running[p.CancelTask.GetTaskId()]; cancel != nil {
			cancel()
		}
		return nil
	case *gateway.ControlPlaneToAgent_TaskRequest:
		taskCtx, cancel := context.WithCancel(d.base)
		d.mu.Lock()
		d.running[p.TaskRequest.GetTaskId()] = cancel
		d.mu.Unlock()
		err := d.enqueue(ctx, call{m, taskCtx})
		if err != nil {
			d.endTask(p.TaskRequest)
		}
		return err
	case *gateway.ControlPlaneToAgent_Ping:
		return d.enqueue(ctx, call{message: m})
	}
	return nil // the hub starts no threads
}

// enqueue passes a call to an idle caller, else to a new one, else to the first that
// becomes idle.
func (d *directStream) enqueue(ctx context.Context, c call) error {
	select {
	case d.calls <- c:
		return nil
	default:
	}
	d.mu.Lock()
	if d.base.Err() == nil && d.callers < maxCalls {
		d.callers++
		d.group.Go(d.callAgent)
	}
	d.mu.Unlock()
	select {
	case d.calls <- c:
		return nil
	case <-d.base.Done():
		return net.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// callAgent makes calls until the stream ends.
func (d *directStream) callAgent() {
	for {
		select {
		case <-d.base.Done():
			return
		case c := <-d.calls:
			t := c.message.GetTaskRequest()
			if t == nil {
				if d.healthy() {
					d.heartbeat()
				}
				continue
			}
			select {
			case d.incoming <- d.analyze(c.ctx, c.message.GetRequestId(), t):
			case <-d.base.Done():
			}
			d.endTask(t)
		}
	}
}

// endTask cancels the call of a task.
func (d *directStream) endTask(t *gateway.TaskRequest) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if cancel := d.running[t.GetTaskId()]; cancel != nil {
		cancel()
		delete(d.running, t.GetTaskId())
	}
}

// callGrace is how much longer than the timeout of its task a call may take, so that the
// hub reports the timeout.
const callGrace = time.Second

// analyze calls the agent with a task, and returns its answer.
func (d *directStream) analyze(ctx context.Context, request string, t *gateway.TaskRequest) *gateway.AgentToControlPlane {
	if t.GetTimeoutMs() > 0 {
		var done context.CancelFunc
		ctx, done = context.WithTimeout(ctx, time.Duration(t.GetTimeoutMs())*time.Millisecond+callGrace)
		defer done()
	}
	r, err := d.agent.Analyze(ctx, &confidence.AgentRequest{
		TaskId: t.GetTaskId(), TaskDescription: t.GetTaskDescription(), Data: t.GetData(), Context: t.GetContext(),
		TimeoutMs: t.GetTimeoutMs(), PatternName: t.GetPatternName(),
	})
	m := &gateway.AgentToControlPlane{RequestId: request}
	if err != nil {
		f := faultOf(err)
		m.Payload = &gateway.AgentToControlPlane_TaskError{TaskError: &gateway.TaskError{
			TaskId: t.GetTaskId(), ErrorCode: wire.CodeOf(f), ErrorMessage: f.Message,
		}}
		return m
	}
	m.Payload = &gateway.AgentToControlPlane_TaskResult{TaskResult: &gateway.TaskResult{
		TaskId: t.GetTaskId(), ValueJson: r.GetValueJson(), Confidence: r.GetConfidence(), Reasoning: r.GetReasoning(), Metadata: metadataOf(r),
	}}
	return m
}

// metadataOf returns the metadata of a result, with its uncertainties, for which a result
// of the gateway has no field.
func metadataOf(r *confidence.ConfidenceResult) map[string]string {
	all := map[string]string{}
	if len(r.GetUncertainties()) > 0 {
		list, _ := json.Marshal(r.GetUncertainties()) // strings always encode
		all["uncertainties"] = string(list)
	}
	maps.Copy(all, r.GetMetadata())
	return all
}

// probeTimeout bounds a health check.
const probeTimeout = 5 * time.Second

func (d *directStream) healthy() bool {
	ctx, done := context.WithTimeout(d.base, probeTimeout)
	defer done()
	_, err := d.agent.HealthCheck(ctx, &emptypb.Empty{})
	return err == nil || status.Code(err) == codes.Unimplemented
}

// faultCodes maps gRPC codes to those of a Fault. The others mean that the agent failed.
var faultCodes = map[codes.Code]core.Code{
	codes.Unavailable: core.CodeUnreachable, codes.DeadlineExceeded: core.CodeTimeout, codes.Canceled: core.CodeCancelled,
	codes.ResourceExhausted: core.CodeOverloaded, codes.InvalidArgument: core.CodeInvalid, codes.Unimplemented: core.CodeUnsupported,
	codes.PermissionDenied: core.CodeNotAuthorized, codes.Unauthenticated: core.CodeNotAuthorized,
}

func faultOf(err error) *core.Fault {
	s := status.Convert(err)
	return core.NewFault(cmp.Or(faultCodes[s.Code()], core.CodeInternal), "%s", s.Message())
}

// Close implements [link.Conn]. It ends the calls; [directStream.wait] waits for them.
func (d *directStream) Close(link.Reason) error {
	d.stop()
	return nil
}

// wait ends the stream and returns once no call runs.
func (d *directStream) wait() {
	d.stop()
	d.group.Wait()
}

var _ parallax.GatewayConn = (*directStream)(nil)
