package parallax

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
)

// Traffic counts the messages of many connections. It is safe for concurrent use; make
// one with NewTraffic.
type Traffic struct{ sent, received map[string]*tally }

// tally is the count of one type.
type tally struct{ messages, nanoseconds atomic.Int64 }

// unknownType counts every type that the dialect does not have, since peers may send any
// number of them.
const unknownType = "unknown"

// NewTraffic returns a Traffic with all counts zero.
func NewTraffic() *Traffic {
	t := &Traffic{sent: map[string]*tally{}, received: map[string]*tally{}}
	for _, kind := range append(slices.Clone(wire.FromAgent), unknownType) {
		t.received[kind] = &tally{}
	}
	for _, kind := range fromHub {
		t.sent[kind] = &tally{}
	}
	return t
}

// fromHub lists the types of message that the hub sends.
var fromHub = []string{
	wire.TypeRegistered, wire.TypeTask, wire.TypeTaskCancelled, wire.TypeHeartbeatAck, wire.TypeConfigUpdate, wire.TypeError, wire.TypeDisconnect,
	wire.TypeTaskAccepted, wire.TypeTaskProgress, wire.TypeTaskResult, wire.TypeTaskError,
}

// Each calls yield for each type that was counted, with the number of messages and the
// time that the hub took to handle received ones.
func (t *Traffic) Each(yield func(direction, kind string, messages int64, took time.Duration)) {
	for direction, tallies := range map[string]map[string]*tally{"sent": t.sent, "received": t.received} {
		for kind, n := range tallies {
			if m := n.messages.Load(); m > 0 {
				yield(direction, kind, m, time.Duration(n.nanoseconds.Load()))
			}
		}
	}
}

// countSent counts a message to an agent. A nil Traffic counts nothing.
func (t *Traffic) countSent(kind string) {
	if t != nil {
		t.sent[kind].messages.Add(1)
	}
}

// countReceived counts a message of an agent whose handling began at start.
func (t *Traffic) countReceived(kind string, start time.Time) {
	if t == nil {
		return
	}
	n := t.received[kind]
	if n == nil {
		n = t.received[unknownType]
	}
	n.messages.Add(1)
	n.nanoseconds.Add(int64(time.Since(start)))
}
