package client

import (
	"context"
	"encoding/json"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// rejected handles a line over the limit, of which only the ends are known. Nobody may wait for
// it forever, and no turn may end as if it had said everything.
func (c *connection) rejected(ctx context.Context, r *link.Reject) error {
	c.noise.Skip("editor.line_too_long", "a line of the agent is over the limit and was skipped", "size", r.Size, "limit", r.Limit)
	fault := jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "the message has %d bytes, the limit is %d: send less", r.Size, r.Limit)
	p := jsonrpc.Peek(r.Head, r.Tail)
	if p.Response && p.ID == nil {
		p.ID = c.onlyCall()
	}
	switch {
	case p.ID != nil && p.Response:
		c.onResponse(jsonrpc.Message{ID: p.ID, Err: jsonrpc.Errorf(jsonrpc.CodeInternalError, "its answer has %d bytes, the limit is %d", r.Size, r.Limit)})
		return nil
	case p.ID != nil:
		return c.refuse(ctx, p.ID, fault)
	case p.Method != "" && p.Method != wire.MethodSessionUpdate:
		return nil // a notification that no turn tells of
	}
	lost := item{skipped: r}
	session, known := p.Params["sessionId"]
	if !known { // it may be of any turn
		c.everyTurn(func(t *turn) { t.queue.PutWithin(ctx, lost) })
		return nil
	}
	c.mu.Lock()
	t := c.turns[session]
	c.mu.Unlock()
	if t != nil {
		t.queue.PutWithin(ctx, lost)
	}
	return nil
}

// onlyCall returns the id of the call that waits for an answer, if there is only one.
func (c *connection) onlyCall() json.RawMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.calls) != 1 {
		return nil
	}
	for id := range c.calls {
		return json.RawMessage(id)
	}
	return nil
}

// skip reports that a line of the turn was lost. What it had cannot be told, so that the turn
// does not end as one that was told whole.
func (t *turn) skip(r *link.Reject) {
	t.accept()
	t.truncated = true
	t.report(core.ForeignFrame{Dialect: wire.Dialect, Name: "line_too_long"}, &core.Foreign{Dialect: wire.Dialect, JSON: strictjson.Encode(struct {
		Lost  int `json:"lost_bytes"`
		Limit int `json:"limit_bytes"`
	}{r.Size, r.Limit})})
}
