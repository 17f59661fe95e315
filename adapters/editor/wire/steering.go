package wire

import "encoding/json"

// MethodSteering gives an agent context while a turn runs. It is an extension, which Claude Code and Codex
// announce by steering.supported in the _meta of the result of initialize.
const MethodSteering = "_session/steering"

// SteeringInjected is the outcome of context that has reached the turn. With any other, such as
// promptRequired where none runs, it has not.
const SteeringInjected = "injected"

// The outcomes of context that has not reached a turn: because none runs, or for the reason told.
const (
	SteeringPromptRequired = "promptRequired"
	SteeringFailed         = "failed"
)

// SteeringRequest is its params.
type SteeringRequest struct {
	SessionID string          `json:"sessionId"`
	Prompt    []Block         `json:"prompt"`
	Meta      json.RawMessage `json:"_meta,omitempty"`
}

// NewSteering returns the params that start no turn where none runs: nobody would be told of its end.
func NewSteering(session string, blocks ...Block) SteeringRequest {
	return SteeringRequest{session, blocks, json.RawMessage(`{"steering":{"idleBehavior":"promptRequired"}}`)}
}

// SteeringResponse is its result.
type SteeringResponse struct {
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"`
}

func (r *SteeringRequest) check() error { return need("sessionId", r.SessionID) }

func (r *SteeringResponse) check() error { return need("outcome", r.Outcome) }
