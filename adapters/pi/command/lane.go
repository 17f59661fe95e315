package command

import "slices"

// lane is a line of turns that are taken one at a time, first in, first out (section
// 7.3).
type lane struct {
	engine  *Engine
	key     Key
	waiting []laneTurn
	running laneTurn
	turning bool        // its commands are being run, further down the stack
	steers  int         // how many wait that overtake what runs
	few     [1]laneTurn // room for those that wait, as a rule
}

// laneTurn is a command, or another turn of the session: exactly one field is set. The
// zero laneTurn is none.
type laneTurn struct {
	x     *Execution
	other otherTurn
}

// otherTurn is something that is no command and has its turn in the lane of a session.
type otherTurn interface {
	// Begin begins the turn. It reports false of one that is over at once; of any other
	// [engine.Over] is called.
	Begin() bool
}

// enqueue puts a command into its lane and runs what can run.
func (x *Execution) enqueue() {
	e := x.engine
	e.line(Key{x.client.Scope, x.known.lane}, laneTurn{x: x})
}

// line puts a turn into a lane and runs what can run.
func (e *Engine) line(key Key, t laneTurn) {
	l := e.lanes[key]
	if l == nil {
		l = &lane{engine: e, key: key}
		l.waiting = l.few[:0]
		e.lanes[key] = l
	}
	if t.x != nil {
		t.x.lane = l
		l.steers += t.steers()
	}
	l.waiting = append(l.waiting, t)
	l.advance()
}

// steers is 1 of a command that overtakes what runs, else 0.
func (t laneTurn) steers() int {
	if t.x != nil && t.x.Spec.Control {
		return 1
	}
	return 0
}

// makes reports whether the turn may make the session of its lane.
func (t laneTurn) makes() bool {
	return t.x != nil && t.x.CreatesSession()
}

// makes reports whether a command that stands in the lane before x makes its session.
func (l *lane) makes(x *Execution) bool {
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
func (l *lane) next() (laneTurn, bool) {
	e := l.engine
	free := l.running == (laneTurn{})
	if !free && (l.steers == 0 || l.running.makes() && e.host.Find(l.key) == nil) {
		return laneTurn{}, false
	}
	for i, t := range l.waiting {
		if !free && (t.steers() == 0 || !t.x.overtakes()) {
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
func (l *lane) advance() {
	if l.turning {
		return
	}
	l.turning = true
	for t, ok := l.next(); ok; t, ok = l.next() {
		if t.steers() > 0 {
			t.x.lane = nil
			t.x.execute()
			continue
		}
		l.running = t
		switch {
		case t.x != nil:
			t.x.execute()
		case !t.other.Begin():
			l.running = laneTurn{}
		}
	}
	l.turning = false
	if l.running == (laneTurn{}) {
		delete(l.engine.lanes, l.key)
	}
}

// release lets the lane of a command go on, once nothing is done for it any more and
// clients have been told what came of it.
func (x *Execution) release() {
	l := x.lane
	if l == nil || l.running.x != x || x.working || !x.answered {
		return
	}
	l.running = laneTurn{}
	l.advance()
}

// EnqueueTurn puts a turn into the lane of a session.
func (e *Engine) EnqueueTurn(key Key, t otherTurn) { e.line(key, laneTurn{other: t}) }

// EndTurn lets the lane of a session go on behind a turn that is no command.
func (e *Engine) EndTurn(key Key) {
	l := e.lanes[key]
	l.running = laneTurn{}
	l.advance()
}

// withdraw takes a command out of its lane that has not run.
func (l *lane) withdraw(x *Execution) {
	if i := slices.Index(l.waiting, laneTurn{x: x}); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
		l.steers -= laneTurn{x: x}.steers()
	}
}
