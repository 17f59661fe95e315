package editor

import (
	"context"
	"encoding/json"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// prompt is a session/prompt without an answer. It is the tag of its task. connection.mu
// guards it.
type prompt struct {
	id        json.RawMessage
	conv      *conversation
	task      core.TaskID                // "" until it is open
	cancelled bool                       // by the editor
	heard     wire.Offer                 // what the agent is set to for it, or has said since
	steering  map[string]json.RawMessage // requests to give it context, by the id of the injection
}

// prompt opens a task, whose end is the answer.
func (c *connection) prompt(_ context.Context, id json.RawMessage, params strictjson.Value) *jsonrpc.Error {
	r, fault := wire.Read[wire.PromptRequest](params)
	if fault != nil {
		return fault
	}
	p, session := &prompt{id: id}, core.ThreadID(r.SessionID)
	if conv := c.conversation(session); conv != nil && conv.forked() == "" {
		conv.begin(p)
		return c.ask(p, r, hub.Branch{}, params)
	}
	c.await(p, session)
	fault = c.queue(func(ctx context.Context) error {
		conv, branch, fault := c.reopen(ctx, session)
		if fault != nil {
			c.forget(p)
			return c.refuse(ctx, id, fault)
		}
		if conv.begin(p) {
			p.end()
			return c.answer(ctx, id, strictjson.Encode(wire.PromptResponse{StopReason: wire.StopCancelled}))
		}
		if fault := c.ask(p, r, branch, params); fault != nil {
			return c.refuse(ctx, id, fault)
		}
		return nil
	})
	if fault != nil {
		c.forget(p)
	}
	return fault
}

// queue gives a job to the pump.
func (c *connection) queue(j job) *jsonrpc.Error {
	if c.later(j) {
		return nil
	}
	return errorOf(core.NewFault(core.CodeOverloaded, "%d requests wait already: wait for an answer", mostJobs))
}

// reopen returns a session with the turns that it was forked with, as long as it has none of its own. It opens one of an
// earlier connection, of which this one has not been told.
func (c *connection) reopen(ctx context.Context, id core.ThreadID) (*conversation, hub.Branch, *jsonrpc.Error) {
	if conv := c.conversation(id); conv != nil {
		branch, err := c.branch(ctx, conv)
		if err != nil {
			return nil, branch, errorOf(err)
		}
		return conv, branch, nil
	}
	if here, err := c.exists(ctx, id); err != nil {
		return nil, hub.Branch{}, errorOf(err)
	} else if !here {
		return nil, hub.Branch{}, unknownSession(string(id))
	}
	conv, fault := c.show(id, place{})
	return conv, hub.Branch{}, fault
}

// branch returns the turns that a session was forked with, as long as it has none of its own.
func (c *connection) branch(ctx context.Context, conv *conversation) (hub.Branch, error) {
	from := conv.forked()
	if from == "" {
		return hub.Branch{}, nil
	}
	branch, err := c.hub.Branch(ctx, c.opts.Principal, from)
	if err != nil && core.AsFault(err).Code == core.CodeUnknownTask { // retention was faster: the session goes on without them
		c.log.Warn("a session was forked from what the hub no longer has", "session", conv.id, "task", from)
		conv.settle()
		return hub.Branch{}, nil
	}
	return branch, err
}

// await keeps a prompt whose session is not open yet, so that the editor can cancel it.
func (c *connection) await(p *prompt, session core.ThreadID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting[p] = session
}

// forget removes a prompt whose session was not opened.
func (c *connection) forget(p *prompt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, p)
}

// begin adds a prompt without a task, and reports whether the editor has cancelled it already.
func (conv *conversation) begin(p *prompt) (cancelled bool) {
	conv.c.mu.Lock()
	defer conv.c.mu.Unlock()
	delete(conv.c.waiting, p)
	p.conv, conv.open[p] = conv, struct{}{}
	return p.cancelled
}

// end removes a prompt, and reports whether the editor had cancelled it.
func (p *prompt) end() (cancelled bool) {
	c := p.conv.c
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(p.conv.open, p)
	return p.cancelled
}

// ask opens the task of a prompt.
func (c *connection) ask(p *prompt, r wire.PromptRequest, branch hub.Branch, params strictjson.Value) *jsonrpc.Error {
	req, err := requestOf(r.Prompt)
	if err != nil {
		p.end()
		return errorOf(err)
	}
	req.Intent, req.To, req.Thread = core.IntentAsk, c.opts.Agent, p.conv.id
	cancelled, err := c.openTask(p, req, branch, params)
	if err != nil {
		return errorOf(err)
	}
	if cancelled {
		c.cancelTasks([]core.TaskID{p.task})
	}
	return nil
}

