package editor

import (
	"context"
	"encoding/json"
	"maps"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/task"
)

// conversation is a session of the editor: a thread that this connection shows.
type conversation struct {
	c     *connection
	id    core.ThreadID
	place place                 // where the editor works; guarded by connection.mu
	open  map[*prompt]struct{}  // its prompts without an end; guarded by connection.mu
	turns map[core.TaskID]*turn // what is being shown; the pump's own
	fork  core.TaskID           // the last task of the session that it was forked from, until a turn is done; guarded by connection.mu
	chosen
}

// place is the working directory of a session, and further ones.
type place struct {
	CWD                   string   `json:"cwd"`
	AdditionalDirectories []string `json:"additionalDirectories,omitempty"`
}

// sessionPrefix begins the ids of sessions that editors begin, so that one is recognised after
// a restart of the hub, even if nothing was said in it.
const sessionPrefix = "editor-"

// mostConversations is how many sessions a connection may have open.
const mostConversations = 1024

// newSession begins a session.
func (c *connection) newSession(ctx context.Context, id json.RawMessage, params strictjson.Value) *jsonrpc.Error {
	p, fault := wire.Read[wire.NewSessionRequest](params)
	if fault != nil {
		return fault
	}
	c.warnOfServers(p.MCPServers)
	conv, fault := c.show(core.ThreadID(sessionPrefix+core.NewID()), place{p.CWD, p.AdditionalDirectories})
	if fault != nil {
		return fault
	}
	c.reply(ctx, id, c.state(conv, string(conv.id)))
	return nil
}

// forkSession begins a session that knows what was said in another one so far.
func (c *connection) forkSession(_ context.Context, id json.RawMessage, params strictjson.Value) *jsonrpc.Error {
	p, fault := wire.Read[wire.OpenSessionRequest](params)
	if fault != nil {
		return fault
	}
	c.warnOfServers(p.MCPServers)
	return c.queue(func(ctx context.Context) error {
		from := core.ThreadID(p.SessionID)
		here, err := c.exists(ctx, from)
		if err == nil && !here {
			return c.refuse(ctx, id, unknownSession(p.SessionID))
		}
		if err != nil {
			return c.refuse(ctx, id, errorOf(err))
		}
		fork, err := c.lastOf(ctx, from)
		if err != nil {
			return c.refuse(ctx, id, errorOf(err))
		}
		conv, fault := c.show(core.ThreadID(sessionPrefix+core.NewID()), place{p.CWD, p.AdditionalDirectories})
		if fault != nil {
			return c.refuse(ctx, id, fault)
		}
		c.mu.Lock()
		conv.fork = fork
		if old := c.conversations[from]; old != nil {
			conv.chosen = chosen{old.offer.Clone(), maps.Clone(old.set)}
		}
		c.mu.Unlock()
		return c.answer(ctx, id, strictjson.Encode(c.state(conv, string(conv.id))))
	})
}

// show makes the connection show a thread: what others ask there, and the questions of its
// agents.
func (c *connection) show(id core.ThreadID, at place) (*conversation, *jsonrpc.Error) {
	c.mu.Lock()
	conv := c.conversations[id]
	switch {
	case conv != nil:
		conv.place = at
	case len(c.conversations) >= mostConversations:
		c.mu.Unlock()
		return nil, errorOf(core.NewFault(core.CodeOverloaded, "the connection has %d sessions: close one with session/close", mostConversations))
	default:
		conv = &conversation{c: c, id: id, place: at, open: map[*prompt]struct{}{}, turns: map[core.TaskID]*turn{}}
		c.conversations[id] = conv
	}
	c.mu.Unlock()
	if err := c.self.Follow(id, conv); err != nil {
		return nil, errorOf(err)
	}
	if err := c.self.WatchQuestions(question.View{Tag: conv, Thread: id, Agent: c.opts.Agent.Agent(), For: c.opts.Principal}); err != nil {
		return nil, errorOf(err)
	}
	return conv, nil
}

// conversation returns a session that is open on the connection, or nil.
func (c *connection) conversation(id core.ThreadID) *conversation {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conversations[id]
}

// isOpen reports whether a session is still open.
func (c *connection) isOpen(conv *conversation) bool { return c.conversation(conv.id) == conv }

// closeSession cancels what runs in a session and shows it no longer.
func (c *connection) closeSession(ctx context.Context, id json.RawMessage, params strictjson.Value) *jsonrpc.Error {
	p, fault := wire.Read[wire.SessionRequest](params)
	if fault != nil {
		return fault
	}
	conv := c.conversation(core.ThreadID(p.SessionID))
	if conv == nil {
		return unknownSession(p.SessionID)
	}
	c.cancelSession(conv.id)
	c.self.Unfollow(conv.id)
	c.self.UnwatchQuestions(conv)
	c.mu.Lock()
	delete(c.conversations, conv.id)
	c.mu.Unlock()
	c.reply(ctx, id, struct{}{})
	return nil
}

func unknownSession(id string) *jsonrpc.Error {
	return jsonrpc.Errorf(wire.CodeResourceNotFound, "there is no session %.80q: begin one with session/new, or load one that session/list names", id)
}

// exists reports whether a session can be opened by its id: an editor began it, or there are
// turns in the thread that the principal may read. It may wait for the journal.
func (c *connection) exists(ctx context.Context, id core.ThreadID) (bool, error) {
	if strings.HasPrefix(string(id), sessionPrefix) && len(id) == len(sessionPrefix)+len(core.NewID()) {
		return true, nil
	}
	if len(id) > core.MaxIDBytes {
		return false, nil
	}
	turns, err := c.hub.LatestTurns(ctx, c.opts.Principal, id, 1)
	return len(turns) > 0, err
}

// lastOf returns the last task of a session that has ended, or of a session that is a fork without a turn, the one that it
// was forked from; "" if there is none.
func (c *connection) lastOf(ctx context.Context, id core.ThreadID) (core.TaskID, error) {
	if turns := c.hub.Turns(ctx, c.opts.Principal, id); len(turns) > 0 {
		return turns[len(turns)-1].Task, nil
	}
	tasks, err := c.hub.LatestTurns(ctx, c.opts.Principal, id, 1) // the hub may have forgotten the turns
	if len(tasks) > 0 && tasks[0].State() == task.Ended {
		return tasks[0].ID(), err
	}
	if conv := c.conversation(id); conv != nil {
		return conv.forked(), err
	}
	return "", err
}

// forked returns the task from which the next prompt branches; "" for none.
func (conv *conversation) forked() core.TaskID {
	conv.c.mu.Lock()
	defer conv.c.mu.Unlock()
	return conv.fork
}

// turnOf returns the turn that a batch belongs to, and its session. The turn is nil if the
// session has been closed, or if the batch belongs to a task that was refused.
func (c *connection) turnOf(b hub.Batch) (*turn, *conversation) {
	switch tag := b.Tag.(type) {
	case *prompt: // the lock waits for an open that is under way
		c.mu.Lock()
		_, open := tag.conv.open[tag]
		c.mu.Unlock()
		if !open {
			return nil, nil
		}
		t := tag.conv.turn(b.Task)
		t.prompt = tag
		return t, tag.conv
	case *conversation:
		if !c.isOpen(tag) {
			return nil, nil
		}
		return tag.turn(b.Task), tag
	}
	return nil, nil
}
