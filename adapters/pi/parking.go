package pi

import (
	"context"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/core"
)

// parked is a session that is out of memory while its conversation is in a file: it made
// room for another, or the process that had it ended. The next command that names it
// brings it back. Server.mu guards it.
type parked struct {
	path string             // of the file
	tree *conversation.Tree // in place of the file, of a session in which nothing was said
	made time.Time
	// What the file does not have.
	version               int
	agent                 core.Address
	noRetry, noCompaction bool
}

// mostParked bounds how many sessions are parked: beyond it the oldest is forgotten, and
// only its file is left, as when its lifetime is over.
const mostParked = 10_000

// canPark reports whether the idle session can come back as it is. Server.mu is held.
func (s *Server) canPark(ss *session) bool {
	nodes := ss.tree.Nodes
	switch {
	case ss.busy(), len(ss.readers) > 0, s.lanes[ss.key] != nil, len(ss.steering)+len(ss.following) > 0:
		return false
	case ss.shared || ss.hearing > 0: // it would leave the thread that others talk in
		return false
	case ss.unsaid():
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

// unsaid reports whether nothing was said in the session, so that it has no file yet.
func (ss *session) unsaid() bool {
	return len(ss.tree.Context) == 0 && !ss.file.Exists()
}

// park takes an idle session out of memory. Server.mu is held.
func (s *Server) park(ss *session) {
	p := &parked{made: ss.created, version: ss.version, agent: ss.agent, noRetry: ss.noRetry, noCompaction: ss.noCompaction}
	if ss.unsaid() {
		p.tree = ss.tree
	} else {
		p.path = ss.file.Path()
		ss.file.Keep() // also where nobody has answered yet
	}
	s.count("sessions.parked")
	s.unload(ss, s.admissions+1)
	s.sayDeleted(ss)
	s.keepParked(ss.key, p)
}

// keepParked remembers a parked session, and forgets the oldest of too many.
func (s *Server) keepParked(key sessionKey, p *parked) {
	s.parked[key] = p
	if len(s.parked) <= mostParked {
		return
	}
	for other, q := range s.parked {
		if q.made.Before(p.made) {
			key, p = other, q
		}
	}
	delete(s.parked, key)
}

// parkedFor returns the parked session that a command brings back, or nil.
func (s *Server) parkedFor(x *execution) *parked {
	if !x.spec.session && x.kind != "switch_session" && (x.before == nil || !x.makes()) {
		return nil
	}
	key := sessionKey{x.client.scope, x.session}
	p := s.parked[key]
	if p != nil && s.opts.SessionLifetime > 0 && time.Since(p.made) >= s.opts.SessionLifetime {
		delete(s.parked, key)
		return nil
	}
	return p
}

// bringBack performs a command once the session that it names is back. Server.mu is held.
func (s *Server) bringBack(x *execution, p *parked) outcome {
	key := sessionKey{x.client.scope, x.session}
	if p.tree != nil {
		if problem := s.unpark(x, key, p, conversation.Stored{}); problem != "" {
			return failed(problem)
		}
		return s.perform(x)
	}
	return s.work(x, func(context.Context) outcome {
		from, problem := s.store.Read(key.scope, p.path)
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case x.settled: // it took too long, and its client was told so
			return outcome{}
		case s.parked[key] != p: // somebody else was faster
		case problem != "":
			if problem != conversation.NotASession { // which it is not before anything was said
				s.opts.Log.Warn("a session cannot be brought back", "session", key.id, "path", p.path, "error", problem)
			}
			delete(s.parked, key)
		default:
			if problem := s.unpark(x, key, p, from); problem != "" {
				return failed(problem)
			}
		}
		return s.perform(x)
	})
}

// unpark brings a session back, with what its file holds where it has one. It returns why
// it cannot, or "". Server.mu is held.
func (s *Server) unpark(x *execution, key sessionKey, p *parked, from conversation.Stored) string {
	if problem := s.makeRoom(ownerOf(x.client)); problem != "" {
		return problem
	}
	ss := newSession(x, key.id)
	s.register(ss)
	ss.version, ss.noRetry, ss.noCompaction = p.version, p.noRetry, p.noCompaction
	if p.tree != nil {
		ss.thread = core.ThreadID(p.tree.Header.ID)
		ss.agent = p.agent
		s.attend(ss)
		s.beginTree(ss, p.tree)
	} else {
		s.take(ss, from)
		if !p.agent.IsZero() {
			ss.agent = p.agent
		}
	}
	s.count("sessions.returned")
	return ""
}
