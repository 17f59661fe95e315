package wire

import (
	"encoding/json"
	"errors"
	"fmt"
)

// PromptRequest is the params of session/prompt: one turn.
type PromptRequest struct {
	SessionID string          `json:"sessionId"`
	Prompt    []Block         `json:"prompt"`
	Meta      json.RawMessage `json:"_meta,omitempty"`
}

func (r *PromptRequest) check() error {
	if err := need("sessionId", r.SessionID); err != nil {
		return err
	}
	if len(r.Prompt) == 0 {
		return errors.New("prompt: missing; send at least one content block")
	}
	for i, b := range r.Prompt {
		if err := b.Check(); err != nil {
			return fmt.Errorf("prompt[%d].%w", i, err)
		}
	}
	return nil
}

// StopReason says why a turn has ended.
type StopReason string

// The stop reasons.
const (
	StopEndTurn         StopReason = "end_turn"
	StopMaxTokens       StopReason = "max_tokens"
	StopMaxTurnRequests StopReason = "max_turn_requests"
	StopRefusal         StopReason = "refusal"
	StopCancelled       StopReason = "cancelled"
)

// PromptResponse is its result.
type PromptResponse struct {
	StopReason StopReason `json:"stopReason"`
	// Usage is sent by some agents; it is not in the schema of version 1.
	Usage *Usage          `json:"usage,omitempty"`
	Meta  json.RawMessage `json:"_meta,omitempty"`
}

func (r *PromptResponse) check() error { return need("stopReason", string(r.StopReason)) }

// Usage is the tokens of a turn, as claude-agent-acp counts them.
type Usage struct {
	InputTokens       int64 `json:"inputTokens"`
	OutputTokens      int64 `json:"outputTokens"`
	CachedReadTokens  int64 `json:"cachedReadTokens,omitempty"`
	CachedWriteTokens int64 `json:"cachedWriteTokens,omitempty"`
	ThoughtTokens     int64 `json:"thoughtTokens,omitempty"`
	TotalTokens       int64 `json:"totalTokens"`
}
