package pi

import (
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
)

// zombieAfter is how long after its last command an idle session counts as
// forgotten (facts, section 4.5).
const zombieAfter = 5 * time.Minute

// startLifetime begins the lifetime of a session that was just made. [Server.unload]
// ends it.
func (ss *session) startLifetime() {
	s := ss.server
	ss.touched = time.Now()
	if s.opts.SessionLifetime > 0 {
		ss.expiry = time.AfterFunc(s.opts.SessionLifetime, func() { ss.retire() })
	}
}

// retire deletes a session whose time is over. One that is at work gets as long as
// that takes.
func (ss *session) retire() {
	s := ss.server
	s.engine.Lock()
	defer s.engine.Unlock()
	switch {
	case ss.deleted || s.engine.Stopped():
	case ss.busy():
		ss.expiry.Reset(time.Minute)
	default:
		s.expired++
		s.count("sessions.expired")
		ss.unload(s.engine.NextNumber())
		ss.sayDeleted()
	}
}

// busy reports whether something runs in the session.
func (ss *session) busy() bool { return ss.run != nil || ss.bash != nil || ss.summarizing != nil }

// unload takes a session out of the server. What runs in it was stopped before; commands
// from number until on are for another session of its name.
func (ss *session) unload(until uint64) {
	s := ss.server
	ss.deleted, ss.until = true, until
	delete(s.sessions, ss.key)
	ss.file.Release()
	ss.leaveThread()
	if ss.expiry != nil {
		ss.expiry.Stop()
	}
	for _, c := range ss.readers {
		c.unsubscribe(ss)
	}
	ss.watchQuestions()
}

// closeSessions ends what the sessions of a server that ends still have running.
func (s *Server) closeSessions() {
	s.engine.Lock()
	defer s.engine.Unlock()
	for _, ss := range s.sessions {
		ss.bash.kill()
		if ss.expiry != nil {
			ss.expiry.Stop()
		}
	}
}

// sayDeleted tells everybody whom it concerns that a session is no more.
func (ss *session) sayDeleted() {
	s := ss.server
	s.happened("session_deleted")
	s.broadcast(ss.key.Scope, render.ServerEvent("session_deleted", wire.Encode(map[string]string{"sessionId": ss.key.ID})))
}
