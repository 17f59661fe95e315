package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	parallaxwire "github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/proto/parallax/gateway"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

// gatewayName is the matrix's name for Parallax agents that use the gateway. They send everything
// at the end, and no tool events.
const gatewayName = "gateway"

// joinGateway connects an agent as the published ones do, and answers until the stream ends.
func joinGateway(ctx context.Context, to client.Hub, card core.Card, handle core.Handler) error {
	cc, err := grpcserver.Dial(ctx, to.GRPC, grpcserver.DialOptions{})
	if err != nil {
		return err
	}
	defer cc.Close()
	stream, err := gateway.NewAgentGatewayClient(cc).Connect(ctx)
	if err != nil {
		return err
	}
	a := &gatewayAgent{stream: stream, handle: handle, running: map[string]context.CancelCauseFunc{}}
	defer a.work.Wait()
	err = a.send("hello", &gateway.AgentToControlPlane{Payload: &gateway.AgentToControlPlane_Hello{Hello: &gateway.AgentHello{
		AgentId: string(card.ID), AgentName: card.Name, Capabilities: card.Capabilities, Metadata: map[string]string{"maxConcurrentTasks": strconv.Itoa(card.MaxConcurrent)},
	}}})
	if err != nil {
		return err
	}
	return a.run()
}

// gatewayAgent is an agent on a stream of the gateway.
type gatewayAgent struct {
	stream gateway.AgentGateway_ConnectClient
	handle core.Handler
	work   sync.WaitGroup

	mu      sync.Mutex // of sending, and of what runs by its task
	running map[string]context.CancelCauseFunc
}

func (a *gatewayAgent) send(request string, m *gateway.AgentToControlPlane) error {
	m.RequestId = request
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stream.Send(m)
}

// run receives messages until the stream ends.
func (a *gatewayAgent) run() error {
	ctx, leave := context.WithCancelCause(a.stream.Context())
	for {
		m, err := a.stream.Recv()
		if err != nil {
			leave(err)
			return err
		}
		if ack := m.GetAck(); ack != nil && !ack.Accepted {
			err = fmt.Errorf("refused: %s", ack.Message)
			leave(err)
			return err
		}
		if t := m.GetTaskRequest(); t != nil {
			ctx, stop := context.WithCancelCause(ctx)
			a.mu.Lock()
			a.running[t.TaskId] = stop
			a.mu.Unlock()
			a.work.Go(func() { a.answer(ctx, m.RequestId, t) })
		}
		if c := m.GetCancelTask(); c != nil {
			a.mu.Lock()
			if stop := a.running[c.TaskId]; stop != nil {
				stop(core.NewFault(core.CodeCancelled, "%s", c.Reason))
			}
			a.mu.Unlock()
		}
	}
}

// gatewayAnswer collects an answer until it is sent.
type gatewayAnswer struct {
	Content string          `json:"content"`
	Data    json.RawMessage `json:"data,omitempty"`
	Files   []gatewayFile   `json:"files,omitempty"`
	tokens  int64
}

type gatewayFile struct {
	Name      string `json:"name"`
	MediaType string `json:"mediaType"`
	Data      []byte `json:"data"`
}

// add adds an event. No message of the gateway can request an approval.
func (g *gatewayAnswer) add(body core.Body) error {
	switch b := body.(type) {
	case core.Text:
		g.Content += b.Text
	case core.Done:
		g.Data = b.Data
	case core.Usage:
		g.tokens += b.Total()
	case core.File:
		g.Files = append(g.Files, gatewayFile{b.Name, b.MediaType, b.Data})
	case core.ApprovalRequested:
		return core.NewFault(core.CodeUnsupported, "an agent of the gateway cannot ask leave")
	}
	return nil
}

// answer handles a task and sends its result.
func (a *gatewayAgent) answer(ctx context.Context, request string, t *gateway.TaskRequest) {
	var got gatewayAnswer
	var r core.Request
	input, err := t.Data.MarshalJSON()
	if err == nil {
		r, err = parallaxwire.Task{Input: input}.Request(time.Now())
	}
	if err == nil {
		r.Content = cmp.Or(r.Content, t.TaskDescription)
		err = a.handle(ctx, r, got.add)
	}
	a.mu.Lock()
	a.running[t.TaskId](nil)
	delete(a.running, t.TaskId)
	a.mu.Unlock()
	m := &gateway.AgentToControlPlane{}
	if err != nil {
		f := core.AsFault(err)
		m.Payload = &gateway.AgentToControlPlane_TaskError{TaskError: &gateway.TaskError{TaskId: t.TaskId, ErrorMessage: f.Message, ErrorCode: parallaxCodes[f.Code]}}
	} else {
		result := &gateway.TaskResult{TaskId: t.TaskId, Metadata: map[string]string{}}
		result.ValueJson = string(plainJSON(got.Content))
		if got.Data != nil || got.Files != nil {
			result.ValueJson = string(plainJSON(got))
		}
		if got.tokens > 0 {
			result.Metadata["tokensUsed"] = strconv.FormatInt(got.tokens, 10)
		}
		m.Payload = &gateway.AgentToControlPlane_TaskResult{TaskResult: result}
	}
	_ = a.send(request, m) // the stream may have ended
}
