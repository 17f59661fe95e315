package command

import (
	"encoding/json"
	"time"
)

// DeliveryUnknown is the error of a message that was queued before a restart: it may or may
// not have been delivered, and sending it again is up to the client.
const DeliveryUnknown = "Message was queued before previous shutdown and may not have been said: look at the conversation, and send it under another id where it is missing"

// stale reports whether the outcome of a command no longer holds: it describes the memory
// of an earlier process, or subscribed to a session that is parked now. Such a command is
// executed again instead of replayed.
func (e *Engine) stale(k *tracked) bool {
	switch {
	case k.x != nil || k.response.err != "":
		return false
	case k.run != 0:
		of := Table[k.kind]
		return of != nil && of.Volatile
	}
	return k.kind == "switch_session" && e.host.IsParked(Key{k.scope, k.session})
}

// redo prepares x to be executed again. Its dependencies and its version were checked the
// first time and are not checked again.
func (x *Execution) redo(prior response) {
	x.prior, x.dependsOn = &prior, nil
	if x.Session != "" || !x.CreatesSession() {
		return
	}
	var created struct { // the server chose the id of the session
		SessionID string `json:"sessionId"`
	}
	if x.DecodePrior(&created) {
		x.Session = created.SessionID
	}
}

// DecodePrior decodes the earlier outcome of x into data. It reports false where x is not
// executed again.
func (x *Execution) DecodePrior(data any) bool {
	return x.prior != nil && json.Unmarshal(x.prior.data, data) == nil
}

// PriorData returns the data of the earlier outcome of x, which must be executed again.
func (x *Execution) PriorData() json.RawMessage { return x.prior.data }

// replayTo answers x with the outcome of an equal command, at once or when that has
// finished (section 7.4). It returns why not, where too many wait already.
func (e *Engine) replayTo(x *Execution, original *tracked) string {
	if original.x != nil && e.duplicates >= e.opts.MaxInFlight {
		e.Reject(overInFlight)
		return TooManyInFlight
	}
	x.client.Pending++
	e.host.Admitted(x, x.Find())
	x.announce(PhaseAccepted, x.admitted, nil)
	if original.x != nil {
		x.keepFields()
		original.duplicates = append(original.duplicates, x)
		e.duplicates++
		return ""
	}
	e.answerDuplicate(x, x.admitted, original.response)
	return ""
}

func (e *Engine) answerDuplicate(x *Execution, at time.Time, r response) {
	r.replayed = true
	x.respond(at, r)
	if r.err == "" {
		e.host.Replayed(x)
	}
}
