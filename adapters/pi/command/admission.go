package command

import (
	"fmt"
	"strconv"
	"time"
)

// Submit takes a command from a client and refuses, replays or admits it (section 7.1). A
// command that is refused has a response and no lifecycle event. Submit fills in x, which
// is the command's execution from then on. It takes a turn.
func (e *Engine) Submit(c *Client, cmd Command, x *Execution) {
	problem := validate(cmd) // can take a while, and needs no turn
	now := time.Now()
	if problem == "" {
		e.prepare(x, c, cmd, now)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	refuse := func(text string) { c.Sink.Send(appendResponse(nil, cmd, response{err: text})) }
	if c.Pending >= e.opts.MaxPending {
		e.Reject(overPending)
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
	before, conflict := e.replay.find(x.tracked, now)
	switch {
	case conflict != "":
		refuse(conflict)
		return
	case before != nil && e.stale(before):
		x.redo(before.response)
	case before != nil:
		if text := e.replayTo(x, before); text != "" {
			refuse(text)
		}
		return
	}
	if text := e.overLimit(c.Namespace, cmd); text != "" {
		refuse(text)
		return
	}
	e.admit(x)
}

// prepare fills in x for a valid command. It needs no turn.
func (e *Engine) prepare(x *Execution, c *Client, cmd Command, now time.Time) {
	name := cmd.id
	if name == "" {
		name = AnonymousPrefix + strconv.FormatInt(e.startedAt, 10) + ":" + strconv.FormatUint(e.anonymous.Add(1), 10)
	}
	key, _ := cmd.Text("idempotencyKey")
	x.Command, x.client, x.admitted, x.engine = cmd, c, now, e
	k := &tracked{
		commandInfo: commandInfo{name: name, explicit: cmd.id != "", kind: cmd.Kind, key: key, session: cmd.Session, scope: c.Scope, lane: cmd.lane(), fingerprint: fingerprintOf(cmd)},
		x:           x,
	}
	k.ids = appendIDs(k.idBuf[:0], c.Namespace, cmd.id, key)
	k.identity = appendIdentity(nil, cmd, name)
	if key != "" {
		k.keyed = scopedKey{c.Scope, k.lane, key}
	}
	x.tracked = k
	items, _ := cmd.List("dependsOn")
	for _, item := range items {
		id, _ := item.Text()
		x.dependsOn = append(x.dependsOn, id)
	}
}

// admit admits a new command, which from here on finishes exactly once.
func (e *Engine) admit(x *Execution) {
	e.admissions++
	x.tracked.number = e.admissions
	named := x.Find()
	if !x.CreatesSession() {
		x.target = named
	}
	e.host.Admitted(x, named)
	x.client.Pending++
	e.inFlight[x] = struct{}{}
	e.inFlightBytes += x.size
	e.replay.add(x.tracked)
	x.recordAccepted()
	x.announce(PhaseAccepted, x.admitted, nil)
	if x.overtakes() {
		x.execute()
	} else {
		x.enqueue()
	}
	if !x.settled {
		x.startTimer()
	}
}

// Find returns the session that the command is for now, or nil. After a delete_session that
// was admitted later, it does not return a new session of that name.
func (x *Execution) Find() Session {
	if m := x.target; m != nil {
		switch until, gone := m.Deleted(); {
		case !gone:
			return m
		case x.tracked.number < until:
			return nil
		}
	}
	return x.engine.host.Find(Key{x.client.Scope, x.Session})
}
