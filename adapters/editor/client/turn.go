package client

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// turn is one prompt: a task at the agent. The goroutine of Work owns what has no other owner.
type turn struct {
	agent.Turn
	conn    *connection
	session *session
	queue   *fifo.Mailbox[item]
	frames  *frame.Turn // nil keeps none

	tools     map[string]*tool // by id
	waiting   []*tool          // those that wait for their input, in order
	id        json.RawMessage  // of its prompt; nil before
	message   string           // the id of the message that the last chunk belongs to, as JSON
	thought   string           // the same of thoughts
	accepted  bool             // the agent has said something
	truncated bool             // something that it said was lost
	spoken    bool             // it has said a piece of text
	learned   bool             // the session knows more of the thread
	paragraph bool             // another message has begun, without text so far
	muted     error            // why the hub takes no more events; nil while it does

	halves, thoughtHalves strictjson.Halves // of the pieces of the answer, and of thoughts

	ask      asker
	steering []steering

	mu         sync.Mutex
	prompted   bool // the agent is going to get the prompt
	cancelling bool
	reason     string                 // why it is cancelled
	permits    map[string]*permission // open ones, by the id of the approval
}

// errCancelled is the cause of the context of a turn that is cancelled before its prompt.
var errCancelled = core.NewFault(core.CodeCancelled, "the task was cancelled before the agent had it")

// Work implements [agent.Agent]. A task whose agent is gone fails as unreachable.
func (a *Agent) Work(ctx context.Context, t agent.Turn) error {
	c := a.connection()
	if c == nil {
		return core.NewFault(core.CodeUnreachable, "the agent is not running")
	}
	r, s := t.Request(), a.sessions.forTask(t)
	defer func() {
		for _, old := range a.sessions.dropped() {
			c.drop(ctx, old)
		}
	}()
	frames := c.frames.Turn(t.Task(), r.History)
	turn := &turn{Turn: agent.Framed(t, frames), frames: frames, conn: c, session: s, queue: newQueue(), tools: map[string]*tool{}, permits: map[string]*permission{}}
	opening, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var hearing sync.WaitGroup
	hearing.Go(func() { turn.hear(opening, ctx, stop) })
	err := turn.work(opening, ctx, a.sessions, r)
	stop(nil)
	hearing.Wait()
	var gone *goneError
	switch {
	case errors.Is(err, errCancelled):
		return t.Report(core.Cancelled{Reason: turn.whyCancelled()}, nil)
	case errors.As(err, &gone):
		return agent.Lost(&gone.reason)
	}
	return err
}

// hear passes on what the hub tells the agent, until its first context ends.
func (t *turn) hear(ctx, work context.Context, stop context.CancelCauseFunc) {
	for {
		body, err := t.Next(ctx)
		if err != nil {
			return
		}
		if c, ok := body.(core.CancelRequested); ok {
			t.setReason(c.Reason)
			if !t.cancel(t.frames.Telling(work, core.KindCancelRequested)) {
				stop(errCancelled)
			}
		}
		t.queue.Put(item{told: body})
	}
}

// work opens the session, prompts and reports what follows. opening ends with the task, and when
// it is cancelled before the prompt.
func (t *turn) work(opening, ctx context.Context, store *sessions, r core.Request) error {
	s := t.session
	if err := s.acquire(opening); err != nil {
		return err
	}
	defer s.release()
	lost, err := s.open(opening, t.conn, store, r.Thread)
	if lost != "" {
		t.report(core.SessionLost{Reason: lost}, nil)
	}
	if err != nil {
		return err
	}
	if s.once {
		defer t.conn.drop(ctx, s)
	}
	if err := t.conn.setFor(opening, s, store, r.Options); err != nil {
		return err
	}
	t.report(core.SessionStarted{Session: s.id}, nil)
	earlier := s.known.Unseen(r.History)
	params, err := t.prompt(r.HandedWith(earlier), earlier)
	if err != nil {
		return err
	}
	aside, late := s.takeOutside()
	t.tellLost(late)
	for i := range aside {
		t.aside(&aside[i])
	}

	if !t.conn.begin(t) {
		return core.NewFault(core.CodeInvalid, "the agent gave the id %.80q of the session to another one: each session needs an id of its own", s.id)
	}
	// What opened the session is not shown: it has the credential for the tools of the hub.
	ctx = t.frames.Telling(ctx, 0)
	defer t.end(ctx)
	if err := t.start(opening, ctx, params); err != nil {
		return err
	}
	err = t.follow(ctx)
	if t.learned {
		store.keep(context.WithoutCancel(ctx), s)
	}
	return err
}

// start sends the prompt, unless the task is cancelled before there is room for it. A cancel that
// comes while it is sent follows it: an agent ignores one that comes before.
func (t *turn) start(opening, ctx context.Context, params []byte) error {
	if t.isCancelling() {
		return errCancelled
	}
	prompt := &call{prompt: t}
	t.session.prompted(prompt)
	id, err := t.conn.start(t.frames.Telling(opening, core.KindAssigned), prompt, wire.MethodSessionPrompt, params, t.Delivered)
	if err != nil {
		t.session.answered(prompt)
		return err
	}
	t.id = id
	t.mu.Lock()
	t.prompted = true
	cancelled := t.cancelling
	t.mu.Unlock()
	if cancelled {
		t.stop(t.frames.Telling(ctx, core.KindCancelRequested))
	}
	return nil
}

