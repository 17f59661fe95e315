package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/lru"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// maxSessions is how many threads keep a session. A thread whose session was dropped begins
// another, with its history.
const maxSessions = 1024

// sessions are the sessions of the threads, for each requester its own. They outlive connections.
type sessions struct {
	opts Options
	log  core.RecordLog // nil keeps nothing

	mu     sync.Mutex
	loaded bool
	all    *lru.Cache[agent.Conversation, *session]
	idle   []*session // dropped, to be closed
	// offer is what a new session can be set to and is, as JSON; nil if nobody knows.
	offer json.RawMessage
}

// session is a session of the agent.
type session struct {
	of agent.Conversation
	// once is set if it serves a single task, which was asked outside a thread.
	once bool
	// slot is held by the task that uses the session: prompts take turns.
	slot chan struct{}

	// Owned by the holder of the slot.
	id    string
	conn  *connection // on which it is open
	known agent.Known // the turns of the thread that it knows
	cost  cost
	// over is why the next turn needs another session; "" for nothing.
	over string

	mu sync.Mutex
	// stuck is the prompt that is not answered yet; nil if there is none.
	stuck   *call
	outside outside
	choices
}

// record is a session in the log, which agents share. The last one of a thread and its
// requester counts.
type record struct {
	Agent core.AgentID `json:"agent,omitempty"`
	agent.Conversation
	Session string `json:"session"`
	// Seen and Known are the turns that it knows: see [agent.Known].
	Seen  core.TaskID   `json:"seen,omitempty"`
	Known []core.TaskID `json:"known,omitempty"`
	// Before has what tasks have changed, as it was.
	Before core.Options `json:"before,omitempty"`
	// Offer is what new sessions can be set to, in a record of no thread.
	Offer json.RawMessage `json:"offer,omitempty"`
}

func newSessions(opts Options) *sessions {
	s := &sessions{opts: opts, log: opts.Sessions}
	s.all = lru.New(lru.Options[agent.Conversation, *session]{Count: maxSessions, Evicted: func(_ agent.Conversation, old *session) { s.idle = append(s.idle, old) }})
	return s
}

func newSession(of agent.Conversation) *session {
	return &session{of: of, slot: make(chan struct{}, 1)}
}

// load reads the sessions of an earlier run of the hub, once. It may be tried again after an
// error, which changes nothing.
func (s *sessions) load(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.log == nil || s.loaded {
		return nil
	}
	all := lru.New(lru.Options[agent.Conversation, *session]{Count: maxSessions})
	err := s.log.Replay(ctx, func(_ time.Time, text []byte) bool {
		var r record
		if strictjson.Decode(text, strictjson.Limits{}, &r) != nil || r.Agent != s.opts.Agent {
			return true
		}
		if r.Thread == "" && len(r.Offer) > 0 {
			s.offer = bytes.Clone(r.Offer)
		}
		if r.Thread != "" && r.Session != "" {
			old := newSession(r.Conversation)
			old.id, old.known = r.Session, agent.Known{Floor: r.Seen, After: r.Known}
			old.before = r.Before
			all.Put(old.of, old)
		}
		return true
	})
	if err != nil {
		return err
	}
	for key, newer := range s.all.All() { // of a run whose log could not be read
		all.Put(key, newer)
	}
	for key, found := range all.All() {
		s.all.Put(key, found)
	}
	s.loaded = true
	return nil
}

// forTask returns the session of the conversation of a task, which may be one that is not open yet.
func (s *sessions) forTask(t agent.Turn) *session {
	key := agent.ConversationOf(t)
	if key.BeganWith(t.Task()) {
		single := newSession(key)
		single.once = true
		return single
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.all.Get(key)
	if !ok {
		found = newSession(key)
	}
	s.all.Put(key, found) // as the newest
	return found
}

// keep remembers a session beyond the run of the hub. The caller holds its slot.
func (s *sessions) keep(ctx context.Context, of *session) {
	if s.log == nil || of.once {
		return
	}
	if err := s.log.Append(ctx, strictjson.Encode(record{Agent: s.opts.Agent, Conversation: of.of, Session: of.id, Seen: of.known.Floor, Known: of.known.After, Before: of.before})); err != nil {
		s.opts.Log.Warn("the session of a thread could not be kept: after a restart of the hub the thread begins another", "thread", of.of.Thread, "error", err)
	}
}

// keepOffer remembers what new sessions can be set to, and reports whether that is news.
func (s *sessions) keepOffer(ctx context.Context, offer json.RawMessage) bool {
	s.mu.Lock()
	known := bytes.Equal(s.offer, offer)
	s.offer = offer
	s.mu.Unlock()
	if !known && s.log != nil {
		if err := s.log.Append(ctx, strictjson.Encode(record{Agent: s.opts.Agent, Offer: offer})); err != nil {
			s.opts.Log.Warn("what the agent offers could not be kept: after a restart of the hub it is known from its first session on", "error", err)
		}
	}
	return !known
}

// lastOffer returns what keepOffer has remembered; nil for nothing.
func (s *sessions) lastOffer() json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offer
}

// dropped returns the sessions that were dropped for newer ones.
func (s *sessions) dropped() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	idle := s.idle
	s.idle = nil
	return idle
}

// acquire waits until the session is free. The error is the cause of ctx.
func (s *session) acquire(ctx context.Context) error {
	select {
	case s.slot <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *session) release() { <-s.slot }

// prompted notes the prompt that the agent works on until it is answered.
func (s *session) prompted(prompt *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stuck = prompt
}

// answered notes that a prompt was answered. The late answer of an earlier one changes nothing.
func (s *session) answered(prompt *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stuck == prompt {
		s.stuck = nil
	}
}

func (s *session) isStuck() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stuck != nil
}

