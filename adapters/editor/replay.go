package editor

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/task"
)

// loadSession shows a thread from its beginning, before the answer; what runs there goes on
// after it.
func (c *connection) loadSession(_ context.Context, id json.RawMessage, params strictjson.Value) *jsonrpc.Error {
	return c.openSession(id, params, (*conversation).replay)
}

// resumeSession shows what happens in a thread from now on.
func (c *connection) resumeSession(_ context.Context, id json.RawMessage, params strictjson.Value) *jsonrpc.Error {
	return c.openSession(id, params, (*conversation).resume)
}

// openSession opens an existing session in the pump, and shows each of its tasks.
func (c *connection) openSession(id json.RawMessage, params strictjson.Value, show func(*conversation, context.Context, *task.Task) error) *jsonrpc.Error {
	p, fault := wire.Read[wire.OpenSessionRequest](params)
	if fault != nil {
		return fault
	}
	c.warnOfServers(p.MCPServers)
	return c.queue(func(ctx context.Context) error {
		thread := core.ThreadID(p.SessionID)
		here, err := c.exists(ctx, thread)
		if err != nil {
			return c.refuse(ctx, id, errorOf(err))
		}
		if !here {
			return c.refuse(ctx, id, unknownSession(p.SessionID))
		}
		// What is opened from now on comes by the session of the hub. A task that is shown here
		// too is not shown twice: a turn knows what was shown.
		conv, fault := c.show(thread, place{p.CWD, p.AdditionalDirectories})
		if fault != nil {
			return c.refuse(ctx, id, fault)
		}
		var failed error
		missing, err := c.hub.Thread(ctx, c.opts.Principal, thread, "", func(t *task.Task) bool {
			failed = show(conv, ctx, t)
			return failed == nil
		})
		switch {
		case failed != nil:
			return failed
		case err != nil:
			return c.refuse(ctx, id, errorOf(err))
		}
		if missing {
			c.count("gap")
			if err := c.send(ctx, wire.AppendChunk(nil, p.SessionID, wire.UpdateAgentThoughtChunk, "[what was said here before is no longer kept in full]\n", nil)); err != nil {
				return err
			}
		}
		return c.answer(ctx, id, strictjson.Encode(c.state(conv, "")))
	})
}

// replay shows the events of a task from the first one. Of a task of the editor's own open
// prompt it shows what was shown before: the rest comes by itself.
func (conv *conversation) replay(ctx context.Context, of *task.Task) error {
	events := of.Events()
	if conv.isAsking(of.ID()) {
		var shown core.Cursor
		if before := conv.turns[of.ID()]; before != nil {
			shown = before.shown
		}
		again := &turn{conv: conv, task: of, tools: map[string]struct{}{}, replayed: true}
		return conv.show(ctx, again, slices.DeleteFunc(slices.Clone(events), func(e core.Event) bool { return e.Cursor().Compare(shown) > 0 }))
	}
	conv.c.self.Unwatch(of) // what it would bring is shown here
	delete(conv.turns, of.ID())
	t := conv.turn(of)
	t.replayed = true
	if err := conv.show(ctx, t, events); err != nil {
		return err
	}
	if conv.turns[of.ID()] == nil {
		return nil // it has ended
	}
	t.replayed = false
	if err := t.askAgain(ctx); err != nil {
		return err
	}
	return conv.follow(of, t)
}

// isAsking reports whether an open prompt of the editor has the task.
func (conv *conversation) isAsking(id core.TaskID) bool {
	conv.c.mu.Lock()
	defer conv.c.mu.Unlock()
	for p := range conv.open {
		if p.task == id {
			return true
		}
	}
	return false
}

// resume shows a task that runs from now on.
func (conv *conversation) resume(ctx context.Context, of *task.Task) error {
	if of.State() == task.Ended || conv.turns[of.ID()] != nil || conv.isAsking(of.ID()) {
		return nil
	}
	events := of.Events()
	t := conv.turn(of)
	t.shown = events[len(events)-1].Cursor()
	for _, e := range events {
		switch b := e.Body.(type) {
		case core.ToolCall:
			t.tools[b.ID] = struct{}{}
		case core.Text:
			t.spoke = true
		}
	}
	if t.spoke {
		t.ctx = ctx
		if err := t.fold(core.KindText, "[an answer goes on here: load the session to see its beginning]"); err != nil {
			return err
		}
	}
	if err := t.askAgain(ctx); err != nil {
		return err
	}
	return conv.follow(of, t)
}

// follow continues a turn after what was shown of it.
func (conv *conversation) follow(of *task.Task, t *turn) error {
	return conv.c.self.Watch(of, t.shown, conv)
}

// askAgain asks the user for the decisions that a turn still waits for.
func (t *turn) askAgain(ctx context.Context) error {
	t.ctx = ctx
	pending := map[string]bool{}
	for _, a := range t.task.Approvals() {
		pending[a.ID] = true
	}
	for _, e := range t.task.Events() {
		if a, is := e.Body.(core.ApprovalRequested); is && pending[a.ID] && e.Cursor().Compare(t.shown) <= 0 {
			delete(pending, a.ID)
			if err := t.ApprovalRequested(e, a); err != nil {
				return err
			}
		}
	}
	return nil
}
