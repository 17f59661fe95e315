package client

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/lru"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// connection is one connection to the agent, from its start to its end.
type connection struct {
	opts  Options
	link  *link.Link[[]byte, []byte]
	hi    wire.InitializeResponse // what the agent said of itself
	ids   atomic.Uint64
	noise *agent.Noise
	// frames has what belongs to turns; nil keeps none.
	frames *frame.Ring

	gone   chan struct{} // closed when nothing comes any more
	reason link.Reason   // why; read after gone

	mu       sync.Mutex
	calls    map[string]*call    // by id
	turns    map[string]*turn    // by session
	sessions map[string]*session // by their id
	asked    map[string]*turn    // the open requests of the agent, by their id
	// late has what is done with the answers of calls that were given up, by id.
	late *lru.Cache[string, func(jsonrpc.Message)]
}

// maxLate is how many calls are remembered that were given up: an agent may never answer them.
const maxLate = 1024

// call is a request of ours without an answer. The reader loop settles it.
type call struct {
	done chan jsonrpc.Message // has room for the answer
	// early is called by the reader loop, before it reads on; nil for none.
	early func(jsonrpc.Message)
	// prompt is the turn whose prompt it is; nil for another request.
	prompt *turn
}

func newConnection(conn link.Conn[[]byte, []byte], opts Options) *connection {
	ring := opts.Frames.Connect(wire.Dialect, nil)
	return &connection{
		opts: opts, link: link.New(conn, link.Options{Frames: ring}), frames: ring, gone: make(chan struct{}), noise: agent.NewNoise(opts.Log, opts.Count),
		calls: map[string]*call{}, turns: map[string]*turn{}, sessions: map[string]*session{}, asked: map[string]*turn{},
		late: lru.New(lru.Options[string, func(jsonrpc.Message)]{Count: maxLate}),
	}
}

// run reads until the connection ends, and then fails everything that waits for it.
func (c *connection) run(ctx context.Context) {
	c.reason = c.link.Run(ctx, c.receive, c.rejected)
	c.mu.Lock()
	close(c.gone)
	turns := make([]*turn, 0, len(c.turns))
	for _, t := range c.turns {
		turns = append(turns, t)
	}
	clear(c.calls)
	c.mu.Unlock()
	for _, t := range turns {
		t.queue.Put(item{lost: c.lost()})
	}
}

// goneError is the end of the connection as the error of a call.
type goneError struct{ reason link.Reason }

func (e *goneError) Error() string { return "the agent is gone: " + e.reason.Error() }

// Unwrap returns the Fault for operators.
func (e *goneError) Unwrap() error { return e.reason.Fault() }

func (c *connection) lost() error { return &goneError{c.reason} }

// receive handles one line of the agent. Only an error of the connection is returned: whatever
// the agent says wrong is counted and skipped.
func (c *connection) receive(ctx context.Context, line []byte) error {
	m, fault := jsonrpc.Read(line, strictjson.Limits{Bytes: max(len(line), 1)})
	if fault != nil {
		return c.malformed(ctx, line, m, fault)
	}
	switch m.Kind() {
	case jsonrpc.Notification:
		c.onNotification(ctx, m, len(line))
	case jsonrpc.Request:
		return c.onRequest(ctx, m, len(line))
	case jsonrpc.Response:
		c.onResponse(m)
	}
	return nil
}

// malformed skips a line that is no message. If it answers a request of ours, that fails; if it
// is a request, the agent is told what is wrong.
func (c *connection) malformed(ctx context.Context, line []byte, m jsonrpc.Message, fault *jsonrpc.Error) error {
	c.noise.Skip("editor.garbage", "a line of the agent is no message and was skipped", "problem", fault.Message, "line", agent.Excerpt(line))
	switch {
	case m.ID == nil:
		return nil
	case m.Whole.Get("method").Exists():
		return c.refuse(ctx, m.ID, fault)
	}
	c.onResponse(jsonrpc.Message{ID: m.ID, Err: jsonrpc.Errorf(jsonrpc.CodeInternalError, "the answer of the agent is not valid: %s", fault.Message)})
	return nil
}

