package command

import (
	"container/list"
	"fmt"
	"time"
)

// Namespace is where an id means one command: all connections of an authenticated
// principal, or one connection of an open hub, whose clients may all count from 1.
type Namespace struct {
	Principal string
	Conn      uint64
}

// everybody is the space of commands on an open hub that have an idempotencyKey
// beside their id: such a pair means the same over every connection.
var everybody = Namespace{}

// idName is an id in its space; key is set in the space of everybody alone.
type idName struct {
	Namespace
	id, key string
}

// keyName is an idempotencyKey, which a session has to itself, or the server
// (section 8.2).
type keyName struct {
	scope, lane, key string
}

// about is what there is to say of a command, whatever came of it.
type about struct {
	name     string // its id, or the synthetic one
	explicit bool   // the client named it
	kind     string
	key      string
	session  string
	scope    string
	lane     string
	identity []byte // what its lifecycle events say of it
	print    fingerprint
	number   uint64 // of its admission
	run      int64  // of an earlier server, or 0
}

// known is an admitted command as the server remembers it: what came of it, or that
// it is in flight.
type known struct {
	about
	names []idName  // under which it is found; the first says whose it is
	few   [1]idName // of those, in most commands
	keyed keyName   // the zero value: it has no key
	// x is the command while it is in flight, nil once it has finished.
	x *Execution
	// response and finished are what came of it.
	response response
	finished time.Time
	// duplicates are duplicates that wait for it, dependents what depends on it.
	duplicates, dependents []*Execution

	place *list.Element // among the outcomes; nil of one that is not remembered
	size  int
}

// memory is every command that a client may name again: those in flight, and the
// outcomes of the last.
type memory struct {
	most  int           // outcomes by id, for each space
	bytes int           // of all outcomes
	ttl   time.Duration // of a key, from the end of its command

	ids  map[idName]*known
	keys map[keyName]*known
	// Outcomes leave in the order in which they came: of all, of each space, and
	// those with a key.
	order  list.List
	spaces map[Namespace]*[]*known
	aging  []*known
	held   int // bytes of the outcomes
}

func newMemory(o Options) memory {
	return memory{
		most: o.MaxOutcomes, bytes: o.OutcomeBytes, ttl: o.KeyTTL,
		ids: map[idName]*known{}, keys: map[keyName]*known{}, spaces: map[Namespace]*[]*known{},
	}
}

// namesOf appends the names of a command with an id; one without has none.
func namesOf(dst []idName, of Namespace, id, key string) []idName {
	switch {
	case id == "":
		return nil
	case of.Conn != 0 && key != "":
		return append(dst, idName{everybody, id, key}, idName{of, id, ""})
	}
	return append(dst, idName{of, id, ""})
}

// find returns the command that was known by a name of k before, and the text of
// the conflict when that was another one (sections 8.1 and 8.2).
func (m *memory) find(k *known, now time.Time) (before *known, conflict string) {
	m.age(now)
	what, token := "idempotencyKey", k.key
	if k.key != "" {
		before = m.keys[k.keyed]
	}
	if before == nil {
		what, token = "id", k.name
		for _, name := range k.names {
			if before = m.ids[name]; before != nil {
				break
			}
		}
	}
	if before != nil && before.print != k.print {
		return nil, fmt.Sprintf("Conflicting %s '%s': previously used for '%s', now used for '%s'", what, token, before.kind, k.kind)
	}
	return before, ""
}

// add makes a command in flight known.
func (m *memory) add(k *known) {
	for _, name := range k.names {
		m.ids[name] = k
	}
	if k.key != "" {
		m.keys[k.keyed] = k
	}
}

// remember keeps what came of a command that was added, and lets the oldest go
// where there is no room.
func (m *memory) remember(k *known, r response, now time.Time) {
	k.x, k.finished = nil, now
	k.response = r
	if len(k.names) == 0 && k.key == "" {
		k.response.data = nil
		return
	}
	k.size = OutcomeOverhead + len(k.identity) + len(r.data) + len(r.err)
	m.held += k.size
	k.place = m.order.PushBack(k)
	if len(k.names) > 0 {
		of := k.names[0].Namespace
		line := m.spaces[of]
		if line == nil {
			line = new([]*known)
			m.spaces[of] = line
		}
		if *line = append(*line, k); len(*line) > m.most {
			m.forgetID((*line)[0])
		}
	}
	if k.key != "" {
		m.aging = append(m.aging, k)
	}
	for m.held > m.bytes {
		oldest := m.order.Front().Value.(*known)
		m.forgetID(oldest)
		m.forgetKey(oldest)
	}
}

// OutcomeOverhead is about what a known command costs beside its texts.
const OutcomeOverhead = 512

// forgetID forgets the ids of an outcome, the oldest of its space.
func (m *memory) forgetID(k *known) {
	if len(k.names) == 0 {
		return
	}
	of := k.names[0].Namespace
	line := m.spaces[of]
	(*line)[0] = nil
	if *line = (*line)[1:]; len(*line) == 0 {
		delete(m.spaces, of)
	}
	for _, name := range k.names {
		if m.ids[name] == k {
			delete(m.ids, name)
		}
	}
	k.names = nil
	m.drop(k)
}

// forgetKey forgets the key of an outcome, the oldest of those with one.
func (m *memory) forgetKey(k *known) {
	if k.place == nil || k.key == "" || len(m.aging) == 0 || m.aging[0] != k {
		return
	}
	m.aging[0] = nil
	m.aging = m.aging[1:]
	if m.keys[k.keyed] == k {
		delete(m.keys, k.keyed)
	}
	k.keyed = keyName{}
	m.drop(k)
}

// drop lets go of an outcome that has no name any more.
func (m *memory) drop(k *known) {
	if len(k.names) > 0 || k.keyed != (keyName{}) || k.place == nil {
		return
	}
	m.order.Remove(k.place)
	k.place, k.response.data = nil, nil
	m.held -= k.size
}

// age forgets the keys whose time is over.
func (m *memory) age(now time.Time) {
	for len(m.aging) > 0 && now.Sub(m.aging[0].finished) >= m.ttl {
		m.forgetKey(m.aging[0])
	}
}

// leave forgets the ids of a connection that has ended, once nothing of it is in flight:
// nobody can name them again, and nothing depends on them.
func (m *memory) leave(of Namespace) {
	for line := m.spaces[of]; line != nil && len(*line) > 0; {
		m.forgetID((*line)[0])
	}
}
