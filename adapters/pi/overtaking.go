package pi

// overtakes reports whether a command does not wait for its lane: one that steers or
// reads, unless its session is still to be made there; a prompt that says, or must be told,
// what becomes of it beside a running one; and one that cannot make its session.
func (s *Server) overtakes(x *execution) bool {
	ss := s.lookup(x)
	switch {
	case x.spec.control:
		return ss != nil || x.known.lane == serverLane || !s.lanes[sessionKey{x.client.scope, x.known.lane}].makes(x)
	case x.makes():
		return s.makesAnother(x)
	case x.kind != "prompt" || ss == nil || ss.run == nil:
		return false
	}
	return !s.opts.QueuePrompts || x.is("streamingBehavior", `"steer"`, `"followUp"`)
}

// makes reports whether the command is to make a session.
func (c command) makes() bool { return c.kind == "create_session" || c.kind == "load_session" }

// makesAnother reports whether a command is to make a session that there is, and will be
// whatever comes of the commands before it: of those delete_session alone, which may
// wait for others, takes it away.
func (s *Server) makesAnother(x *execution) bool {
	if len(x.depends) > 0 || s.lookup(x) == nil {
		return false
	}
	for y := range s.flying {
		if y.kind == "delete_session" && !y.settled && y.known.number < x.known.number && y.session == x.session && y.client.scope == x.client.scope {
			return false
		}
	}
	return true
}
