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

// parked is a session that is out of memory while its conversation is in a file: it made
// room for another, or the process that had it ended. The next command that names it
// brings it back.
type parked struct {
	path string             // of the file
	tree *conversation.Tree // in place of the file, of a session in which nothing was said
	made time.Time
	// What the file does not have.
	version               int
	agent                 core.Address
	noRetry, noCompaction bool
}

// maxParked bounds how many sessions are parked: beyond it the one parked the longest ago
// is forgotten, and only its file is left, as when its lifetime is over.
const maxParked = 10_000

// canPark reports whether the idle session can come back as it is.
func (ss *session) canPark() bool {
	s := ss.server
	nodes := ss.tree.Nodes
	switch {
	case ss.busy(), len(ss.readers) > 0, s.engine.HasLane(ss.key), !ss.queue.empty():
		return false
	case ss.shared || ss.othersWaiting > 0: // it would leave the thread that others talk in
		return false
	case ss.isEmpty():
		return true
	case ss.file == nil || ss.file.Broken():
		return false
	case len(nodes) > 0 && ss.tree.Leaf != nodes[len(nodes)-1]: // a file goes on at its end
		return false
	}
	var size int64
	for _, n := range nodes {
		size += int64(len(n.Line)) + 1
	}
	return size < s.opts.MaxFileBytes
}

// isEmpty reports whether nothing was said in the session, so that it has no file yet.
func (ss *session) isEmpty() bool {
	return len(ss.tree.Context) == 0 && !ss.file.Exists()
}

// park takes an idle session out of memory.
func (ss *session) park() {
	s := ss.server
	p := &parked{made: ss.created, version: ss.version, agent: ss.agent, noRetry: ss.noRetry, noCompaction: ss.noCompaction}
	if ss.isEmpty() {
		p.tree = ss.tree
	} else {
		p.path = ss.file.Path()
		ss.file.ForceCreate() // also where nobody has answered yet
	}
	s.count("sessions.parked")
	ss.unload(s.engine.NextNumber())
	ss.sayDeleted()
	s.parked.Put(ss.key, p)
}

// parkedFor returns the parked session that a command brings back, or nil.
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

// bringBack performs a command once the session that it names is back.
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
		case x.Settled(): // it took too long, and its client was told so
			return command.Outcome{}
		case now != p: // another command was faster
		case problem != "":
			if problem != conversation.NotASession { // which it is not before anything was said
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

// unpark brings a session back, with what its file holds where it has one. It returns why
// it cannot, or "".
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

// ownerOf is the client whose limit a session of c counts against: c, or nobody where that
// is a connection which has ended.
func ownerOf(c *connection) command.Namespace {
	if c.Namespace.Conn != 0 && !c.Attached {
		return command.Namespace{}
	}
	return c.Namespace
}

// makeRoom parks idle sessions until one more of the owner can live. It returns why none
// can, or "".
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

// parkIdle parks sessions of a kind, the one idle longest first, until at most so many live. It
// returns how many do.
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
	slices.SortFunc(all, func(a, b *session) int { return a.touched.Compare(b.touched) })
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

// disown has the sessions of a connection that ended count as nobody's, of which there
// may be as many as of a client.
func (s *Server) disown(c *connection) {
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
