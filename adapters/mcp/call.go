package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// callParams are the parameters of tools/call. The last two come with a repeated call, of which
// the first was answered with [wire.ResultInputRequired].
type callParams struct {
	Name      string                      `json:"name"`
	Arguments json.RawMessage             `json:"arguments"`
	Responses map[string]strictjson.Value `json:"inputResponses"`
	State     string                      `json:"requestState"`
}

// callTool calls a tool on behalf of the caller. A failure of the tool is a result, which the
// model reads, not a protocol error, which it may never see.
func (s *Server) callTool(q *request, a *reply) (any, *jsonrpc.Error) {
	var p callParams
	if bad := q.read(&p); bad != nil {
		return nil, bad
	}
	def, known := q.toolOf(p.Name)
	if !known {
		if why := q.holder.session.Missing(p.Name); why != nil {
			return s.failed(q, why), nil
		}
		s.hub.Count(Name + ".refused.unknown_tool")
		return nil, badParams("unknown tool %.100q: %s", p.Name, q.advice(p.Name))
	}
	if p.Arguments = bytes.TrimSpace(p.Arguments); len(p.Arguments) == 0 || string(p.Arguments) == "null" {
		p.Arguments = json.RawMessage("{}")
	}
	schema := s.inputs.of(def.InputSchema)
	if bad := schema.checkHeaders(q, p.Arguments); bad != nil {
		return nil, bad
	}
	c := &exchange{server: s, request: q, reply: a, params: p, elicited: map[string]*elicited{}}
	var before *sealed
	if p.State != "" {
		var bad *jsonrpc.Error
		if before, bad = s.unseal(q, p); bad != nil {
			return nil, bad
		}
	}
	if err := schema.check(p.Arguments); err != nil {
		return s.failed(q, core.NewFault(core.CodeInvalid, "invalid input for %s: %s", p.Name, err)), nil
	}
	ctx, end, refused := q.holder.begin(q.http.Context(), &call{session: q.session, id: q.ID})
	if refused != nil {
		return s.failed(q, refused), nil
	}
	defer end()
	late := core.NewFault(core.CodeTimeout, "%s took longer than %s and was stopped: use agent_delegate and agent_result for long work", p.Name, s.opts.CallTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.CallTimeout, late)
	defer cancel()
	if before != nil {
		return c.resume(ctx, before)
	}
	return c.serve(ctx, s.start(q, p, a.accepts))
}

// failed is the result of a tool that failed.
func (s *Server) failed(q *request, f *core.Fault) callResult {
	return s.resultOf(q, &outcome{fault: f})
}

// exchange is a call of a tool while its client waits for the answer. One goroutine uses it.
type exchange struct {
	server   *Server
	request  *request
	reply    *reply
	params   callParams
	run      *run
	progress *progress // nil if the client wants none
	// elicited are the inputs that were asked for on the stream, by their keys.
	elicited map[string]*elicited
	wake     func() // wakes the goroutine
	// taskAt is when the client gets a task, keepAlive when a comment in the stream is due;
	// zero for never.
	taskAt, keepAlive time.Time
}

// serve waits for the result of a run and returns what the client is to get: the result, a
// request for input or a task.
func (c *exchange) serve(ctx context.Context, r *run) (any, *jsonrpc.Error) {
	c.run = r
	began := time.Now()
	opts := c.server.opts
	if c.reply.accepts {
		c.keepAlive = began.Add(opts.StreamAfter)
		if c.request.progress != nil {
			c.progress = &progress{token: c.request.progress, tool: c.params.Name, began: began, silence: opts.KeepAlive - opts.KeepAlive/3}
		}
	}
	if r.task != nil && c.request.tasks {
		c.taskAt = began.Add(opts.TaskAfter)
	}
	tick := make(chan struct{}, 1)
	c.wake = func() {
		select {
		case tick <- struct{}{}:
		default:
		}
	}
	timer := time.AfterFunc(time.Hour, c.wake)
	defer timer.Stop()
	defer c.forgetElicited()
	for r.result == nil {
		switch out, err := c.tell(ctx); {
		case err != nil:
			r.cancel(core.NewFault(core.CodeCancelled, "the client closed the connection"))
			return nil, nil // nobody reads it
		case out != nil:
			return out, nil
		}
		timer.Reset(time.Until(c.due()))
		b, err := r.session.NextOr(ctx, tick)
		if err != nil {
			why := core.AsFault(err)
			r.cancel(why)
			return c.server.failed(c.request, why), nil
		}
		r.take(b)
	}
	if c.progress.lacks(r) {
		_ = c.reply.stream(wire.Event(c.progress.next(r, time.Now()))) // a client that has gone misses the result, too
	}
	if frames := frame.RingOf(c.request.http.Context()); frames != nil && r.task != nil && r.task.HasEnded() {
		frames.Tell(r.task.ID(), r.task.Answer().End)
	}
	r.close(nil)
	return c.server.answerWith(c.request, r.result), nil
}

// due returns when something has to be sent although nothing happens.
func (c *exchange) due() time.Time {
	at := c.keepAlive
	for _, other := range []time.Time{c.progress.due(c.run), c.taskAt} {
		if at.IsZero() || !other.IsZero() && other.Before(at) {
			at = other
		}
	}
	if at.IsZero() {
		return time.Now().Add(time.Hour)
	}
	return at
}

// tell sends the client what is due, or returns what it gets instead of the result. After an
// error the client has gone.
func (c *exchange) tell(ctx context.Context) (any, error) {
	now := time.Now()
	if c.run.changed || c.asksAgain() {
		if out, err := c.askUser(); out != nil || err != nil {
			return out, err
		}
	}
	if !c.taskAt.IsZero() && (!now.Before(c.taskAt) || len(c.run.inputs) > 0 && c.request.elicits) {
		if out := c.handOver(ctx); out != nil {
			return out, nil
		}
		c.taskAt = time.Now().Add(c.server.opts.TaskAfter) // the journal is slow
	}
	switch {
	case c.progress.isDue(c.run, now):
		if err := c.reply.stream(wire.Event(c.progress.next(c.run, now))); err != nil {
			return nil, err
		}
		c.keepAlive = now.Add(c.server.opts.KeepAlive)
	case !c.keepAlive.IsZero() && !now.Before(c.keepAlive):
		if err := c.reply.stream([]byte(wire.Comment)); err != nil {
			return nil, err
		}
		c.keepAlive = now.Add(c.server.opts.KeepAlive)
	}
	return nil, nil
}
