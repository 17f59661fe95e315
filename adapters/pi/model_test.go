package pi_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// This file is the reference model of the engine: the specification as simple code, with a
// clock in microseconds.

// intent is one command of a client in the model.
type intent struct {
	at, client, conn int
	id, key          string
	kind, session    string
	takes            int // duration of its work in microseconds
	fails            bool
	depends          []string
	ifVersion        int // -1 without
	control, mutates bool
	limit            int  // microseconds, 0 without
	leaves           bool // not a command: the client's connection is replaced by another
}

// meaning returns a key that is equal for intents with the same command.
func (i intent) meaning() string {
	return fmt.Sprint(i.kind, i.session, i.takes, i.fails, i.depends, i.depends == nil, i.ifVersion)
}

func (i intent) name() string {
	if i.id == "" {
		return "anon"
	}
	return i.id
}

// modelled is an admitted intent.
type modelled struct {
	intent
	on                        *modelSession
	started, settled, working bool
	met                       int
	waits                     *modelled // the command that it waits for
	outcome                   string
	finished                  int
	number                    int           // in the order of admission
	meant                     *modelSession // the session at its admission
	again                     []intent
	dependents                []*modelled
}

type modelEvent struct {
	at int
	do func()
}

// modelSession is a session until it is deleted.
type modelSession struct {
	version int
	deleted bool
	until   int // admission number of the command that deleted it
}

type modelLane struct {
	waiting []*modelled
	running *modelled
	turning bool
}

type engineModel struct {
	now      int
	events   []modelEvent
	tied     bool // two events at the same time, whose order is not specified
	ids      map[string]*modelled
	keys     map[string]*modelled
	kept     map[string][]*modelled // outcomes with an id, by the owner of the id
	lanes    map[string]*modelLane
	sessions map[string]*modelSession
	admitted []*modelled
	woken    []*modelled
	waking   bool

	dependencyLimit, ttl, most int
	principal                  bool                // all clients have the same one
	broadcast                  map[int][]string    // events for all clients, by time
	conns                      [2]int              // the current connection of each client
	answers                    map[[2]int][]string // by client and connection
}

func newEngineModel(principal bool, most int) *engineModel {
	m := &engineModel{
		dependencyLimit: 3_000_000, ttl: 8_000_000, most: most, principal: principal, ids: map[string]*modelled{}, keys: map[string]*modelled{},
		kept: map[string][]*modelled{}, sessions: map[string]*modelSession{"s": {}, "t": {}}, lanes: map[string]*modelLane{},
		broadcast: map[int][]string{}, answers: map[[2]int][]string{},
	}
	for _, session := range []string{"s", "t", "nowhere"} {
		m.lanes[session] = &modelLane{}
	}
	if principal { // the commands that created the sessions have outcomes too
		m.kept["ann"] = []*modelled{{}, {}}
	}
	return m
}

func (m *engineModel) later(after int, do func()) {
	at := m.now + after
	m.tied = m.tied || slices.ContainsFunc(m.events, func(e modelEvent) bool { return e.at == at })
	m.events = append(m.events, modelEvent{at, do})
}

// run executes all events.
func (m *engineModel) run() {
	for len(m.events) > 0 {
		slices.SortFunc(m.events, func(a, b modelEvent) int { return a.at - b.at })
		e := m.events[0]
		m.events = m.events[1:]
		m.now = e.at
		e.do()
	}
}

func (m *engineModel) tell(what string, i intent, more string) {
	m.broadcast[m.now] = append(m.broadcast[m.now], strings.TrimSpace(what+" "+i.name()+" "+i.kind+" "+more))
}

// answer responds to the client if the command's connection still exists.
func (m *engineModel) answer(i intent, outcome string) {
	if m.conns[i.client] == i.conn {
		at := [2]int{i.client, i.conn}
		m.answers[at] = append(m.answers[at], i.id+" "+i.kind+" "+outcome)
	}
}

// space returns the namespace of the ids of an intent.
func (m *engineModel) space(i intent) string {
	if m.principal {
		return "ann"
	}
	return fmt.Sprintf("%d.%d", i.client, i.conn)
}

// names returns the names of an intent's outcome, and their owner.
func (m *engineModel) names(i intent) (whose string, names []string) {
	if i.id == "" {
		return "", nil
	}
	whose = m.space(i)
	names = []string{whose + "/" + i.id}
	if i.key != "" && !m.principal {
		return "*", append(names, "*/"+i.id+"/"+i.key)
	}
	return whose, names
}

