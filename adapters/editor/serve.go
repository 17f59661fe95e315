package editor

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/link"
)

// Serve runs one connection of an editor until it ends, and returns why it ended. By then
// every goroutine of the connection has ended. When ctx ends, the connection closes as
// shutting down.
func Serve(ctx context.Context, h *hub.Hub, conn link.Conn[[]byte, []byte], opts Options) link.Reason {
	opts = opts.withDefaults()
	c := &connection{
		hub: h, opts: opts, log: opts.Log.With("agent", opts.Agent.String(), "principal", opts.Principal.ID),
		link: link.New(conn, opts.Link), wake: make(chan struct{}, 1),
		open: map[string]struct{}{}, conversations: map[core.ThreadID]*conversation{}, waiting: map[*prompt]core.ThreadID{}, asked: map[string]*asked{},
		lastID: uint64(rand.Uint32N(1 << 30)), //nolint:gosec // an id, not a secret
	}
	c.identity = hub.Identity{Principal: opts.Principal, Dialect: Dialect, Deadline: opts.Deadline, Keep: !opts.DropTasks, Checked: true, Frames: opts.Link.Frames, Trace: opts.Trace}
	c.self = h.Connect(c.identity)
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	var pump sync.WaitGroup
	pump.Go(func() { c.link.Close(c.pump(inner)) })
	reason := c.link.Run(ctx, c.receive, c.rejected)
	c.self.Close(reason.Fault())
	cancel()
	pump.Wait()
	return reason
}

// connection is the state of one editor. Two goroutines use it: the reader loop (receive and
// what it calls) and the pump.
type connection struct {
	hub      *hub.Hub
	self     *hub.Session
	identity hub.Identity
	link     *link.Link[[]byte, []byte]
	opts     Options
	log      *slog.Logger
	wake     chan struct{} // tells the pump that there are jobs

	// Owned by the reader loop.
	greeted, warned bool

	mu            sync.Mutex
	form          bool                // the editor has elicitation/create with forms
	notices       bool                // it shows notices of agents as such
	compaction    bool                // and how they make their context shorter
	booleans      bool                // its options may be booleans
	card          said                // by the agent of the connection
	open          map[string]struct{} // ids of its requests without an answer
	conversations map[core.ThreadID]*conversation
	waiting       map[*prompt]core.ThreadID // prompts whose session the pump has to open first
	asked         map[string]*asked         // requests to the editor without an answer, by their id
	lastID        uint64                    // of those
	jobs          []job                     // for the pump
}

// job is work of a request that may wait for the journal. It answers the request itself; its
// error closes the connection.
type job func(context.Context) error

// mostJobs is how many requests may wait for the pump.
const mostJobs = 64

// later gives the pump a job. It reports false if there are too many.
func (c *connection) later(j job) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.jobs) >= mostJobs {
		return false
	}
	c.jobs = append(c.jobs, j)
	fifo.Signal(c.wake)
	return true
}

// takeJob returns the next job, or nil.
func (c *connection) takeJob() job {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.jobs) == 0 {
		return nil
	}
	next := c.jobs[0]
	c.jobs = c.jobs[1:]
	return next
}

// pump sends the editor what happens on the hub until the session at the hub ends, and
// returns why.
func (c *connection) pump(ctx context.Context) link.Reason {
	for {
		b, err := c.self.NextOr(ctx, c.wake)
		if err == nil {
			c.link.Hold()
			err = c.self.Drain(b, func(b hub.Batch) error { return c.deliver(ctx, b) })
			c.link.Flush()
		}
		for j := c.takeJob(); err == nil && j != nil; j = c.takeJob() {
			err = j(ctx)
		}
		if err != nil {
			return c.reasonOf(ctx, err)
		}
	}
}

// deliver sends the editor one batch of the hub.
func (c *connection) deliver(ctx context.Context, b hub.Batch) error {
	if b.Question != nil {
		return c.showQuestion(ctx, b.Question)
	}
	if b.Task == nil {
		return nil // of what else there may be, the protocol has no words for any
	}
	t, of := c.turnOf(b)
	switch {
	case t == nil:
		return nil
	case b.Gap != nil:
		return t.gap(ctx)
	}
	return of.show(ctx, t, b.Events)
}

// closeUnauthenticated is the WebSocket close code for an editor whose token is no longer
// valid.
const closeUnauthenticated = 4401

// reasonOf returns the reason to close a connection whose pump ended with err.
func (c *connection) reasonOf(ctx context.Context, err error) link.Reason {
	var r *link.Reason
	var f *core.Fault
	switch {
	case errors.As(err, &r):
		return *r
	case ctx.Err() != nil:
		return link.Reason{Cause: link.ShuttingDown, Text: "shutting down", Err: err}
	case errors.As(err, &f) && f.Code == core.CodeUnauthenticated:
		return link.Reason{Cause: link.Unauthorized, Code: closeUnauthenticated, Text: f.Message}
	case errors.As(err, &f) && f.Code == core.CodeOverloaded:
		return *link.Because(link.Overloaded, "%s", f.Message)
	case errors.As(err, &f):
		return *link.Because(link.ShuttingDown, "%s", f.Message)
	}
	c.log.Error("the connection of an editor failed", "error", err)
	return link.Reason{Cause: link.Internal, Text: "internal error", Err: err}
}

func (c *connection) count(what string) { c.hub.Count(Dialect + "." + what) }

// send sends one message.
func (c *connection) send(ctx context.Context, frame []byte) error {
	return c.link.Send(ctx, frame, len(frame))
}

// answer sends the result of a request.
func (c *connection) answer(ctx context.Context, id, result json.RawMessage) error {
	c.closeID(id)
	return c.send(ctx, jsonrpc.AppendResult(nil, id, result))
}

// refuse sends the error of a request.
func (c *connection) refuse(ctx context.Context, id json.RawMessage, e *jsonrpc.Error) error {
	c.closeID(id)
	return c.send(ctx, jsonrpc.AppendError(nil, id, e))
}

func (c *connection) closeID(id json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, string(id))
}

// update sends session/update. One that is too large is replaced by a text that says so.
func (c *connection) update(ctx context.Context, kind core.Kind, task core.TaskID, frame []byte, session core.ThreadID) error {
	if len(frame) > c.opts.MaxMessageBytes {
		c.self.Refused()
		c.count("refused." + kind.String())
		frame = wire.AppendChunk(nil, string(session), wire.UpdateAgentThoughtChunk, tooLargeText(kind, len(frame), task), nil)
	}
	return c.send(ctx, frame)
}
