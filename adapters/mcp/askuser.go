package mcp

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// returnGrace is how long after the last of its inputs has timed out a call still waits for its
// client to return.
const returnGrace = time.Minute

// inputResult asks the client to ask its user and to repeat the call.
type inputResult struct {
	head
	Requests map[string]wire.ElicitRequest `json:"inputRequests"`
	State    string                        `json:"requestState"`
}

// askUser finds out what the run waits for, and asks the user of the client if the client can
// do that: by a request on the stream, or in the result, which it then returns. Otherwise the
// people of the hub are waited for, and progress says so. After an error the client has gone.
func (c *exchange) askUser() (any, error) {
	r := c.run
	r.changed = false
	all := c.server.inputsOf(c.request, r.key, r.task)
	r.inputs = slices.DeleteFunc(all, func(in input) bool { return r.refused[in.key] })
	if len(all) > 0 {
		r.say(all[0].brief())
	}
	switch {
	case !c.request.elicits || c.request.tasks && !c.taskAt.IsZero():
		return nil, nil
	case !c.request.modern:
		return nil, c.elicit()
	case len(r.inputs) == 0:
		return nil, nil
	}
	until := lastUntil(r.inputs).Add(returnGrace)
	r.round++
	state := c.server.sealState(c.request, c.params, r.key, r.round, until)
	out := inputResult{c.server.head(c.request, wire.ResultInputRequired), requests(r.inputs, c.request.version), state}
	if !c.request.holder.park(r, until) { // after which the run is whose client returns first
		return nil, nil
	}
	return out, nil
}

// park keeps a run for a client that is to return before a time. It reports false if there are
// too many.
func (h *holder) park(r *run, until time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gone != nil || len(h.parked) >= h.limits.MaxTasks || h.parked[r.key] != nil {
		return false
	}
	h.parked[r.key] = r
	if r.task == nil { // nothing else bounds what its tool may still ask
		r.release = r.session.Consume(context.Background(), func(b hub.Batch, err error) bool {
			r.take(b)
			return err == nil && r.result == nil
		})
	}
	r.expiry = time.AfterFunc(time.Until(until), func() {
		if h.unpark(r.key) == r {
			r.cancel(core.NewFault(core.CodeTimeout, "the client did not return with an answer of its user"))
		}
	})
	return true
}

// unpark returns the run with the key that waits for its client, or nil.
func (h *holder) unpark(key string) *run {
	h.mu.Lock()
	r := h.parked[key]
	if r != nil {
		r.expiry.Stop()
		delete(h.parked, key)
	}
	h.mu.Unlock()
	if r != nil && r.release != nil {
		r.release()
		r.release = nil
	}
	return r
}

// resume continues a call that was answered with ResultInputRequired, with the answers of the user.
func (c *exchange) resume(ctx context.Context, before *sealed) (any, *jsonrpc.Error) {
	h, p := c.request.holder, c.request.principal()
	r := h.unpark(before.Run)
	if r == nil { // the answer comes a second time, or too late
		t, err := c.server.hub.Task(ctx, p, core.TaskID(before.Run))
		if err != nil {
			if h.isRunning(before.Run) {
				return nil, badParams("requestState: another request continues the call: wait for the answer to that")
			}
			return nil, badParams("requestState: the call that it belongs to is no longer known: call the tool again without it")
		}
		r = &run{session: h.session.ChildFor("", nil), tool: c.params.Name, holder: h, key: before.Run, task: t}
		if err := r.session.Watch(t, core.Cursor{}, nil); err != nil {
			r.close(nil)
			return c.server.failed(c.request, core.AsFault(err)), nil
		}
		r.inputs = c.server.inputsOf(c.request, r.key, t)
	}
	if r.refused == nil {
		r.refused = map[string]bool{}
	}
	if r.task == nil && before.Round != r.round {
		c.params.Responses = nil // they are for questions before, which may have the same names
	}
	bad := settleAll(ctx, h.session, r.taskID(), r.inputs, c.params.Responses, func(key string) { r.refused[key] = true })
	if bad != nil {
		if !r.owner || !h.park(r, before.until()) {
			r.cancel(core.NewFault(core.CodeCancelled, "the client sent an invalid answer of its user"))
		}
		return nil, bad
	}
	r.changed = true
	return c.serve(ctx, r)
}