// openTask opens the task of a prompt, and reports whether the editor has cancelled it already.
// The pump, which takes the lock, sends nothing of the task before.
func (c *connection) openTask(p *prompt, req core.Request, branch hub.Branch, params strictjson.Value) (cancelled bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	req.Foreign = c.foreignOf(p.conv, params)
	req.Options = p.conv.set
	p.heard = p.conv.offer.Clone()
	t, err := c.self.Open(req, hub.OpenOptions{Tag: p, Branch: branch, MinHops: wire.HopsOf(params), Trace: wire.TraceOf(params)})
	if err != nil {
		delete(p.conv.open, p)
		return false, err
	}
	p.task = t.ID()
	return p.cancelled, nil
}

// foreignOf returns what the request keeps of the prompt: where the editor works, for
// session/list, and for an agent of the same dialect the params as they are (promise P11). An
// agent of another dialect is not told where the editor works: it may be elsewhere, and most
// would read it as a part of what is asked. Callers hold connection.mu.
func (c *connection) foreignOf(conv *conversation, params strictjson.Value) *core.Foreign {
	where := strictjson.Encode(conv.place)
	if a, here := c.hub.Reach(c.opts.Principal, c.opts.Agent.Agent()); here && a.Dialect != Dialect {
		return &core.Foreign{Dialect: Dialect, JSON: where}
	}
	rest, _ := params.Without("sessionId")
	return &core.Foreign{Dialect: Dialect, JSON: wire.Restore(rest, where)}
}

// cancelSession cancels what the editor asked in a session.
func (c *connection) cancelSession(id core.ThreadID) {
	c.cancelPrompts(func(_ *prompt, session core.ThreadID) bool { return session == id })
}

// cancelRequest cancels the prompt with an id.
func (c *connection) cancelRequest(id json.RawMessage) {
	c.cancelPrompts(func(p *prompt, _ core.ThreadID) bool { return string(p.id) == string(id) })
}

// cancelPrompts cancels the prompts of sessions for which is holds. A prompt without a task is
// marked: it is cancelled when it would open one.
func (c *connection) cancelPrompts(is func(*prompt, core.ThreadID) bool) {
	var tasks []core.TaskID
	c.mu.Lock()
	for p, session := range c.waiting {
		p.cancelled = p.cancelled || is(p, session)
	}
	for _, conv := range c.conversations {
		for p := range conv.open {
			if is(p, conv.id) {
				p.cancelled = true
				tasks = append(tasks, p.task)
			}
		}
	}
	c.mu.Unlock()
	c.cancelTasks(tasks)
}

func (c *connection) cancelTasks(tasks []core.TaskID) {
	for _, id := range tasks {
		if id != "" {
			_ = c.self.Cancel(id, "cancelled in the editor") // it may have ended
		}
	}
}

// settle notes that the session has a turn of its own: the hub has those that it was forked with.
func (conv *conversation) settle() {
	conv.c.mu.Lock()
	defer conv.c.mu.Unlock()
	conv.fork = ""
}

// finish answers a prompt with the end of its task.
func (t *turn) finish(ctx context.Context, e core.Event) error {
	c, p := t.conv.c, t.prompt
	if p == nil {
		return nil
	}
	cancelled := p.end()
	p.endSteering(ctx)
	_, more, _ := wire.OfForeign(e.Foreign)
	theirs := strictjson.ParseValid(more)
	result := wire.PromptResponse{StopReason: wire.StopEndTurn, Usage: t.usageOf()}
	switch b := e.Body.(type) {
	case core.Failed:
		switch {
		case b.Fault.PeerCode == wire.StopRefusal:
			result.StopReason = wire.StopRefusal
		case !cancelled:
			return c.refuse(ctx, p.id, errorOf(b.Fault))
		default:
			result.StopReason = wire.StopCancelled
		}
	case core.Cancelled:
		result.StopReason = wire.StopCancelled
	case core.Done:
		t.conv.settle()
		if b.Truncated {
			result.StopReason = wire.StopMaxTokens
		}
		if given, is := theirs.Get("stopReason").Text(); is {
			result.StopReason = given
		}
	}
	if theirs.Get("usage").Exists() {
		result.Usage = nil
	}
	return c.answer(ctx, p.id, wire.Restore(strictjson.Encode(result), more))
}