// open makes the session one that is open on the connection. lost says why an earlier session of
// the thread is gone; "" if there was none or it goes on. The caller holds the slot.
func (s *session) open(ctx context.Context, c *connection, store *sessions, thread core.ThreadID) (lost string, err error) {
	switch {
	case s.id == "":
	case s.over != "":
		lost = s.over
		c.forget(s)
	case s.conn != c: // of an earlier connection
		if lost, err = s.reopen(ctx, c, store, thread); lost == "" {
			return "", err
		}
	case !c.has(s, s.id):
		lost = "the agent gave the id of the session to another one"
	case s.isStuck():
		lost = "the agent did not end the turn before"
		c.forget(s)
		c.endSession(ctx, s.id)
	default:
		return "", nil
	}
	s.id, s.known, s.cost, s.over, s.before = "", agent.Known{}, cost{}, "", nil
	s.prompted(nil)
	result, err := c.call(ctx, wire.MethodSessionNew, c.place(thread), func(m jsonrpc.Message) {
		// Before the next line is read, which may be an update of the session.
		if id, ok := m.Result.Get("sessionId").Text(); ok && id != "" {
			c.adopt(s, id)
		}
	}, func(m jsonrpc.Message) {
		id, _ := m.Result.Get("sessionId").Text()
		c.endSession(context.WithoutCancel(ctx), id)
	})
	if err != nil {
		return lost, c.explain("begin a session", err)
	}
	id, _ := result.Get("sessionId").Text()
	if id == "" {
		return lost, core.NewFault(core.CodeInvalid, "the agent's answer to session/new: sessionId: want a string, got %.40s", cmp.Or(string(result.Get("sessionId").Raw()), "nothing"))
	}
	if !c.has(s, id) {
		return lost, core.NewFault(core.CodeInvalid, "the agent began a session with the id %.80q of one that is in use: each session needs an id of its own", id)
	}
	s.id, s.conn = id, c
	if err := c.opened(ctx, s, store, result); err != nil {
		c.forget(s)
		c.endSession(ctx, id)
		s.id, s.conn = "", nil
		return lost, err
	}
	store.keep(ctx, s)
	return lost, nil
}

// reopen continues a session of an earlier connection. It returns why it cannot.
func (s *session) reopen(ctx context.Context, c *connection, store *sessions, thread core.ThreadID) (lost string, err error) {
	method := ""
	switch {
	case c.hi.AgentCapabilities.SessionCapabilities.Resume != nil:
		method = wire.MethodSessionResume
	case c.hi.AgentCapabilities.LoadSession:
		method = wire.MethodSessionLoad
	default:
		return "the agent was restarted and does not resume sessions", nil
	}
	repeated, stop := s.replays()
	defer stop()
	if c.adopt(s, s.id); !c.has(s, s.id) {
		return "the agent gave the id of the session to another one", nil
	}
	result, err := c.call(ctx, method, wire.OpenSessionRequest{SessionID: s.id, NewSessionRequest: c.place(thread)}, nil, ignore)
	if err == nil && method == wire.MethodSessionLoad {
		err = replayed(ctx, repeated)
	}
	if err == nil {
		if err := c.opened(ctx, s, store, result); err != nil {
			return "", err
		}
		s.conn = c
		s.prompted(nil)
		return "", nil
	}
	c.forget(s)
	explained := c.explain("continue a session", err)
	if f := core.AsFault(explained); ctx.Err() != nil || f.Code == core.CodeUnreachable || f.Code == core.CodeUnauthenticated {
		return "", explained
	}
	return "the agent was restarted and could not continue the session: " + core.AsFault(explained).Message, nil
}

// place is where the session of a thread works, and with what.
func (c *connection) place(thread core.ThreadID) wire.NewSessionRequest {
	p := wire.NewSessionRequest{CWD: c.opts.Dir, MCPServers: []wire.MCPServer{}}
	can := c.hi.AgentCapabilities.MCPCapabilities
	for _, server := range c.opts.MCPServers(thread) {
		if server.Command == "" && !(server.Type != "sse" && can.HTTP || server.Type == "sse" && can.SSE) {
			c.opts.Count("editor.mcp_server_left_out")
			c.opts.Log.Warn("the agent cannot use an MCP server over HTTP: it was left out", "server", server.Name)
			continue
		}
		p.MCPServers = append(p.MCPServers, server)
	}
	return p
}

// adopt makes updates of a session known. An agent that gives the id of another session takes it
// from that, unless it is in use: two turns must not be mixed up.
func (c *connection) adopt(s *session, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.turns[id] == nil {
		c.sessions[id] = s
	}
}

// has reports whether the id is that of the session.
func (c *connection) has(s *session, id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sessions[id] == s
}

func (c *connection) forget(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sessions[s.id] == s {
		delete(c.sessions, s.id)
	}
}

// endSession tells the agent that a session is not needed any more, if it wants to know. It does
// not wait for the answer.
func (c *connection) endSession(ctx context.Context, id string) {
	if c.hi.AgentCapabilities.SessionCapabilities.Close == nil || id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	ignored := &call{done: make(chan jsonrpc.Message, 1)}
	if id, err := c.start(ctx, ignored, wire.MethodSessionClose, strictjson.Encode(wire.SessionRequest{SessionID: id}), nil); err == nil {
		c.giveUp(id, ignore)
	}
}
