package wire

import (
	"errors"
	"fmt"
)

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

func (r *PromptResponse) check() error { return need("stopReason", r.StopReason) }

// Usage is the tokens of a turn, as claude-agent-acp counts them.
type Usage struct {
	InputTokens       int64 `json:"inputTokens"`
	OutputTokens      int64 `json:"outputTokens"`
	CachedReadTokens  int64 `json:"cachedReadTokens,omitempty"`
	CachedWriteTokens int64 `json:"cachedWriteTokens,omitempty"`
	ThoughtTokens     int64 `json:"thoughtTokens,omitempty"`
	TotalTokens       int64 `json:"totalTokens"`
}
