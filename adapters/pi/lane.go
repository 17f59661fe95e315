package pi

// lane is a line of commands that run one at a time, first in, first out (section
// 7.3). Server.mu guards it.
type lane struct {
	key     sessionKey
	waiting []*execution
	running *execution
}

// serverLane is the id of the lane of commands without a session. No session can
// have it.
const serverLane = ""

// enqueue puts a command into its lane and runs what can run.
func (s *Server) enqueue(x *execution) {
	key := sessionKey{x.client.scope, serverLane}
	if x.spec.session || x.kind == "create_session" || x.kind == "load_session" {
		key.id = x.session
	}
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
	for l.running == nil && len(l.waiting) > 0 {
		x := l.waiting[0]
		l.waiting[0] = nil
		l.waiting = l.waiting[1:]
		l.running = x
		if !s.execute(x) {
			l.running = nil
		}
	}
	if l.running == nil {
		delete(s.lanes, l.key)
	}
}

// finish settles a command that went on, and lets its lane go on.
func (s *Server) finish(x *execution, o outcome) {
	s.settle(x, o)
	if x.lane != nil {
		x.lane.running = nil
		s.advance(x.lane)
	}
}
