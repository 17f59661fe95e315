package wire

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
)

// The kinds of options of a permission.
const (
	AllowOnce    = "allow_once"
	AllowAlways  = "allow_always"
	RejectOnce   = "reject_once"
	RejectAlways = "reject_always"
)

// PermissionRequest is the params of session/request_permission. The tool call is an update:
// its title and input may have come earlier.
type PermissionRequest struct {
	SessionID string             `json:"sessionId"`
	ToolCall  ToolCall           `json:"toolCall"`
	Options   []PermissionOption `json:"options"`
	Meta      json.RawMessage    `json:"_meta,omitempty"`
}

func (r *PermissionRequest) check() error {
	if err := cmp.Or(need("sessionId", r.SessionID), need("toolCall.toolCallId", r.ToolCall.ToolCallID)); err != nil {
		return err
	}
	if len(r.Options) == 0 {
		return errors.New("options: missing; send at least one option")
	}
	for i, o := range r.Options {
		if o.OptionID == "" {
			return fmt.Errorf("options[%d].%w", i, need("optionId", ""))
		}
	}
	return nil
}

// PermissionOption is an answer that the agent offers.
type PermissionOption struct {
	OptionID string          `json:"optionId"`
	Name     string          `json:"name"`
	Kind     string          `json:"kind"`
	Meta     json.RawMessage `json:"_meta,omitempty"`
}

// The outcomes of a permission request.
const (
	OutcomeSelected  = "selected"
	OutcomeCancelled = "cancelled"
)

// PermissionResponse is its result.
type PermissionResponse struct {
	Outcome PermissionOutcome `json:"outcome"`
	Meta    json.RawMessage   `json:"_meta,omitempty"`
}

func (r *PermissionResponse) check() error {
	switch r.Outcome.Outcome {
	case OutcomeCancelled:
		return nil
	case OutcomeSelected:
		return need("outcome.optionId", r.Outcome.OptionID)
	}
	return fmt.Errorf("outcome.outcome: want selected or cancelled, got %q", r.Outcome.Outcome)
}

// PermissionOutcome is the option that was selected, or that the turn was cancelled.
type PermissionOutcome struct {
	Outcome  string `json:"outcome"`
	OptionID string `json:"optionId,omitempty"`
}

// Option returns the first option of the kinds, in the order of the kinds.
func (r *PermissionRequest) Option(kinds ...string) (PermissionOption, bool) {
	for _, kind := range kinds {
		for _, o := range r.Options {
			if o.Kind == kind {
				return o, true
			}
		}
	}
	return PermissionOption{}, false
}
