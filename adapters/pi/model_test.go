package pi

import (
	"fmt"
	"slices"
	"strings"
)

// The reference model of the engine: what stands in the specification, said as
// plainly as it goes, on a clock of milliseconds.

// intent is one command of a client, as the model sees it.
type intent struct {
	at, client       int
	id, key          string
	kind, session    string
	takes            int // milliseconds that its work takes
	fails            bool
	depends          []string
	ifVersion        int // -1 without
	control, mutates bool
	limit            int // milliseconds, 0 without
}

// meaning is what two intents have in common that are the same.
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
	started, settled, working bool
	met                       int
	waits                     *modelled // for it
	outcome                   string
	finished                  int
	again                     []intent
	dependents                []*modelled
}

type modelEvent struct {
	at int
	do func()
}

type modelLane struct {
	waiting []*modelled
	running *modelled
	turning bool
}

type engineModel struct {
	now      int
	events   []modelEvent
	tied     bool // two things happen at once: what comes of that is nobody's promise
	ids      map[string]*modelled
	keys     map[string]*modelled
	lanes    map[string]*modelLane
	versions map[string]int
	woken    []*modelled
	waking   bool

	dependencyLimit, ttl int
	told                 map[int][]string // by time: what everybody is told
	answers              map[int][]string // by client
}

func (m *engineModel) later(after int, do func()) {
	at := m.now + after
	m.tied = m.tied || slices.ContainsFunc(m.events, func(e modelEvent) bool { return e.at == at })
	m.events = append(m.events, modelEvent{at, do})
}

// run lets everything happen.
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
	m.told[m.now] = append(m.told[m.now], strings.TrimSpace(what+" "+i.name()+" "+i.kind+" "+more))
}

func (m *engineModel) answer(i intent, outcome string) {
	m.answers[i.client] = append(m.answers[i.client], i.id+" "+i.kind+" "+outcome)
}

// names are those under which the outcome of an intent is found.
func (i intent) names() []string {
	if i.id == "" {
		return nil
	}
	own := fmt.Sprintf("%d/%s", i.client, i.id)
	if i.key == "" {
		return []string{own}
	}
	return []string{"*/" + i.id + "/" + i.key, own}
}

func (m *engineModel) submit(i intent) {
	var before *modelled
	token := fmt.Sprintf("idempotencyKey '%s'", i.key)
	if i.key != "" {
		before = m.keys[i.session+"/"+i.key]
		if before != nil && before.outcome != "" && m.now-before.finished >= m.ttl {
			before = nil
		}
	}
	for _, name := range i.names() {
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
	for _, name := range i.names() {
		m.ids[name] = x
	}
	if i.key != "" {
		m.keys[i.session+"/"+i.key] = x
	}
	m.tell("accepted", i, "")
	if i.control {
		m.begin(x)
	} else {
		l := m.lanes[i.session]
		l.waiting = append(l.waiting, x)
		m.advance(l)
	}
	if !x.settled && i.limit > 0 {
		m.later(i.limit, func() { m.expire(x) })
	}
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
	for l.running == nil && len(l.waiting) > 0 {
		l.running, l.waiting = l.waiting[0], l.waiting[1:]
		m.begin(l.running)
	}
	l.turning = false
}

func (m *engineModel) begin(x *modelled) {
	x.started = true
	m.tell("started", x.intent, "")
	m.proceed(x)
}

func (m *engineModel) proceed(x *modelled) {
	for ; x.met < len(x.depends); x.met++ {
		d := x.depends[x.met]
		on := m.ids[fmt.Sprintf("%d/%s", x.client, d)]
		switch {
		case d == x.id:
			m.settle(x, "Command '"+d+"' cannot depend on itself")
			return
		case on == nil:
			m.settle(x, "Dependency '"+d+"' is unknown")
			return
		case on.outcome == "" && !x.control && !on.control && on.session == x.session:
			m.settle(x, "Dependency '"+d+"' is queued in the same lane and cannot be awaited from this command")
			return
		case on.outcome == "":
			x.waits = on
			on.dependents = append(on.dependents, x)
			m.later(m.dependencyLimit, func() {
				if x.waits == on && !x.settled {
					x.waits = nil
					m.settle(x, fmt.Sprintf("Command 'dependsOn:%s' timed out after %dms", d, m.dependencyLimit))
				}
			})
			return
		case !strings.HasPrefix(on.outcome, "ok"):
			m.settle(x, "Dependency '"+d+"' failed: "+strings.TrimSuffix(on.outcome, " timedOut"))
			return
		}
	}
	version, here := m.versions[x.session]
	switch {
	case x.ifVersion >= 0 && !here:
		m.settle(x, fmt.Sprintf("Session %s not found for ifSessionVersion=%d", x.session, x.ifVersion))
	case x.ifVersion >= 0 && x.ifVersion != version:
		m.settle(x, fmt.Sprintf("Session version mismatch: expected %d, got %d", x.ifVersion, version))
	case !here:
		m.settle(x, "Session "+x.session+" not found")
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

func (m *engineModel) worked(x *modelled) {
	switch {
	case x.settled:
	case x.fails:
		m.settle(x, "it failed")
	default:
		if x.mutates {
			m.versions[x.session]++
		}
		m.settle(x, fmt.Sprintf("ok %d", m.versions[x.session]))
	}
}

func (m *engineModel) expire(x *modelled) {
	if x.settled {
		return
	}
	l := m.lanes[x.session]
	l.waiting = slices.DeleteFunc(l.waiting, func(y *modelled) bool { return x == y })
	x.waits = nil
	m.settle(x, fmt.Sprintf("Command '%s' timed out after %dms timedOut", x.kind, x.limit))
}

func (m *engineModel) settle(x *modelled, outcome string) {
	x.settled, x.outcome, x.finished = true, outcome, m.now
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
