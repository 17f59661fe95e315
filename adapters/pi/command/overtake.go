package command

// overtakes reports whether a command does not wait for its lane: one that steers or
// reads, unless its session is still to be made there; a prompt that says, or must be told,
// what becomes of it beside a running one; and one that cannot make its session.
func (x *Execution) overtakes() bool {
	e := x.engine
	ss := e.find(x)
	switch {
	case x.Spec.Control:
		return ss != nil || x.known.lane == serverLane || !e.lanes[Key{x.client.Scope, x.known.lane}].makes(x)
	case x.CreatesSession():
		return x.makesAnother()
	case x.Kind != "prompt" || ss == nil || !ss.Running():
		return false
	}
	return !e.opts.QueuePrompts || x.Is("streamingBehavior", `"steer"`, `"followUp"`)
}

// makesAnother reports whether a command is to make a session that there is, and will be
// whatever comes of the commands before it: of those delete_session alone, which may
// wait for others, takes it away.
func (x *Execution) makesAnother() bool {
	e := x.engine
	if len(x.depends) > 0 || e.find(x) == nil {
		return false
	}
	for y := range e.inFlight {
		if y.Kind == "delete_session" && !y.settled && y.known.number < x.known.number && y.Session == x.Session && y.client.Scope == x.client.Scope {
			return false
		}
	}
	return true
}
