package pack

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// Call is a call of a tool by a peer.
type Call struct {
	Caller Peer
	// ID is chosen by the caller, and returned with the result.
	ID string
	// Tool is the name of the tool, Input its input; none means an empty object.
	Tool  string
	Input json.RawMessage
	// From is the principal that calls, and Agent its agent id; "" if it is no agent.
	// Capabilities are those that the agent declared.
	From         core.Principal
	Agent        core.AgentID
	Capabilities []string
	// Tasks are those that the agent worked on when it called: the call belongs to one of them.
	Tasks []core.TaskID
	// Trace is the trace context that the caller brought; zero for none.
	Trace core.Trace
	// Keep lets the call continue when its caller leaves before the pack has taken it.
	Keep bool
	// Hops is how many tasks stand above what the pack asks while it executes the call, as far as the
	// caller knows (promise P10).
	Hops int
	// Extra is added to the timeout of the tool: the hub of the caller, which has a timer of its own,
	// is to be first.
	Extra time.Duration
	// Waiting is one higher as long as the call waits for an answer; nil if nobody reads it.
	Waiting *atomic.Int32
}

// Execution is a call of a tool as its pack sees it.
type Execution struct {
	// ID is what the pack answers to: see [Registry.Answer]. No other peer knows it.
	ID string
	// Tool is the name of the tool, Input its input: JSON that fits its schema.
	Tool  string
	Input json.RawMessage
	// Deadline is when the call times out.
	Deadline time.Time
	// From is the principal that calls, and Agent its agent id; "" if it is no agent.
	From  core.Principal
	Agent core.AgentID

	call *Call
}

// Call returns the call, for a Peer that passes it on to another hub.
func (e *Execution) Call() Call { return *e.call }

// pending is a call until it is answered and its pack has taken it. One that its pack does
// not take counts against the limits meanwhile.
type pending struct {
	Execution
	pack    *pack
	call    Call
	timer   *time.Timer
	taken   bool
	settled bool // the caller was answered, or has left
	told    bool // the pack was told that nobody waits
}

// timedOut is a call that was answered with a timeout, which the pack may still answer.
type timedOut struct {
	provider Peer
	pack     string
	call     string
	tool     string
	late     Late
}

// lateCalls is how many calls that timed out are remembered.
const lateCalls = 256

// Call gives a call to the pack that offers the tool. The result, or a refusal, goes to the
// caller: unsupported when there is no such tool, why its pack is absent, not_authorized when the caller lacks a
// capability, invalid when the input does not fit the schema, overloaded beyond the limits,
// and the reason of Stop.
func (r *Registry) Call(c Call) {
	if pack, err := r.give(c); err != nil {
		f := core.AsFault(err)
		r.opts.Count("refused.tool." + string(f.Code))
		c.Caller.Returned(&tool.Result{Call: c.ID, Pack: pack, Fault: f})
	}
}

// give passes a call to its pack. It returns the id of the pack, and an error if the call
// is refused.
func (r *Registry) give(c Call) (pack string, err error) {
	r.mu.Lock()
	t := r.tools[c.Tool]
	absent, a := r.absenceOf(c.Tool)
	r.mu.Unlock()
	switch {
	case t == nil && a.why != nil:
		return absent, a.why
	case t == nil:
		return "", core.NewFault(core.CodeUnsupported, "tool not found: %s", c.Tool)
	}
	if err := t.CheckCaller(c.Capabilities); err != nil {
		return t.pack.id, err
	}
	if len(c.Input) == 0 {
		c.Input = json.RawMessage("{}")
	}
	err = strictjson.Check(c.Input, strictjson.Limits{})
	if err == nil && t.check != nil {
		err = t.check(c.Input)
	}
	if err != nil {
		return t.pack.id, core.NewFault(core.CodeInvalid, "invalid input: %s", err)
	}
	e := Execution{
		ID: core.NewID(), Tool: c.Tool, Input: c.Input, Deadline: time.Now().Add(t.Timeout),
		From: c.From, Agent: c.Agent, call: &c,
	}
	return t.pack.id, r.enqueue(t, &pending{Execution: e, pack: t.pack, call: c})
}

// isOfferedAs reports whether a tool that a call was checked against is still offered: a pack that
// provides its tools again may offer the same.
func (t *provided) isOfferedAs(now *provided) bool {
	return now == t || now != nil && now.pack == t.pack && now.Timeout == t.Timeout &&
		bytes.Equal(now.InputSchema, t.InputSchema) && slices.Equal(now.Requires, t.Requires)
}

// enqueue adds a call to those that wait for its pack.
func (r *Registry) enqueue(t *provided, c *pending) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, limits := c.pack, r.opts.Limits
	switch {
	case r.stopped != nil:
		return r.stopped
	case !t.isOfferedAs(r.tools[t.Name]):
		return core.NewFault(core.CodeUnreachable, "tool %s was removed or changed: list the tools again", t.Name)
	case p.calls >= limits.Calls:
		return core.NewFault(core.CodeOverloaded, "%d calls wait for pack %s: call again later", p.calls, p.id)
	case p.bytes+len(c.Input) > limits.CallBytes:
		return core.NewFault(core.CodeOverloaded, "the calls that wait for pack %s have %d bytes: call again later, or with less", p.id, p.bytes)
	}
	p.calls++
	p.bytes += len(c.Input)
	r.calls[c.ID] = c
	c.count(1)
	c.taken = p.hub != "" // it is not known when that hub's pack takes it
	c.timer = time.AfterFunc(t.Timeout+c.call.Extra, func() { r.expire(c, t.Timeout) })
	p.peer.Execute(&c.Execution)
	return nil
}

