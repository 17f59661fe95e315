package pi

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// anonymous begins the ids that the server gives to commands without one.
const anonymous = "anon:"

// execution is one admitted command.
type execution struct {
	command
	client   *connection
	known    *known
	admitted time.Time
	lane     *lane    // nil of a command that overtook
	meant    *session // which it was admitted for, if there was one
	on       *session // which it is for, once it runs
	// before is what came of it before the start, of a command that is done again; nil of
	// every other.
	before *response
	// readers are who had subscribed to that session when it was admitted.
	readers []*connection
	phases  []byte // room for the frames of its lifecycle events to come
	// abort stops what a command does that goes on, when its time is over; nil has
	// nothing to stop. Server.mu is held when it is called.
	abort func()

	// queued says that it succeeds because its message waits in memory.
	queued bool

	// How far it is. started says that command_started was said, working that its
	// handler goes on, settled that its outcome is certain and told that clients have
	// been told.
	started, working, settled, told bool
	// unkept says that the journal does not have it yet, held that it waits for that.
	unkept, held bool

	// depends are the ids that it depends on, of which met are satisfied; awaited is
	// the one that it waits for.
	depends []string
	met     int
	awaited *known
	waiting *time.Timer

	// clock ends it when its time is over. Guarded says that somebody else does: the
	// hub, at the deadline of a prompt's task.
	clock   *time.Timer
	guarded bool
	expired bool
}

// outcome is what a handler says. The zero outcome is success without data.
type outcome struct {
	data     json.RawMessage
	err      string
	timedOut bool
	// after runs behind the response.
	after func()
	// pending says that the command goes on: finish is called later.
	pending bool
}

func failed(text string) outcome { return outcome{err: text} }

// submit takes a command from a client: admission decides whether it counts at all
// (section 7.1), execution is up to its lane. What is refused here has a response
// and no lifecycle event.
func (s *Server) submit(c *connection, cmd command) {
	problem := validate(cmd) // which can take a while, and needs no lock
	now := time.Now()
	var x *execution
	if problem == "" {
		x = s.newExecution(c, cmd, now)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	refuse := func(text string) { c.push(item{frame: appendResponse(nil, cmd, response{err: text})}) }
	if c.pending >= s.opts.MaxPending {
		s.reject(beyondPending)
		refuse(fmt.Sprintf("Too many pending commands for this %s (max %d)", c.carrier(), s.opts.MaxPending))
		return
	}
	if s.draining {
		refuse("Server is shutting down")
		return
	}
	if problem != "" {
		if cmd.spec == nil {
			s.count("refused.foreign")
		}
		refuse(problem)
		return
	}
	before, conflict := s.memory.find(x.known, now)
	switch {
	case conflict != "":
		refuse(conflict)
		return
	case before != nil && s.outdated(before):
		x.doAgain(before.response)
	case before != nil:
		if text := s.repeat(x, before); text != "" {
			refuse(text)
		}
		return
	}
	if text := s.overLimit(c.space, cmd); text != "" { // it is known to be new here
		refuse(text)
		return
	}
	s.admit(x)
}

// newExecution returns a command that may be admitted. It needs no lock.
func (s *Server) newExecution(c *connection, cmd command, now time.Time) *execution {
	name := cmd.id
	if name == "" {
		name = anonymous + strconv.FormatInt(s.begun, 10) + ":" + strconv.FormatUint(s.unnamed.Add(1), 10)
	}
	key, _ := cmd.text("idempotencyKey")
	x := &execution{command: cmd, client: c, admitted: now}
	k := &known{
		about: about{name: name, explicit: cmd.id != "", kind: cmd.kind, key: key, session: cmd.session, scope: c.scope, lane: cmd.lane(), print: fingerprintOf(cmd)},
		x:     x,
	}
	k.names = namesOf(k.few[:0], c.space, cmd.id, key)
	k.identity = appendIdentity(nil, cmd, name)
	if key != "" {
		k.keyed = keyName{c.scope, k.lane, key}
	}
	x.known = k
	if items, ok := cmd.list("dependsOn"); ok {
		x.depends = texts(items)
	}
	return x
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

// admit lets a new command count: from here on it is finished exactly once.
func (s *Server) admit(x *execution) {
	s.admissions++
	x.known.number = s.admissions
	named := s.lookup(x)
	if !x.makes() {
		x.meant = named
	}
	x.seenBy(named)
	x.client.pending++
	s.flying[x] = struct{}{}
	s.flyingBytes += x.size
	s.memory.add(x.known)
	s.keepAccepted(x)
	s.note(x.known, phaseAccepted, x.admitted, nil)
	s.announce(x, x.lifecycle("accepted", nil))
	if s.overtakes(x) {
		s.execute(x)
	} else {
		s.enqueue(x)
	}
	if !x.settled {
		s.setClock(x)
	}
}

// engineCounts are the numbers of the engine, for who measures it.
type engineCounts struct {
	InFlight, Outcomes, OutcomeBytes, Keys, Lanes int
	// Admitted is how many commands were admitted, Overflown how many were refused
	// because too many were in flight.
	Admitted, Overflown uint64
}

// counts returns the numbers of the engine. Server.mu is held.
func (s *Server) counts() engineCounts {
	return engineCounts{
		InFlight: len(s.flying), Outcomes: s.memory.order.Len(), OutcomeBytes: s.memory.held, Keys: len(s.memory.keys),
		Lanes: len(s.lanes), Admitted: s.admissions, Overflown: uint64(s.rejected[beyondInFlight].Load()),
	}
}
