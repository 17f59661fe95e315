package pi

import "slices"

// lane is a line of turns that are taken one at a time, first in, first out (section
// 7.3). Server.mu guards it.
type lane struct {
	key     sessionKey
	waiting []laneTurn
	running laneTurn
	turning bool        // its commands are being run, further down the stack
	steers  int         // how many wait that overtake what runs
	few     [1]laneTurn // room for those that wait, as a rule
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
		l.waiting = l.few[:0]
		s.lanes[key] = l
	}
	if t.x != nil {
		t.x.lane = l
		l.steers += t.steers()
	}
	l.waiting = append(l.waiting, t)
	s.advance(l)
}

// steers is 1 of a command that overtakes what runs, else 0.
func (t laneTurn) steers() int {
	if t.x != nil && t.x.spec.control {
		return 1
	}
	return 0
}

// makes reports whether the turn may make the session of its lane.
func (t laneTurn) makes() bool {
	return t.x != nil && t.x.makes()
}

// makes reports whether a command that stands in the lane before x makes its session.
func (l *lane) makes(x *execution) bool {
	if l == nil {
		return false
	}
	if l.running.makes() {
		return true
	}
	for _, t := range l.waiting {
		if t.x == x {
			break
		}
		if t.makes() {
			return true
		}
	}
	return false
}

// next takes the turn that is next, if there is one: the first, or when one goes on the
// first that overtakes it.
func (s *Server) next(l *lane) (laneTurn, bool) {
	free := l.running == (laneTurn{})
	if !free && (l.steers == 0 || l.running.makes() && s.sessions[l.key] == nil) {
		return laneTurn{}, false
	}
	for i, t := range l.waiting {
		if !free && (t.steers() == 0 || !s.overtakes(t.x)) {
			continue
		}
		if i == 0 {
			l.waiting[0] = laneTurn{}
			l.waiting = l.waiting[1:]
		} else {
			l.waiting = slices.Delete(l.waiting, i, i+1)
		}
		l.steers -= t.steers()
		return t, true
	}
	return laneTurn{}, false
}

// advance takes the turns of a lane until one goes on or none is left.
func (s *Server) advance(l *lane) {
	if l.turning {
		return
	}
	l.turning = true
	for t, ok := s.next(l); ok; t, ok = s.next(l) {
		if t.steers() > 0 {
			t.x.lane = nil
			s.execute(t.x)
			continue
		}
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
		l.steers -= laneTurn{x: x}.steers()
	}
}
