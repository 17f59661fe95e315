package client

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/question"
)

// Serve is [Work] with an [agent.Agent] in place of a handler: it gives work each task as a Turn. Nothing of a turn
// is lost on the way. Injected and Decided of the options are not used.
func Serve(ctx context.Context, conn link.Conn[[]byte, []byte], card core.Card, work func(context.Context, agent.Turn) error, opts WorkOptions) error {
	h := &host{work: work, turns: map[core.TaskID]*agent.Remote{}}
	opts.Decided = func(id core.TaskID, d core.ApprovalDecided) { h.tell(id, d) }
	opts.inject = func(id core.TaskID, in core.Injected) { h.tell(id, in) }
	return Work(ctx, conn, card, h.handle, opts)
}

// host gives tasks to an agent.
type host struct {
	work func(context.Context, agent.Turn) error

	mu    sync.Mutex
	turns map[core.TaskID]*agent.Remote
}

// tell tells an agent something about a task that it works on.
func (h *host) tell(id core.TaskID, b core.Body) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.turns[id]; t != nil {
		t.Tell(b)
	}
}

// handle is the [core.Handler] of the agent.
func (h *host) handle(ctx context.Context, r core.Request, _ func(core.Body) error) error {
	j := ctx.Value(jobKey{}).(*job) // of every handler
	c := j.worker.client
	t := agent.NewRemote(agent.RemoteTask{
		ID: j.id, Request: r, From: j.opened.From, Hops: j.opened.Hops, Trace: j.opened.Trace.Carried(), Say: j.report,
		Ask: func(ctx context.Context, q question.Question) (question.Outcome, error) {
			o, err := c.AskPeople(ctx, j.id, q)
			return o, refusal(err)
		},
		CallTool: c.CallTool,
	})
	h.mu.Lock()
	h.turns[j.id] = t
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		delete(h.turns, j.id)
		h.mu.Unlock()
	}()
	return t.Work(ctx, h.work)
}

// CallTool calls a tool of the hub or of a pack, and waits for its result. The error is the Fault of the tool,
// together with the output that an agent gave before it failed.
func (c *Client) CallTool(ctx context.Context, name string, input json.RawMessage) (json.RawMessage, error) {
	v, err := c.Call(ctx, core.CallTool{Tool: name, Input: input}, wire.With{})
	var r *wire.Refusal
	if errors.As(err, &r) {
		return r.Output, r.Fault
	}
	if err != nil {
		return nil, err
	}
	return v.Get("output").Clone(), nil
}
