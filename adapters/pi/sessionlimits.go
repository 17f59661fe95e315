package pi

import (
	"fmt"
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
)

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
