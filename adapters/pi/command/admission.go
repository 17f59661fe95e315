package command

import (
	"fmt"
	"strconv"
	"time"
)

// Submit takes a command from a client: admission decides whether it counts at all
// (section 7.1), execution is up to its lane. What is refused here has a response
// and no lifecycle event. x is the memory of the command's execution. Submit takes a turn.
func (e *Engine) Submit(c *Client, cmd Command, x *Execution) {
	problem := validate(cmd) // which can take a while, and needs no turn
	now := time.Now()
	if problem == "" {
		e.fill(x, c, cmd, now)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	refuse := func(text string) { c.Sink.Send(appendResponse(nil, cmd, response{err: text})) }
	if c.Pending >= e.opts.MaxPending {
		e.Reject(beyondPending)
		refuse(fmt.Sprintf("Too many pending commands for this %s (max %d)", c.Carrier, e.opts.MaxPending))
		return
	}
	if e.draining {
		refuse("Server is shutting down")
		return
	}
	if problem != "" {
		if cmd.Spec == nil {
			e.host.Count("refused.foreign")
		}
		refuse(problem)
		return
	}
	before, conflict := e.memory.find(x.known, now)
	switch {
	case conflict != "":
		refuse(conflict)
		return
	case before != nil && e.outdated(before):
		x.redo(before.response)
	case before != nil:
		if text := e.repeat(x, before); text != "" {
			refuse(text)
		}
		return
	}
	if text := e.overLimit(c.Namespace, cmd); text != "" { // it is known to be new here
		refuse(text)
		return
	}
	e.admit(x)
}

// fill makes x a command that may be admitted. It needs no turn.
func (e *Engine) fill(x *Execution, c *Client, cmd Command, now time.Time) {
	name := cmd.id
	if name == "" {
		name = AnonymousPrefix + strconv.FormatInt(e.begun, 10) + ":" + strconv.FormatUint(e.unnamed.Add(1), 10)
	}
	key, _ := cmd.Text("idempotencyKey")
	x.Command, x.client, x.admitted, x.engine = cmd, c, now, e
	k := &known{
		about: about{name: name, explicit: cmd.id != "", kind: cmd.Kind, key: key, session: cmd.Session, scope: c.Scope, lane: cmd.lane(), print: fingerprintOf(cmd)},
		x:     x,
	}
	k.names = namesOf(k.few[:0], c.Namespace, cmd.id, key)
	k.identity = appendIdentity(nil, cmd, name)
	if key != "" {
		k.keyed = keyName{c.Scope, k.lane, key}
	}
	x.known = k
	if items, ok := cmd.List("dependsOn"); ok {
		x.depends = texts(items)
	}
}

// admit lets a new command count: from here on it is finished exactly once.
func (e *Engine) admit(x *Execution) {
	e.admissions++
	x.known.number = e.admissions
	named := e.find(x)
	if !x.CreatesSession() {
		x.meant = named
	}
	e.host.Admitted(x, named)
	x.client.Pending++
	e.inFlight[x] = struct{}{}
	e.inFlightBytes += x.size
	e.memory.add(x.known)
	x.recordAccepted()
	e.journal.note(x.known, PhaseAccepted, x.admitted, nil)
	e.host.Announce(x, x.lifecycle("accepted", nil))
	if x.overtakes() {
		x.execute()
	} else {
		x.enqueue()
	}
	if !x.settled {
		x.setClock()
	}
}

// find returns the session that a command is for, or nil. Where that was deleted by
// one that was admitted later, it is none that was made under the name since.
func (e *Engine) find(x *Execution) Session {
	if m := x.meant; m != nil {
		switch until, gone := m.Deleted(); {
		case !gone:
			return m // which has its name as long as it lives
		case x.known.number < until:
			return nil
		}
	}
	return e.host.Find(Key{x.client.Scope, x.Session})
}
