package pi

import "slices"

// lane is a line of commands that run one at a time, first in, first out (section
// 7.3). Server.mu guards it.
type lane struct {
	key     sessionKey
	waiting []*execution
	running *execution
	turning bool // its commands are being run, further down the stack
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
	key := sessionKey{x.client.scope, x.known.lane}
	l := s.lanes[key]
	if l == nil {
		l = &lane{key: key}
		s.lanes[key] = l
	}
	x.lane = l
	l.waiting = append(l.waiting, x)
	s.advance(l)
}

// advance runs the commands of a lane until one goes on or none is left.
func (s *Server) advance(l *lane) {
	if l.turning {
		return
	}
	l.turning = true
	for l.running == nil && len(l.waiting) > 0 {
		x := l.waiting[0]
		l.waiting[0] = nil
		l.waiting = l.waiting[1:]
		l.running = x
		s.execute(x)
	}
	l.turning = false
	if l.running == nil {
		delete(s.lanes, l.key)
	}
}

// release lets the lane of a command go on, once nothing is done for it any more and
// clients have been told what came of it.
func (s *Server) release(x *execution) {
	l := x.lane
	if l == nil || l.running != x || x.working || !x.told {
		return
	}
	l.running = nil
	s.advance(l)
}

// withdraw takes a command out of its lane that has not run.
func (l *lane) withdraw(x *execution) {
	if i := slices.Index(l.waiting, x); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
}
