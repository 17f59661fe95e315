package wire

import (
	"cmp"
	"errors"
	"fmt"
)

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

func (r *PermissionResponse) check() error {
	switch r.Outcome.Outcome {
	case OutcomeCancelled:
		return nil
	case OutcomeSelected:
		return need("outcome.optionId", r.Outcome.OptionID)
	}
	return fmt.Errorf("outcome.outcome: want selected or cancelled, got %q", r.Outcome.Outcome)
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
