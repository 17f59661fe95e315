package client

import (
	"context"
	"encoding/json"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// jobKey is the key of the job in a handler's context.
type jobKey struct{}

func jobOf(ctx context.Context) (*job, error) {
	j, ok := ctx.Value(jobKey{}).(*job)
	if !ok {
		return nil, core.NewFault(core.CodeInvalid, "this context is not that of a Coven handler")
	}
	return j, nil
}

// CallTool calls one of the hub's tools, such as agent_ask, for the handler with this
// context and waits for the result. It returns the Fault of the tool, together with the
// output that an agent gave before it failed; the cause of ctx; or the reason for which the
// connection ended. Several calls may run at once.
func CallTool(ctx context.Context, name string, input json.RawMessage) (json.RawMessage, error) {
	j, err := jobOf(ctx)
	if err != nil {
		return nil, err
	}
	w, id := j.worker, core.NewID()
	answer := make(chan *pb.PackToolResult, 1)
	w.mu.Lock()
	w.calls[id] = answer
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		delete(w.calls, id)
		w.mu.Unlock()
	}()
	call := &pb.ExecutePackTool{RequestId: id, ToolName: wire.ValidUTF8(name), InputJson: wire.ValidUTF8(string(input))}
	if err := w.send(ctx, &pb.AgentMessage{Payload: &pb.AgentMessage_ExecutePackTool{ExecutePackTool: call}}); err != nil {
		return nil, err
	}
	select {
	case r := <-answer:
		switch r := r.GetResult().(type) {
		case *pb.PackToolResult_OutputJson:
			return json.RawMessage(r.OutputJson), nil
		case *pb.PackToolResult_Error:
			f, output := wire.ToolFailureOf(r.Error)
			return output, f
		}
		return nil, core.NewFault(core.CodeInternal, "the result of %s is empty", name)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-w.link.Done():
		reason := w.link.Reason()
		return nil, &reason
	}
}
