package command

import "github.com/dragoman-hub/dragoman/core/fifo"

// lane runs the commands and other turns of one session one at a time, first in, first out
// (section 7.3).
type lane struct {
	engine    *Engine
	key       Key
	waiting   fifo.Queue[laneItem]
	running   laneItem
	advancing bool // advance is running, further down the stack
	controls  int  // waiting control commands
}

// laneItem is a command or another turn: exactly one field is set. The zero laneItem is
// none.
type laneItem struct {
	x     *Execution
	other turn
}

// turn is something other than a command that waits in the lane of a session.
type turn interface {
	// Begin begins the turn. It reports false where the turn has ended already; otherwise
	// [Engine.EndTurn] must be called.
	Begin() bool
}

// enqueue puts a command into its lane and runs what can run.
func (x *Execution) enqueue() {
	e := x.engine
	e.enqueue(Key{x.client.Scope, x.tracked.lane}, laneItem{x: x})
}

// enqueue puts an item into a lane and runs what can run.
func (e *Engine) enqueue(key Key, t laneItem) {
	l := e.lanes[key]
	if l == nil {
		l = &lane{engine: e, key: key}
		e.lanes[key] = l
	}
	if t.x != nil {
		t.x.lane = l
	}
	if t.control() {
		l.controls++
	}
	l.waiting.Push(t)
	l.advance()
}

// control reports whether the item is a command that overtakes what runs.
func (t laneItem) control() bool { return t.x != nil && t.x.Spec.Control }

// createsSession reports whether the item may create the session of its lane.
func (t laneItem) createsSession() bool { return t.x != nil && t.x.CreatesSession() }

// createsSession reports whether a command ahead of x in the lane creates its session.
func (l *lane) createsSession(x *Execution) bool {
	if l == nil {
		return false
	}
	if l.running.createsSession() {
		return true
	}
	for _, t := range l.waiting.Items() {
		if t.x == x {
			break
		}
		if t.createsSession() {
			return true
		}
	}
	return false
}

// next removes the next item to run, if there is one: the first, or while one runs, the
// first that overtakes it.
func (l *lane) next() (laneItem, bool) {
	free := l.running == (laneItem{})
	if !free && (l.controls == 0 || l.running.createsSession() && l.engine.host.Find(l.key) == nil) {
		return laneItem{}, false
	}
	return l.remove(func(t laneItem) bool { return free || t.control() && t.x.overtakes() })
}

// remove removes and returns the first waiting item for which match returns true.
func (l *lane) remove(match func(laneItem) bool) (removed laneItem, ok bool) {
	l.waiting.DeleteFirst(1, func(t laneItem) bool {
		if ok = match(t); ok {
			removed = t
		}
		return ok
	})
	if removed.control() {
		l.controls--
	}
	return removed, ok
}

// advance runs items until one takes time or none is left.
func (l *lane) advance() {
	if l.advancing {
		return
	}
	l.advancing = true
	for t, ok := l.next(); ok; t, ok = l.next() {
		if t.control() {
			t.x.lane = nil
			t.x.execute()
			continue
		}
		l.running = t
		switch {
		case t.x != nil:
			t.x.execute()
		case !t.other.Begin():
			l.running = laneItem{}
		}
	}
	l.advancing = false
	if l.running == (laneItem{}) {
		delete(l.engine.lanes, l.key)
	}
}

// releaseLane runs the next item of the lane of a command, once its handler has ended and
// its outcome was sent.
func (x *Execution) releaseLane() {
	l := x.lane
	if l == nil || l.running.x != x || x.working || !x.answered {
		return
	}
	l.running = laneItem{}
	l.advance()
}

// EnqueueTurn puts a turn into the lane of a session.
func (e *Engine) EnqueueTurn(key Key, t turn) { e.enqueue(key, laneItem{other: t}) }

// EndTurn ends the running turn of a session, which is no command.
func (e *Engine) EndTurn(key Key) {
	l := e.lanes[key]
	l.running = laneItem{}
	l.advance()
}

// withdraw removes a command that has not run.
func (l *lane) withdraw(x *Execution) {
	l.remove(func(t laneItem) bool { return t.x == x })
}

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