func (c *connection) onNotification(ctx context.Context, m jsonrpc.Message, size int) {
	switch m.Method {
	case wire.MethodSessionUpdate:
		u, err := wire.ReadUpdate(m.Params)
		if err != nil {
			c.noise.Skip("editor.bad_update", "an update of the agent was skipped", "problem", err)
			return
		}
		c.onUpdate(ctx, u, size)
	case wire.MethodElicitationComplete:
		if p, fault := wire.Read[wire.ElicitationComplete](m.Params); fault == nil {
			c.everyTurn(func(t *turn) { t.elicited(p.ElicitationID) })
		}
	case wire.MethodCancelRequest:
		if p, fault := wire.Read[wire.CancelRequest](m.Params); fault == nil {
			if t := c.askedBy(p.RequestID); t != nil {
				t.queue.PutWithin(ctx, item{withdrawn: string(p.RequestID), frame: t.frames.Take(), size: size})
			}
		}
	default: // to be ignored (schema, "ExtNotification")
		c.opts.Count("editor.unknown_notification")
	}
}

// onUpdate hands an update to the turn of its session. It may wait for room in its queue, which
// slows the agent down.
func (c *connection) onUpdate(ctx context.Context, u wire.Update, size int) {
	c.mu.Lock()
	t, s := c.turns[string(u.SessionID)], c.sessions[string(u.SessionID)]
	c.mu.Unlock()
	if s != nil {
		c.changeOffer(s, func(o *wire.Offer) bool { return o.Hear(&u) })
	}
	switch {
	case t != nil:
		t.queue.PutWithin(ctx, item{update: u, frame: t.frames.Take(), size: size})
	case s == nil:
		c.noise.Skip("editor.unknown_session", "an update is for a session that the hub does not have", "session", string(u.SessionID), "kind", u.Kind)
	default:
		if !s.keep(u) {
			c.opts.Count("editor.update_outside_turn")
		}
	}
}

// onRequest answers a request of the agent, or hands it to the turn of its session.
func (c *connection) onRequest(ctx context.Context, m jsonrpc.Message, size int) error {
	switch m.Method {
	case wire.MethodSessionRequestPermission, wire.MethodElicitationCreate:
	case wire.MethodFSReadTextFile, wire.MethodFSWriteTextFile:
		return c.refuse(ctx, m.ID, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "%s: the hub has no editor's files: it declared fs false", m.Method))
	case wire.MethodTerminalCreate, wire.MethodTerminalOutput, wire.MethodTerminalWaitForExit, wire.MethodTerminalKill, wire.MethodTerminalRelease:
		return c.refuse(ctx, m.ID, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "%s: the hub has no terminals: it declared terminal false", m.Method))
	default:
		return c.refuse(ctx, m.ID, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "unknown method %.80q", m.Method))
	}
	session, _ := m.Params.Get("sessionId").Text()
	c.mu.Lock()
	t := c.turns[session]
	if of := c.calls[string(m.Params.Get("requestId").Raw())]; session == "" && of != nil {
		t = of.prompt // an elicitation that belongs to a request of ours
	}
	again := c.asked[string(m.ID)] != nil
	if t != nil && !again {
		c.asked[string(m.ID)] = t
	}
	c.mu.Unlock()
	switch {
	case again:
		return c.refuse(ctx, m.ID, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "id: a request with the id %s waits for its answer already", m.ID))
	case t == nil || !t.queue.PutWithin(ctx, item{message: &m, frame: t.frames.Take(), size: size}):
		c.opts.Count("editor.request_outside_turn")
		return c.answerCancelled(ctx, m)
	}
	return nil
}

// answerCancelled answers a permission request or an elicitation for which nobody can be asked.
func (c *connection) answerCancelled(ctx context.Context, m jsonrpc.Message) error {
	c.settled(m.ID)
	if m.Method == wire.MethodSessionRequestPermission {
		return c.answer(ctx, m.ID, wire.PermissionResponse{Outcome: wire.PermissionOutcome{Outcome: wire.OutcomeCancelled}})
	}
	return c.answer(ctx, m.ID, wire.ElicitationResponse{Action: wire.ElicitCancel})
}

