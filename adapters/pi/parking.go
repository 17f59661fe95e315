package pi

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/core"
)

// parked is a session that is not in memory: it made room for another, or belongs to an
// earlier process. The next command that names it loads it from its file.
type parked struct {
	path string             // of the file
	tree *conversation.Tree // instead of a file, of a session without messages
	made time.Time
	// The state that is not in the file.
	version               int
	agent                 core.Address
	noRetry, noCompaction bool
}

// maxParked bounds how many sessions are parked: beyond it the one parked the longest ago
// is forgotten, and only its file is left, as when its lifetime is over.
const maxParked = 10_000

// canPark reports whether the session is idle and can be restored as it is.
func (ss *session) canPark() bool {
	s := ss.server
	nodes := ss.tree.Nodes
	switch {
	case ss.busy(), len(ss.subscribers) > 0, s.engine.HasLane(ss.key), !ss.queue.empty():
		return false
	case ss.shared || ss.sharedWaiting > 0: // it would leave the thread of others
		return false
	case ss.isEmpty():
		return true
	case ss.file == nil || ss.file.Broken():
		return false
	case len(nodes) > 0 && ss.tree.Leaf != nodes[len(nodes)-1]: // a loaded conversation continues at the end of its file
		return false
	}
	var size int64
	for _, n := range nodes {
		size += int64(len(n.Line)) + 1
	}
	return size < s.opts.MaxFileBytes
}

// isEmpty reports whether the session has no messages, and so no file yet.
func (ss *session) isEmpty() bool {
	return len(ss.tree.Context) == 0 && !ss.file.Exists()
}

// park removes an idle session from memory.
func (ss *session) park() {
	s := ss.server
	p := &parked{made: ss.created, version: ss.version, agent: ss.agent, noRetry: ss.noRetry, noCompaction: ss.noCompaction}
	if ss.isEmpty() {
		p.tree = ss.tree
	} else {
		p.path = ss.file.Path()
		ss.file.ForceCreate() // even if no agent has answered yet
	}
	s.count("sessions.parked")
	ss.unload(s.engine.NextNumber())
	ss.announceDeleted()
	s.parked.Put(ss.key, p)
}

// parkedFor returns the parked session that a command restores, or nil.
func (s *Server) parkedFor(x *request) *parked {
	if !x.Spec.Session && x.Kind != "switch_session" && (!x.IsRedo() || !x.CreatesSession()) {
		return nil
	}
	key := command.Key{Scope: x.client.Scope, ID: x.Session}
	p, _ := s.parked.Get(key)
	if p != nil && s.opts.SessionLifetime > 0 && time.Since(p.made) >= s.opts.SessionLifetime {
		s.parked.Remove(key)
		return nil
	}
	return p
}

// bringBack restores the session that a command names, and then executes the command.
func (x *request) bringBack(p *parked) command.Outcome {
	s := x.client.server
	key := command.Key{Scope: x.client.Scope, ID: x.Session}
	if p.tree != nil {
		if problem := x.unpark(key, p, conversation.Stored{}); problem != "" {
			return command.Failed(problem)
		}
		return x.do()
	}
	return x.Work(s.jobs, func(context.Context) command.Outcome {
		from, problem := s.store.Read(key.Scope, p.path)
		s.engine.Lock()
		defer s.engine.Unlock()
		now, _ := s.parked.Get(key)
		switch {
		case x.Settled(): // it has timed out
			return command.Outcome{}
		case now != p: // another command was faster
		case problem != "":
			if problem != conversation.NotASession { // a file without messages is none
				s.opts.Log.Warn("a session cannot be brought back", "session", key.ID, "path", p.path, "error", problem)
			}
			s.parked.Remove(key)
		default:
			if problem := x.unpark(key, p, from); problem != "" {
				return command.Failed(problem)
			}
		}
		return x.do()
	})
}

// unpark restores a session, from its file where it has one. It returns why it cannot, or "".
func (x *request) unpark(key command.Key, p *parked, from conversation.Stored) string {
	s := x.client.server
	if problem := s.makeRoom(ownerOf(x.client)); problem != "" {
		return problem
	}
	ss := newSession(x, key.ID)
	s.register(ss)
	ss.version, ss.noRetry, ss.noCompaction = p.version, p.noRetry, p.noCompaction
	if p.tree != nil {
		ss.thread = core.ThreadID(p.tree.Header.ID)
		ss.agent = p.agent
		ss.followThread()
		ss.beginTree(p.tree)
	} else {
		ss.load(from)
		if !p.agent.IsZero() {
			ss.agent = p.agent
		}
	}
	s.count("sessions.returned")
	return ""
}

// ownerOf returns whose limit the sessions of c count against: c's, or the zero Namespace if
// c is a connection that has ended.
func ownerOf(c *connection) command.Namespace {
	if c.Namespace.Conn != 0 && !c.Attached {
		return command.Namespace{}
	}
	return c.Namespace
}

// makeRoom parks idle sessions until there is room for one more of the owner. It returns why
// there is none, or "".
func (s *Server) makeRoom(of command.Namespace) string {
	own := func(ss *session) bool { return ss.owner == of }
	if n := s.parkIdle(s.opts.MaxSessions-1, own); n >= s.opts.MaxSessions {
		return s.limitReached(s.opts.MaxSessions)
	}
	if len(s.sessions) < s.opts.AllSessions {
		return ""
	}
	if n := s.parkIdle(s.opts.AllSessions-1, func(*session) bool { return true }); n >= s.opts.AllSessions {
		return s.limitReached(s.opts.AllSessions)
	}
	return ""
}

func (s *Server) limitReached(most int) string {
	s.engine.Reject(command.OverSessions)
	return fmt.Sprintf("Session limit reached (%d sessions)", most)
}

// parkIdle parks idle sessions of a kind, the least recently used first, until at most that
// many remain. It returns how many remain.
func (s *Server) parkIdle(most int, kind func(*session) bool) int {
	var all []*session
	for _, ss := range s.sessions {
		if kind(ss) {
			all = append(all, ss)
		}
	}
	if len(all) <= most {
		return len(all)
	}
	slices.SortFunc(all, func(a, b *session) int { return a.lastUsed.Compare(b.lastUsed) })
	wanted := s.engine.SessionsInFlight()
	n := len(all)
	for _, ss := range all {
		if n > most && !wanted[ss.key] && ss.canPark() {
			ss.park()
			n--
		}
	}
	return n
}

// orphanSessions makes the sessions of a connection that has ended count as nobody's. Together
// they have the limit of one client.
func (s *Server) orphanSessions(c *connection) {
	if c.Namespace.Conn == 0 {
		return
	}
	for _, ss := range s.sessions {
		if ss.owner == c.Namespace {
			ss.owner = command.Namespace{}
		}
	}
	s.parkIdle(s.opts.MaxSessions, func(ss *session) bool { return ss.owner == command.Namespace{} })
}
