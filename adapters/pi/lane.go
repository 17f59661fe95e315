package pi

import "slices"

// lane is a line of turns that are taken one at a time, first in, first out (section
// 7.3). Server.mu guards it.
type lane struct {
	key     sessionKey
	waiting []laneTurn
	running laneTurn
	turning bool // its commands are being run, further down the stack
}

// laneTurn is a command, or what somebody else has asked in the thread of the session:
// exactly one field is set. The zero laneTurn is none.
type laneTurn struct {
	x     *execution
	heard *heard
}

// serverLane is the id of the lane of commands without a session. No session can
// have it.
const serverLane = ""

// lane is the id of the lane of a command: that of the session that it is for, or
// serverLane. A sessionId says nothing in a command that has no use for it.
func (c command) lane() string {
	switch c.kind {
	case "create_session", "load_session", "delete_session", "switch_session":
		return c.session
	}
	if c.spec != nil && c.spec.session {
		return c.session
	}
	return serverLane
}

// enqueue puts a command into its lane and runs what can run.
func (s *Server) enqueue(x *execution) {
	s.line(sessionKey{x.client.scope, x.known.lane}, laneTurn{x: x})
}

// line puts a turn into a lane and runs what can run.
func (s *Server) line(key sessionKey, t laneTurn) {
	l := s.lanes[key]
	if l == nil {
		l = &lane{key: key}
		s.lanes[key] = l
	}
	if t.x != nil {
		t.x.lane = l
	}
	l.waiting = append(l.waiting, t)
	s.advance(l)
}

// advance takes the turns of a lane until one goes on or none is left.
func (s *Server) advance(l *lane) {
	if l.turning {
		return
	}
	l.turning = true
	for l.running == (laneTurn{}) && len(l.waiting) > 0 {
		t := l.waiting[0]
		l.waiting[0] = laneTurn{}
		l.waiting = l.waiting[1:]
		l.running = t
		switch {
		case t.x != nil:
			s.execute(t.x)
		case !s.show(t.heard):
			l.running = laneTurn{}
		}
	}
	l.turning = false
	if l.running == (laneTurn{}) {
		delete(s.lanes, l.key)
	}
}

// release lets the lane of a command go on, once nothing is done for it any more and
// clients have been told what came of it.
func (s *Server) release(x *execution) {
	l := x.lane
	if l == nil || l.running.x != x || x.working || !x.told {
		return
	}
	l.running = laneTurn{}
	s.advance(l)
}

// over lets the lane go on behind a run.
func (s *Server) over(r *run, o outcome) {
	if r.prompt != nil {
		s.finish(r.prompt, o)
		return
	}
	l := s.lanes[r.session.key]
	l.running = laneTurn{}
	s.advance(l)
}

// withdraw takes a command out of its lane that has not run.
func (l *lane) withdraw(x *execution) {
	if i := slices.Index(l.waiting, laneTurn{x: x}); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
}
