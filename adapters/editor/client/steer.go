package client

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// steering is context that the agent has not answered yet.
type steering struct {
	id   string          // of the injection
	call json.RawMessage // the id of the request; nil if there is none
}

// steered is the answer of the agent to context.
type steered struct {
	id     string // of the injection
	answer jsonrpc.Message
}

// steer gives the agent context while it works. It does not wait for the answer: an agent that waits for a
// decision answers after that.
func (t *turn) steer(ctx context.Context, in core.Injected) {
	text := in.Content
	if from := in.Attribution(); from != "" && from != t.From().ID { // who asks needs no name
		text = "[" + from + "] " + text
	}
	given := &call{done: make(chan jsonrpc.Message, 1), early: func(m jsonrpc.Message) {
		t.queue.Put(item{steered: &steered{in.ID, m}})
	}}
	params := strictjson.Encode(wire.NewSteering(t.session.id, wire.Text(text)))
	id, err := t.conn.start(t.frames.Telling(ctx, core.KindInjected), given, wire.MethodSteering, params, nil)
	if err != nil {
		t.report(core.InjectionAnswered{ID: in.ID, Reason: core.AsFault(err).Message}, nil)
		return
	}
	t.steering = append(t.steering, steering{in.ID, id})
}

// steered reports what the agent has answered.
func (t *turn) steered(s steered) {
	at := slices.IndexFunc(t.steering, func(waits steering) bool { return waits.id == s.id })
	if at < 0 {
		return
	}
	t.steering = slices.Delete(t.steering, at, at+1)
	t.accept()
	answered := core.InjectionAnswered{ID: s.id}
	result, fault := wire.Read[wire.SteeringResponse](s.answer.Result)
	switch {
	case s.answer.Err != nil:
		answered.Reason = s.answer.Err.Message
	case fault != nil:
		answered.Reason = "the answer of the agent: " + fault.Message
	case result.Outcome == wire.SteeringInjected:
		answered.Accepted = true
	default:
		answered.Reason = "the agent answered " + result.Outcome
		if result.Reason != "" {
			answered.Reason += ": " + result.Reason
		}
	}
	t.report(answered, nil)
}

// unsteered reports context that the agent has not answered when the turn ends.
func (t *turn) unsteered() {
	for _, waits := range t.steering {
		t.conn.giveUp(waits.call, ignore)
		t.report(core.InjectionAnswered{ID: waits.id, Reason: "the turn ended before the agent answered"}, nil)
	}
	t.steering = nil
}
