package registry

import (
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

// The bounds of one agent: how many calls run at once, and how many messages of it wait
// to be read.
const (
	mostCalls = 64
	mostHeard = mostCalls + 2
)

// direct is a stream of the gateway that calls an agent which is a server itself.
type direct struct {
	agent confidence.ConfidenceAgentClient
	base  context.Context //nolint:containedctx // the calls live as long as the stream, not as what began it
	stop  context.CancelFunc

	heard chan *gateway.AgentToControlPlane // what the agent says
	work  chan job                          // for a caller that is free
	acked chan *gateway.ServerAck           // the answer to the hello
	group sync.WaitGroup                    // of callers

	mu      sync.Mutex
	callers int
	running map[string]context.CancelFunc // by task
}

// job is a message for a caller. life is that of the call for a task: it may be cancelled
// before there is a caller for it.
type job struct {
	message *gateway.ControlPlaneToAgent
	life    context.Context //nolint:containedctx // it is the life of the call, which ends with it
}

// newDirect makes a stream on which the hello has been said. It lives until its Close.
func newDirect(agent confidence.ConfidenceAgentClient, hello *gateway.AgentHello) *direct {
	d := &direct{
		agent: agent, heard: make(chan *gateway.AgentToControlPlane, mostHeard), work: make(chan job),
		acked: make(chan *gateway.ServerAck, 1), running: map[string]context.CancelFunc{},
	}
	d.base, d.stop = context.WithCancel(context.Background())
	d.heard <- &gateway.AgentToControlPlane{RequestId: "hello-" + hello.AgentId, Payload: &gateway.AgentToControlPlane_Hello{Hello: hello}}
	return d
}

// lives notes that the agent has given a sign of life. One that waits to be read says it
// as well.
func (d *direct) lives() {
	beat := &gateway.AgentToControlPlane{Payload: &gateway.AgentToControlPlane_Heartbeat{Heartbeat: &gateway.AgentHeartbeat{Status: "healthy"}}}
	select {
	case d.heard <- beat:
	default:
	}
}

// leave ends the stream as an agent does that leaves in good order.
func (d *direct) leave() { d.stop() }

// Receive implements [link.Conn].
func (d *direct) Receive(ctx context.Context) (*gateway.AgentToControlPlane, error) {
	select {
	case m := <-d.heard:
		return m, nil
	default:
	}
	select {
	case m := <-d.heard:
		return m, nil
	case <-d.base.Done():
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Send implements [link.Conn].
func (d *direct) Send(ctx context.Context, m *gateway.ControlPlaneToAgent) error {
	switch p := m.GetPayload().(type) {
	case *gateway.ControlPlaneToAgent_Ack:
		select {
		case d.acked <- p.Ack:
		default: // there is one
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
		life, cancel := context.WithCancel(d.base)
		d.mu.Lock()
		d.running[p.TaskRequest.GetTaskId()] = cancel
		d.mu.Unlock()
		err := d.hand(ctx, job{m, life})
		if err != nil {
			d.forget(p.TaskRequest)
		}
		return err
	case *gateway.ControlPlaneToAgent_Ping:
		return d.hand(ctx, job{message: m})
	}
	return nil // threads, of which the hub starts none
}

// hand gives a message to a caller: one that is free, else a new one, else the first
// that will be.
func (d *direct) hand(ctx context.Context, j job) error {
	select {
	case d.work <- j:
		return nil
	default:
	}
	d.mu.Lock()
	if d.base.Err() == nil && d.callers < mostCalls {
		d.callers++
		d.group.Go(d.call)
	}
	d.mu.Unlock()
	select {
	case d.work <- j:
		return nil
	case <-d.base.Done():
		return net.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// call makes one call after the other until the stream ends.
func (d *direct) call() {
	for {
		select {
		case <-d.base.Done():
			return
		case j := <-d.work:
			if t := j.message.GetTaskRequest(); t != nil {
				d.say(d.analyze(j.life, j.message.GetRequestId(), t))
				d.forget(t)
			} else if d.healthy() {
				d.lives()
			}
		}
	}
}

func (d *direct) say(m *gateway.AgentToControlPlane) {
	select {
	case d.heard <- m:
	case <-d.base.Done():
	}
}

// patience is how much longer than a task has a call may take: the end of its time is the
// hub's to tell.
const patience = time.Second

// forget ends the call for a task.
func (d *direct) forget(t *gateway.TaskRequest) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if cancel := d.running[t.GetTaskId()]; cancel != nil {
		cancel()
		delete(d.running, t.GetTaskId())
	}
}

// analyze has the agent answer a task.
func (d *direct) analyze(ctx context.Context, request string, t *gateway.TaskRequest) *gateway.AgentToControlPlane {
	if t.GetTimeoutMs() > 0 {
		var done context.CancelFunc
		ctx, done = context.WithTimeout(ctx, time.Duration(t.GetTimeoutMs())*time.Millisecond+patience)
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

// metadataOf is what a result says beside: what the agent is not sure of has no field of
// its own in an answer of the gateway.
func metadataOf(r *confidence.ConfidenceResult) map[string]string {
	if len(r.GetUncertainties()) == 0 {
		return r.GetMetadata()
	}
	all := maps.Clone(r.GetMetadata())
	if all == nil {
		all = map[string]string{}
	}
	if _, own := all["uncertainties"]; !own {
		list, _ := json.Marshal(r.GetUncertainties()) // texts always encode
		all["uncertainties"] = string(list)
	}
	return all
}

// probeTime bounds a question whether the agent is well.
const probeTime = 5 * time.Second

// healthy asks the agent whether it is there.
func (d *direct) healthy() bool {
	ctx, done := context.WithTimeout(d.base, probeTime)
	defer done()
	_, err := d.agent.HealthCheck(ctx, &emptypb.Empty{})
	return err == nil || status.Code(err) == codes.Unimplemented
}

// faults are the codes of a call that have another meaning than that the agent failed.
var faults = map[codes.Code]core.Code{
	codes.Unavailable: core.CodeUnreachable, codes.DeadlineExceeded: core.CodeTimeout, codes.Canceled: core.CodeCancelled,
	codes.ResourceExhausted: core.CodeOverloaded, codes.InvalidArgument: core.CodeInvalid, codes.Unimplemented: core.CodeUnsupported,
	codes.PermissionDenied: core.CodeNotAuthorized, codes.Unauthenticated: core.CodeNotAuthorized,
}

// faultOf says why a call came to nothing.
func faultOf(err error) *core.Fault {
	s := status.Convert(err)
	if code, known := faults[s.Code()]; known {
		return core.NewFault(code, "%s", s.Message())
	}
	return core.NewFault(core.CodeInternal, "%s", s.Message())
}

// Close implements [link.Conn]: it ends the calls. Those who make them are waited for by
// [direct.ended].
func (d *direct) Close(link.Reason) error {
	d.stop()
	return nil
}

// ended returns once nothing of the stream runs any more.
func (d *direct) ended() {
	d.stop()
	d.group.Wait()
}

var _ parallax.GatewayConn = (*direct)(nil)