// remember keeps the latest outcomes of the owner of the id.
func (m *engineModel) remember(x *modelled) {
	whose, names := m.names(x.intent)
	if names == nil {
		return
	}
	m.kept[whose] = append(m.kept[whose], x)
	if len(m.kept[whose]) <= m.most {
		return
	}
	oldest := m.kept[whose][0]
	m.kept[whose] = m.kept[whose][1:]
	maps.DeleteFunc(m.ids, func(_ string, y *modelled) bool { return y == oldest })
}

func (m *engineModel) submit(i intent) {
	if i.leaves {
		m.conns[i.client]++
		return
	}
	i.conn = m.conns[i.client]
	var before *modelled
	token := fmt.Sprintf("idempotencyKey '%s'", i.key)
	if i.key != "" {
		before = m.keys[i.session+"/"+i.key]
		if before != nil && before.outcome != "" && m.now-before.finished >= m.ttl {
			before = nil
		}
	}
	_, names := m.names(i)
	slices.Reverse(names) // the key is looked up first
	for _, name := range names {
		if before == nil {
			before, token = m.ids[name], fmt.Sprintf("id '%s'", i.id)
		}
	}
	switch {
	case before != nil && before.meaning() != i.meaning():
		m.answer(i, fmt.Sprintf("Conflicting %s: previously used for '%s', now used for '%s'", token, before.kind, i.kind))
		return
	case before != nil:
		m.tell("accepted", i, "")
		if before.again = append(before.again, i); before.outcome != "" {
			m.replay(before)
		}
		return
	}
	x := &modelled{intent: i}
	for _, name := range names {
		m.ids[name] = x
	}
	if i.key != "" {
		m.keys[i.session+"/"+i.key] = x
	}
	m.tell("accepted", i, "")
	m.admitted = append(m.admitted, x)
	if x.number = len(m.admitted); i.kind != "create_session" {
		x.meant = m.sessions[i.session]
	}
	l := m.lanes[i.session]
	if i.control && !m.making(l, x) || m.makesAnother(x) {
		m.begin(x)
	} else {
		l.waiting = append(l.waiting, x)
		m.advance(l)
	}
	if !x.settled && i.limit > 0 {
		m.later(i.limit, func() { m.expire(x) })
	}
}

// makesAnother reports whether x creates a session that exists and that no command before x
// deletes.
func (m *engineModel) makesAnother(x *modelled) bool {
	return x.kind == "create_session" && len(x.depends) == 0 && m.sessions[x.session] != nil &&
		!slices.ContainsFunc(m.admitted, func(y *modelled) bool {
			return y.kind == "delete_session" && y.session == x.session && y.outcome == "" && y != x
		})
}

func (m *engineModel) replay(x *modelled) {
	for _, i := range x.again {
		m.tell("finished", i, x.outcome+" replayed")
		m.answer(i, x.outcome+" replayed")
	}
	x.again = nil
}

func (m *engineModel) advance(l *modelLane) {
	if l.turning {
		return
	}
	l.turning = true
	for {
		at := slices.IndexFunc(l.waiting, func(x *modelled) bool { return l.running == nil || x.control && !m.making(l, x) })
		if at < 0 {
			break
		}
		x := l.waiting[at]
		if l.waiting = slices.Delete(l.waiting, at, at+1); !x.control {
			l.running = x
		}
		m.begin(x)
	}
	l.turning = false
}

// making reports whether a missing session is created in the lane before x.
func (m *engineModel) making(l *modelLane, x *modelled) bool {
	before := l.waiting
	if at := slices.Index(before, x); at >= 0 {
		before = before[:at]
	}
	makes := func(y *modelled) bool { return y != nil && y.kind == "create_session" }
	return m.lookup(x) == nil && (makes(l.running) || slices.ContainsFunc(before, makes))
}

// lookup returns the session that x is for, if it exists.
func (m *engineModel) lookup(x *modelled) *modelSession {
	if x.meant != nil && x.meant.deleted && x.number < x.meant.until {
		return nil
	}
	return m.sessions[x.session]
}

func (m *engineModel) begin(x *modelled) {
	x.started = true
	m.tell("started", x.intent, "")
	m.proceed(x)
}