func (c *connection) onResponse(m jsonrpc.Message) {
	c.mu.Lock()
	call := c.calls[string(m.ID)]
	delete(c.calls, string(m.ID))
	late, given := c.late.Remove(string(m.ID))
	c.mu.Unlock()
	switch {
	case given:
		late(m)
	case call == nil: // such as the second answer to a request
		c.noise.Skip("editor.unknown_response", "the agent answered a request that nobody waits for", "id", string(m.ID))
	case call.prompt != nil:
		call.prompt.session.answered(call)
		call.prompt.queue.Put(item{message: &m, frame: call.prompt.frames.Take()})
	default:
		if call.early != nil {
			call.early(m)
		}
		call.done <- m
	}
}

// giveUp forgets a call without an answer, but for what is done with a late one. It reports
// false if the answer has come.
func (c *connection) giveUp(id json.RawMessage, late func(jsonrpc.Message)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[string(id)] == nil {
		return false
	}
	delete(c.calls, string(id))
	c.late.Put(string(id), late)
	return true
}

// ignore does nothing with a late answer.
func ignore(jsonrpc.Message) {}

// call sends a request and waits for its answer. early is called with that before the next line is
// read, and late with an answer that comes after ctx has ended. The error is that of the agent, a
// *jsonrpc.Error, the cause of ctx, or a *goneError.
func (c *connection) call(ctx context.Context, method string, params any, early, late func(jsonrpc.Message)) (strictjson.Value, error) {
	call := &call{done: make(chan jsonrpc.Message, 1), early: early}
	id, err := c.start(ctx, call, method, strictjson.Encode(params), nil)
	if err != nil {
		return strictjson.Value{}, err
	}
	var m jsonrpc.Message
	select {
	case m = <-call.done:
	case <-c.gone:
		return strictjson.Value{}, c.lost()
	case <-ctx.Done():
		if c.giveUp(id, late) {
			c.notify(ctx, wire.MethodCancelRequest, wire.CancelRequest{RequestID: id})
			return strictjson.Value{}, context.Cause(ctx)
		}
		select {
		case m = <-call.done:
		case <-c.gone:
			return strictjson.Value{}, c.lost()
		}
	}
	if m.Err != nil {
		return strictjson.Value{}, m.Err
	}
	return m.Result, nil
}

// start sends a request, whose answer settles the call. sent, if it is not nil, is called when the
// connection has taken it.
func (c *connection) start(ctx context.Context, call *call, method string, params json.RawMessage, sent func()) (id json.RawMessage, err error) {
	id = strconv.AppendUint(nil, c.ids.Add(1), 10)
	c.mu.Lock()
	select {
	case <-c.gone:
		c.mu.Unlock()
		return nil, c.lost()
	default:
	}
	c.calls[string(id)] = call
	c.mu.Unlock()
	line := jsonrpc.AppendRequest(make([]byte, 0, len(params)+100), id, method, params)
	if err := c.link.SendThen(ctx, line, len(line), sent); err != nil {
		c.mu.Lock()
		delete(c.calls, string(id))
		c.mu.Unlock()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		<-c.gone // the link is closed
		return nil, c.lost()
	}
	return id, nil
}

// farewell is how long a message may wait for room that is sent although its task is over.
const farewell = time.Second

// notify sends a notification, also when ctx has ended. It is lost with the connection.
func (c *connection) notify(ctx context.Context, method string, params any) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	line := jsonrpc.AppendNotification(nil, method, strictjson.Encode(params))
	_ = c.link.Send(ctx, line, len(line))
}

// answer answers a request of the agent.
func (c *connection) answer(ctx context.Context, id json.RawMessage, result any) error {
	line := jsonrpc.AppendResult(nil, id, strictjson.Encode(result))
	return c.link.Send(ctx, line, len(line))
}

// refuse answers a request of the agent with an error.
func (c *connection) refuse(ctx context.Context, id json.RawMessage, fault *jsonrpc.Error) error {
	c.opts.Count("editor.refused")
	line := jsonrpc.AppendError(nil, id, fault)
	return c.link.Send(ctx, line, len(line))
}

// settled forgets a request of the agent that was answered.
func (c *connection) settled(id json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.asked, string(id))
}

// askedBy returns the turn to which the agent put a request, or nil.
func (c *connection) askedBy(id json.RawMessage) *turn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked[string(id)]
}

func (c *connection) everyTurn(f func(*turn)) {
	c.mu.Lock()
	turns := make([]*turn, 0, len(c.turns))
	for _, t := range c.turns {
		turns = append(turns, t)
	}
	c.mu.Unlock()
	for _, t := range turns {
		f(t)
	}
}