// elicited is an input that the user of a client is asked for on the stream of a call. The lock of the holder
// guards its fields.
type elicited struct {
	session *hub.Session
	task    core.TaskID
	input   input
	id      string // of the latest request
	// misfit is why the answer to that did not fit, so that the user is to be asked again; "" else.
	misfit string
	tries  int    // how many answers did not fit
	wake   func() // wakes the goroutine of the call
}

// maxTries is how often the user of a client is asked on a stream for an answer that fits.
const maxTries = 3

// again has the user asked again. It reports false if that was often enough.
func (h *holder) again(e *elicited, why string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e.tries++; e.tries >= maxTries {
		return false
	}
	e.misfit = why
	e.wake()
	return true
}

// elicit sends the client requests for the inputs that it was not asked for yet, or that its user is to be
// asked for again, and withdraws those that are settled.
func (c *exchange) elicit() error {
	if !c.reply.accepts {
		return nil
	}
	h := c.request.holder
	for key, e := range c.elicited {
		if slices.ContainsFunc(c.run.inputs, func(in input) bool { return in.key == key }) {
			continue
		}
		delete(c.elicited, key)
		if !h.forget(e) {
			continue // the client has answered
		}
		if err := c.reply.stream(wire.Event(notification(wire.NoteCancelled, map[string]string{"requestId": e.id, "reason": "it was answered elsewhere, or is not needed any more"}))); err != nil {
			return err
		}
	}
	for _, in := range c.run.inputs {
		ask, id := c.ask(in)
		if id == "" {
			continue
		}
		if err := c.reply.stream(wire.Event(jsonrpc.AppendRequest(nil, strictjson.Encode(id), ask.Method, strictjson.Encode(ask.Params)))); err != nil {
			return err
		}
	}
	return nil
}

// ask returns the request for an input and its id, "" for one that the client has already.
func (c *exchange) ask(in input) (request wire.ElicitRequest, id string) {
	h := c.request.holder
	h.mu.Lock()
	defer h.mu.Unlock()
	e := c.elicited[in.key]
	switch {
	case e == nil:
		e = &elicited{session: h.session, task: c.run.taskID(), wake: c.wake}
		c.elicited[in.key] = e
	case e.misfit == "":
		return request, ""
	}
	in.misfit, e.misfit = e.misfit, ""
	e.input, e.id = in, rand.Text()
	h.asked[e.id] = e
	return in.request(c.request.version), e.id
}

// asksAgain reports whether the user of the client is to be asked again for an input.
func (c *exchange) asksAgain() bool {
	h := c.request.holder
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range c.elicited {
		if e.misfit != "" {
			return true
		}
	}
	return false
}

// forget forgets a request to a client. It reports whether the client has not answered it.
func (h *holder) forget(e *elicited) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	open := h.asked[e.id] == e
	delete(h.asked, e.id)
	return open
}

// forgetElicited forgets the requests to the client of a call that ends.
func (c *exchange) forgetElicited() {
	for _, e := range c.elicited {
		c.request.holder.forget(e)
	}
}

// answered takes the response of a client to a request of the server. Responses to requests
// that the server did not send, or that are settled, are ignored. For a result that does not fit the
// user is asked again. An error, and the last of [maxTries] such results, count as no answer: the people of the hub
// are left, or a call without a task is told that its question was dismissed.
func (h *holder) answered(m jsonrpc.Message) {
	var id string
	if strictjson.Decode(m.ID, strictjson.Limits{}, &id) != nil {
		return
	}
	h.mu.Lock()
	e := h.asked[id]
	delete(h.asked, id)
	h.mu.Unlock()
	if e == nil {
		return
	}
	f := core.AsFault(e.input.settle(hub.NoWait, e.session, e.task, m.Result))
	if m.Err == nil && doesNotFit(f) && h.again(e, strings.TrimPrefix(f.Message, e.input.label()+": ")) {
		return
	}
	if e.task == "" && f != nil { // nobody else is asked
		_, _ = e.session.AnswerQuestion(hub.NoWait, core.Reply{Question: e.input.key, Dismissed: true}) // it may be settled
	}
}