func (m *engineModel) proceed(x *modelled) {
	for ; x.met < len(x.depends); x.met++ {
		d := x.depends[x.met]
		on := m.ids[m.space(x.intent)+"/"+d]
		switch {
		case d == x.id:
			m.settle(x, "Command '"+d+"' cannot depend on itself")
			return
		case on == nil:
			m.settle(x, "Dependency '"+d+"' is unknown")
			return
		case on.outcome == "" && !x.control && on.session == x.session && (!on.control || slices.Contains(m.lanes[x.session].waiting, on)):
			m.settle(x, "Dependency '"+d+"' is queued in the same lane and cannot be awaited from this command")
			return
		case on.outcome == "" && m.waitsFor(on, x):
			m.settle(x, "Dependency '"+d+"' waits for this command and cannot be awaited from it")
			return
		case on.outcome == "":
			x.waits = on
			on.dependents = append(on.dependents, x)
			m.later(m.dependencyLimit, func() {
				if x.waits == on && !x.settled {
					x.waits = nil
					m.settle(x, fmt.Sprintf("Command 'dependsOn:%s' timed out after %dms", d, m.dependencyLimit/1000))
				}
			})
			return
		case !strings.HasPrefix(on.outcome, "ok"):
			m.settle(x, "Dependency '"+d+"' failed: "+strings.TrimSuffix(on.outcome, " timedOut"))
			return
		}
	}
	x.on = m.lookup(x)
	switch {
	case x.ifVersion >= 0 && x.on == nil:
		m.settle(x, fmt.Sprintf("Session %s not found for ifSessionVersion=%d", x.session, x.ifVersion))
	case x.ifVersion >= 0 && x.ifVersion != x.on.version:
		m.settle(x, fmt.Sprintf("Session version mismatch: expected %d, got %d", x.ifVersion, x.on.version))
	case x.kind == "create_session" && x.on != nil:
		m.settle(x, "Session "+x.session+" already exists")
	case x.kind == "create_session":
		m.sessions[x.session] = &modelSession{}
		m.settle(x, "ok 0")
	case x.on == nil:
		m.settle(x, "Session "+x.session+" not found")
	case x.kind == "delete_session":
		x.on.deleted, x.on.until = true, x.number
		delete(m.sessions, x.session)
		m.settle(x, "ok")
	case x.takes == 0:
		m.worked(x)
	default:
		x.working = true
		m.later(x.takes, func() {
			x.working = false
			m.worked(x)
			m.release(x)
		})
	}
}

// waitsFor reports whether y waits for x, directly or not.
func (m *engineModel) waitsFor(y, x *modelled) bool {
	for seen := map[*modelled]bool{}; y != nil && y.outcome == "" && !seen[y]; {
		if y == x {
			return true
		}
		seen[y] = true
		next := y.waits
		if l := m.lanes[y.session]; slices.Contains(l.waiting, y) {
			next = l.running
		}
		y = next
	}
	return false
}

func (m *engineModel) worked(x *modelled) {
	switch {
	case x.settled:
	case x.fails:
		m.settle(x, "it failed")
	case x.on.deleted:
		m.settle(x, "ok")
	default:
		if x.mutates {
			x.on.version++
		}
		m.settle(x, fmt.Sprintf("ok %d", x.on.version))
	}
}

func (m *engineModel) expire(x *modelled) {
	if x.settled {
		return
	}
	l := m.lanes[x.session]
	l.waiting = slices.DeleteFunc(l.waiting, func(y *modelled) bool { return x == y })
	x.waits = nil
	m.settle(x, fmt.Sprintf("Command '%s' timed out after %dms timedOut", x.kind, x.limit/1000))
}

func (m *engineModel) settle(x *modelled, outcome string) {
	x.settled, x.outcome, x.finished = true, outcome, m.now
	m.remember(x)
	m.tell("finished", x.intent, outcome)
	m.answer(x.intent, outcome)
	m.replay(x)
	m.release(x)
	for _, y := range x.dependents {
		if y.waits == x {
			y.waits = nil
			m.woken = append(m.woken, y)
		}
	}
	x.dependents = nil
	if m.waking {
		return
	}
	m.waking = true
	for len(m.woken) > 0 {
		y := m.woken[0]
		if m.woken = m.woken[1:]; !y.settled {
			m.proceed(y)
		}
	}
	m.waking = false
}

func (m *engineModel) release(x *modelled) {
	if l := m.lanes[x.session]; l.running == x && x.settled && !x.working {
		l.running = nil
		m.advance(l)
	}
}