// follow reports what the agent says until it has answered the prompt.
func (t *turn) follow(ctx context.Context) error {
	for {
		it, err := t.queue.Take(ctx, ctx)
		if err != nil {
			return err
		}
		t.frames.Begin(it.frame)
		switch {
		case it.lost != nil:
			return it.lost
		case it.skipped != nil:
			t.skip(it.skipped)
		case it.told != nil:
			t.hearBody(ctx, it.told)
		case it.steered != nil:
			t.steered(*it.steered)
		case it.withdrawn != "":
			t.withdraw(ctx, it.withdrawn)
		case it.message == nil:
			t.update(&it.update)
		case it.message.Kind() == jsonrpc.Request:
			t.accept()
			t.request(ctx, *it.message)
		default:
			t.accept()
			if t.lingers(*it.message) {
				t.linger(ctx)
			}
			t.sayRest()
			return t.finish(*it.message)
		}
	}
}

// end takes the turn from its connection. If the prompt was not answered, the agent is told that
// nobody waits any more.
func (t *turn) end(ctx context.Context) {
	t.tellWaiting()
	t.unsteered()
	t.conn.finish(t)
	t.ask.stop()
	if t.session.isStuck() {
		t.giveUp()
		t.cancel(ctx)
	}
	for _, it := range t.queue.Close() {
		if it.message != nil && it.message.Kind() == jsonrpc.Request {
			_ = t.conn.answerCancelled(ctx, *it.message)
		}
	}
	t.cancelPermits(ctx)
}

// giveUp waits no longer for the answer to the prompt. The connection forgets the turn, which may
// be large, as the agent may never answer.
func (t *turn) giveUp() {
	given, s := &call{}, t.session // stands for the prompt, without the turn
	s.prompted(given)
	if !t.conn.giveUp(t.id, func(jsonrpc.Message) { s.answered(given) }) {
		s.prompted(nil)
	}
}

// report reports an event. Once the hub refuses one, because the task has ended there, the agent
// is cancelled and the rest is not reported.
func (t *turn) report(body core.Body, foreign *core.Foreign) {
	if t.muted != nil {
		t.conn.opts.Count("editor.late_event")
		return
	}
	if err := t.Report(body, foreign); err != nil {
		t.muted = err
		t.cancel(t.frames.Telling(context.Background(), 0))
	}
}

// accept reports once that the agent has the prompt: the protocol has no other word for it.
func (t *turn) accept() {
	if !t.accepted {
		t.accepted = true
		t.report(core.Accepted{}, nil)
	}
}

// cancel ends the turn at the agent. It reports false if there is no prompt yet.
func (t *turn) cancel(ctx context.Context) bool {
	t.mu.Lock()
	prompted, again := t.prompted, t.cancelling
	t.cancelling = true
	t.mu.Unlock()
	if prompted && !again {
		t.stop(ctx)
	}
	return prompted
}

// stop tells the agent to end the turn, and answers what it asks (prompt turn, "Cancellation").
func (t *turn) stop(ctx context.Context) {
	t.conn.notify(ctx, wire.MethodSessionCancel, wire.SessionRequest{SessionID: t.session.id})
	t.cancelPermits(ctx)
}

func (t *turn) isCancelling() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cancelling
}

func (t *turn) setReason(reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reason = reason
}

// whyCancelled returns the reason for the cancel, or that the agent gave up by itself.
func (t *turn) whyCancelled() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.cancelling {
		return "the agent cancelled the turn"
	}
	return t.reason
}

// hearBody does what the hub tells the agent.
func (t *turn) hearBody(ctx context.Context, body core.Body) {
	switch b := body.(type) {
	case core.ApprovalDecided:
		t.decide(ctx, b)
	case core.Injected:
		t.steer(ctx, b)
	case core.CancelRequested: // the agent knows; its open tool calls end here
		t.ask.stop()
		t.cancelTools()
	}
}

// begin makes a turn the one that updates of its session belong to. It fails if the id of the session
// belongs to another one meanwhile.
func (c *connection) begin(t *turn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sessions[t.session.id] != t.session {
		return false
	}
	c.turns[t.session.id] = t
	select {
	case <-c.gone:
		t.queue.Put(item{lost: c.lost()})
	default:
	}
	return true
}

func (c *connection) finish(t *turn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.turns[t.session.id] == t {
		delete(c.turns, t.session.id)
	}
}

// drop ends a session that is not used again.
func (c *connection) drop(ctx context.Context, s *session) {
	select {
	case s.slot <- struct{}{}:
		defer s.release()
	default:
		if !s.once {
			return // in use, and lost from sight: it ends with the connection
		}
	}
	if s.conn == c && c.has(s, s.id) {
		c.forget(s)
		c.endSession(ctx, s.id)
	}
}
