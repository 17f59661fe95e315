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

// tally is what was counted of a type.
type tally struct{ messages, nanoseconds atomic.Int64 }

// unknownType stands for every type that the dialect does not have: peers may make up
// as many as they like.
const unknownType = "unknown"

// NewTraffic returns a Traffic that has counted nothing.
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

// fromHub are the types of message that the hub sends.
var fromHub = []string{
	wire.TypeRegistered, wire.TypeTask, wire.TypeTaskCancelled, wire.TypeHeartbeatAck, wire.TypeConfigUpdate, wire.TypeError, wire.TypeDisconnect,
	wire.TypeTaskAccepted, wire.TypeTaskProgress, wire.TypeTaskResult, wire.TypeTaskError,
}

// Each tells what was counted of every type that there was: how many messages, and how
// long the hub took over those that it received.
func (t *Traffic) Each(yield func(direction, kind string, messages int64, took time.Duration)) {
	for _, way := range []struct {
		name string
		of   map[string]*tally
	}{{"sent", t.sent}, {"received", t.received}} {
		for kind, n := range way.of {
			if m := n.messages.Load(); m > 0 {
				yield(way.name, kind, m, time.Duration(n.nanoseconds.Load()))
			}
		}
	}
}

// goes counts a message to an agent. A nil Traffic counts nothing.
func (t *Traffic) goes(kind string) {
	if t != nil {
		t.sent[kind].messages.Add(1)
	}
}

// came counts a message of an agent that was dealt with since at.
func (t *Traffic) came(kind string, at time.Time) {
	if t == nil {
		return
	}
	n := t.received[kind]
	if n == nil {
		n = t.received[unknownType]
	}
	n.messages.Add(1)
	n.nanoseconds.Add(int64(time.Since(at)))
}