// Take confirms that the pack starts an execution. It reports false for one that has timed
// out or whose caller has left, which the pack must not get.
func (r *Registry) Take(e *Execution) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.calls[e.ID]
	if c == nil {
		return false
	}
	c.taken = true
	if c.settled {
		r.free(c)
	}
	return !c.settled
}

// Expire ends the calls of a caller with an id, which has waited for long enough.
func (r *Registry) Expire(caller Peer, id string) {
	r.mu.Lock()
	var due *pending
	for _, c := range r.calls {
		if c.call.Caller == caller && c.call.ID == id && !c.settled {
			due = c
		}
	}
	r.mu.Unlock()
	if due != nil {
		r.expire(due, time.Until(due.Deadline))
	}
}

// expire ends a call that its pack did not answer in time.
func (r *Registry) expire(c *pending, after time.Duration) {
	late := c.call.Caller.Late(c.call)
	r.mu.Lock()
	if c.settled {
		r.mu.Unlock()
		return
	}
	r.opts.Count("tool.timeout")
	r.withdrawn(c)
	r.settle(c, tool.Result{Fault: core.NewFault(core.CodeTimeout, "tool %s of pack %s did not answer within %s", c.Tool, c.pack.id, after)})
	if late != nil {
		r.late.Put(c.ID, timedOut{provider: c.pack.peer, pack: c.pack.id, call: c.call.ID, tool: c.Tool, late: late})
	}
	r.mu.Unlock()
	if late != nil {
		late.TimedOut()
	}
}

// settle returns the result to the caller. Callers hold mu.
func (r *Registry) settle(c *pending, result tool.Result) {
	result.Call, result.Pack = c.call.ID, c.pack.id
	c.call.Caller.Returned(&result)
	r.drop(c)
}

// drop stops waiting for an answer. Callers hold mu.
func (r *Registry) drop(c *pending) {
	c.settled = true
	c.count(-1)
	c.timer.Stop()
	if c.taken {
		r.free(c)
	}
}

// free releases what a call counts against the limits. Callers hold mu.
func (r *Registry) free(c *pending) {
	c.pack.calls--
	c.pack.bytes -= len(c.Input)
	delete(r.calls, c.ID)
}

// count adds to Call.Waiting.
func (c *pending) count(n int32) {
	if c.call.Waiting != nil {
		c.call.Waiting.Add(n)
	}
}

// Waiting returns the calls of a caller that wait for an answer.
func (r *Registry) Waiting(caller Peer) []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	var calls []Call
	for _, c := range r.calls {
		if c.call.Caller == caller && !c.settled {
			calls = append(calls, c.call)
		}
	}
	return calls
}

// Withdraw answers the calls of a caller with these ids with the reason, and tells their
// packs.
func (r *Registry) Withdraw(caller Peer, ids []string, reason *core.Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.calls {
		if c.call.Caller != caller || c.settled || !slices.Contains(ids, c.call.ID) {
			continue
		}
		r.opts.Count("tool.withdrawn")
		r.withdrawn(c)
		r.settle(c, tool.Result{Fault: reason})
	}
}

// withdrawn tells the pack that has taken a call, once, that nobody waits for it. Callers hold
// mu.
func (r *Registry) withdrawn(c *pending) {
	if c.taken && !c.told {
		c.told = true
		c.pack.peer.Withdraw(c.ID)
	}
}

// Caller returns the call of an execution of the peer. It returns the errors of Answer for one
// that the peer cannot answer.
func (r *Registry) Caller(p Peer, execution string) (Call, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.calls[execution]
	switch {
	case c == nil || c.settled:
		return Call{}, nobodyWaits(execution)
	case c.pack.peer != p:
		return Call{}, r.notYours(execution)
	}
	return c.call, nil
}

func nobodyWaits(execution string) *core.Fault {
	return core.NewFault(core.CodeConflict, "no caller waits for execution %q: it was answered, timed out or is unknown", execution)
}

func (r *Registry) notYours(execution string) *core.Fault {
	r.opts.Count("tool.foreign")
	return core.NewFault(core.CodeNotAuthorized, "execution %q was given to another pack", execution)
}

// Answer answers an execution of the peer with a result, whose Call and Pack are those of the execution. It
// returns a conflict Fault when no caller waits for it, a not_authorized Fault when it belongs
// to another peer, and an invalid Fault when the output is not JSON, which the caller gets
// too. A late answer succeeds where it is still of use: see [Late].
func (r *Registry) Answer(p Peer, execution string, result tool.Result) error {
	bad := result.Fault == nil && !json.Valid(result.Output)
	if bad {
		result = tool.Result{Fault: core.NewFault(core.CodeInvalid, "the output of the tool is not JSON")}
	}
	if result.Fault != nil {
		result.Output = nil
	}
	r.mu.Lock()
	c := r.calls[execution]
	if c == nil || c.settled {
		late, remembered := r.late.Get(execution)
		if remembered = remembered && late.provider == p && !bad; remembered {
			r.late.Remove(execution)
		}
		r.mu.Unlock()
		result.Call, result.Pack = late.call, late.pack
		if remembered && late.late.Answer(late.tool, &result) {
			r.opts.Count("tool.late.injected")
			return nil
		}
		r.opts.Count("tool.late")
		return nobodyWaits(execution)
	}
	defer r.mu.Unlock()
	if c.pack.peer != p {
		return r.notYours(execution)
	}
	r.settle(c, result)
	if bad {
		return result.Fault
	}
	return nil
}

// Provider returns the peer that must answer an execution, or may do so late; nil when the
// execution is answered or unknown.
func (r *Registry) Provider(execution string) Peer {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.calls[execution]; c != nil && !c.settled {
		return c.pack.peer
	}
	if late, ok := r.late.Get(execution); ok {
		return late.provider
	}
	return nil
}
