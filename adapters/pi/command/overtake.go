package command

// overtakes reports whether a command does not wait in its lane: a control command, unless
// its session is still to be created there; a prompt during a run that chose how to be
// queued, or must be refused; and a command that cannot create its session.
func (x *Execution) overtakes() bool {
	e := x.engine
	ss := x.Find()
	switch {
	case x.Spec.Control:
		return ss != nil || x.tracked.lane == serverLane || !e.lanes[Key{x.client.Scope, x.tracked.lane}].createsSession(x)
	case x.CreatesSession():
		return x.createsExisting()
	case x.Kind != "prompt" || ss == nil || !ss.Running():
		return false
	}
	return !e.opts.QueuePrompts || x.Is("streamingBehavior", `"steer"`, `"followUp"`)
}

// createsExisting reports whether a command is to create a session that exists and will
// still exist at its turn: of the commands before it only delete_session, which may wait
// for others, removes a session.
func (x *Execution) createsExisting() bool {
	e := x.engine
	if len(x.dependsOn) > 0 || x.Find() == nil {
		return false
	}
	for y := range e.inFlight {
		if y.Kind == "delete_session" && !y.settled && y.tracked.number < x.tracked.number && y.Session == x.Session && y.client.Scope == x.client.Scope {
			return false
		}
	}
	return true
}
