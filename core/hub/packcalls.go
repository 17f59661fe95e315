package hub

import (
	"encoding/json"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// Execution is one call of a tool, for the pack that provides it.
type Execution struct {
	// ID is what the pack answers to: see [Session.AnswerTool]. Nobody else knows it.
	ID string
	// Tool is its name, Input what it is called with: JSON that fits its schema.
	Tool  string
	Input json.RawMessage
	// Deadline is when the answer is not waited for any more.
	Deadline time.Time
	// From is who calls, and Agent which agent that is; "" for none.
	From  core.Principal
	Agent core.AgentID
}

// packCall is a call of a pack's tool until it is answered and the pack was told of
// it: what a pack does not take counts for as long as it is kept.
type packCall struct {
	Execution
	pack    *pack
	caller  *Session
	call    string // the caller's id of it
	timer   *time.Timer
	taken   bool // the pack was told
	settled bool // the caller was answered, or has gone
}

// callPack gives a call to the pack that provides the tool, or returns a Fault, and
// whose tool it is: unsupported when nobody's.
func (s *Session) callPack(call, name string, input json.RawMessage) (string, error) {
	ps := &s.hub.packs
	ps.mu.Lock()
	t := ps.tools[name]
	ps.mu.Unlock()
	if t == nil {
		return "", core.NewFault(core.CodeUnsupported, "tool not found: %s", name)
	}
	if err := t.CheckCaller(s.capabilities()); err != nil {
		return t.pack.id, err
	}
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	err := strictjson.Check(input, strictjson.Limits{})
	if err == nil && t.check != nil {
		err = t.check(input)
	}
	if err != nil {
		return t.pack.id, core.NewFault(core.CodeInvalid, "invalid input: %s", err)
	}
	e := Execution{
		ID: core.NewID(), Tool: name, Input: input, Deadline: time.Now().Add(t.Timeout),
		From: s.identity.Principal, Agent: s.agentID(),
	}
	return t.pack.id, ps.give(t, &packCall{Execution: e, pack: t.pack, caller: s, call: call})
}

// give queues a call for its pack.
func (ps *packs) give(t *packTool, c *packCall) error {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := c.pack
	switch {
	case ps.stopped != nil:
		return ps.stopped
	case ps.tools[t.Name] != t:
		return core.NewFault(core.CodeUnreachable, "tool %s has just left or changed: look at the list of tools", t.Name)
	case p.calls >= ps.limits.PackCalls:
		return core.NewFault(core.CodeOverloaded, "%d calls wait for pack %s: call again later", p.calls, p.id)
	case p.bytes+len(c.Input) > ps.limits.RequestBytes:
		return core.NewFault(core.CodeOverloaded, "the calls that wait for pack %s have %d bytes: call again later, or with less", p.id, p.bytes)
	}
	p.calls++
	p.bytes += len(c.Input)
	ps.calls[c.ID] = c
	c.timer = time.AfterFunc(t.Timeout, func() { ps.expire(c, t.Timeout) })
	p.session.inbox.pushExecution(&c.Execution)
	return nil
}

// take notes that the pack is told of an execution. It reports false for one that
// nobody waits for any more.
func (ps *packs) take(e *Execution) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	c := ps.calls[e.ID]
	if c == nil {
		return false
	}
	c.taken = true
	if c.settled {
		ps.free(c)
	}
	return !c.settled
}

// expire answers a call in place of a pack that did not in time.
func (ps *packs) expire(c *packCall, after time.Duration) {
	late := ps.late.add(c)
	ps.mu.Lock()
	missed := !c.settled
	if missed {
		ps.count("tool.timeout")
		ps.settle(c, nil, core.NewFault(core.CodeTimeout, "tool %s of pack %s did not answer within %s", c.Tool, c.pack.id, after))
	}
	ps.mu.Unlock()
	if !missed {
		ps.late.forget(c.ID)
		return
	}
	late.tell()
}

// settle answers the caller. Callers hold mu.
func (ps *packs) settle(c *packCall, output json.RawMessage, fault *core.Fault) {
	c.caller.inbox.pushTool(&tool.Result{Call: c.call, Pack: c.pack.id, Output: output, Fault: fault})
	ps.drop(c)
}

// drop stops waiting for an answer. Callers hold mu.
func (ps *packs) drop(c *packCall) {
	c.settled = true
	c.timer.Stop()
	if c.taken {
		ps.free(c)
	}
}

// free gives the place of a call back. Callers hold mu.
func (ps *packs) free(c *packCall) {
	c.pack.calls--
	c.pack.bytes -= len(c.Input)
	delete(ps.calls, c.ID)
}

// AnswerTool answers an execution that the session was given: with the output, which
// is JSON, or a Fault. It returns a conflict Fault when nobody waits for it, a
// not_authorized Fault when another session was given it, and an invalid Fault when
// the output is not JSON, which the caller is told too. An answer that comes too late
// may still be of use to an agent, as context.
func (s *Session) AnswerTool(id string, output json.RawMessage, fault *core.Fault) error {
	ps := &s.hub.packs
	bad := fault == nil && !json.Valid(output)
	if bad {
		fault = core.NewFault(core.CodeInvalid, "the output of the tool is not JSON")
	}
	if fault != nil {
		output = nil
	}
	if !bad && ps.late.answer(s, id, output, fault) {
		ps.count("tool.late.injected")
		return nil
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	c := ps.calls[id]
	switch {
	case c == nil || c.settled:
		ps.count("tool.late")
		return core.NewFault(core.CodeConflict, "nobody waits for execution %q: it was answered, took too long or never was", id)
	case c.pack.session != s:
		ps.count("tool.foreign")
		return core.NewFault(core.CodeNotAuthorized, "execution %q was given to another pack", id)
	}
	ps.settle(c, output, fault)
	if bad {
		return fault
	}
	return nil
}

// Provider returns the session that is to answer an execution, or nil when nobody
// waits for it: for dialects in which a pack answers beside its connection.
func (h *Hub) Provider(execution string) *Session {
	h.packs.mu.Lock()
	defer h.packs.mu.Unlock()
	if c := h.packs.calls[execution]; c != nil && !c.settled {
		return c.pack.session
	}
	return h.packs.late.provider(execution)
}
