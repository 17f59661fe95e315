package command

import (
	"encoding/json"
	"time"
)

// DeliveryUnknown is what a message that was queued before a restart has come to: it may or may
// not have been said, and saying it again is up to the client.
const DeliveryUnknown = "Message was queued before previous shutdown and may not have been said: look at the conversation, and send it under another id where it is missing"

// outdated reports whether what came of a command does not hold any more: it speaks of what
// an earlier process had in memory, or subscribed to a session that is parked now. Such a
// command is done again and not replayed.
func (e *Engine) outdated(k *known) bool {
	switch {
	case k.x != nil || k.response.err != "":
		return false
	case k.run != 0:
		of := Table[k.kind]
		return of != nil && of.Volatile
	}
	return k.kind == "switch_session" && e.host.IsParked(Key{k.scope, k.session})
}

// redo lets x do again what it came to before. It was let through then: what it depends
// on and the version that it wants are not asked for again.
func (x *Execution) redo(before response) {
	x.before, x.depends = &before, nil
	if x.Session != "" || !x.CreatesSession() {
		return
	}
	var made struct { // the session got its id from the server
		SessionID string `json:"sessionId"`
	}
	if x.DecodePrior(&made) {
		x.Session = made.SessionID
	}
}

// DecodePrior reads what came of x before into data, where x is done again.
func (x *Execution) DecodePrior(data any) bool {
	return x.before != nil && json.Unmarshal(x.before.data, data) == nil
}

// PriorData returns the data of what came of x before, where x is done again.
func (x *Execution) PriorData() json.RawMessage { return x.before.data }

// repeat answers a command that is known already with what came of it, at once or
// when the original has finished (section 7.4). It returns why it does not, of one that
// would wait beside too many others.
func (e *Engine) repeat(x *Execution, before *known) string {
	if before.x != nil && e.duplicates >= e.opts.MaxInFlight {
		e.Reject(beyondInFlight)
		return TooManyInFlight
	}
	x.client.Pending++
	e.journal.note(x.known, PhaseAccepted, x.admitted, nil)
	e.host.Admitted(x, e.find(x))
	e.host.Announce(x, x.lifecycle("accepted", nil))
	if before.x != nil {
		x.drop()
		before.duplicates = append(before.duplicates, x)
		e.duplicates++
		return ""
	}
	e.answerDuplicate(x, x.admitted, before.response)
	return ""
}

func (e *Engine) answerDuplicate(x *Execution, at time.Time, r response) {
	r.replayed = true
	x.tell(at, r)
	if r.err == "" {
		e.host.Replayed(x)
	}
}
