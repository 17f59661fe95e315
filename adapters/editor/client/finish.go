package client

import (
	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// finish ends the task by the answer to the prompt.
func (t *turn) finish(m jsonrpc.Message) error {
	if m.Err != nil {
		err := t.conn.explain("the prompt", m.Err)
		if m.Err.Code == wire.CodeResourceNotFound {
			t.session.over = "the agent does not know the session any more"
		}
		if f := core.AsFault(err); t.isCancelling() || f.Code == core.CodeCancelled {
			// An agent must answer cancelled, but some answer with an error.
			t.conn.opts.Count("editor.cancelled_by_error")
			return t.conclude(core.Cancelled{Reason: t.whyCancelled()}, nil)
		}
		if t.spoken { // it has worked on what it was sent
			t.learned = t.session.known.Add(t.Request().History, "")
		}
		t.frames.Reported(core.KindFailed, false) // by the host
		return err
	}
	r, fault := wire.Read[wire.PromptResponse](m.Result)
	if fault != nil {
		return core.NewFault(core.CodeInvalid, "the agent's answer to the prompt: %s", fault.Message)
	}
	u, ok := usageOf(r, m.Result)
	if u.Cost = t.session.cost.take(); ok || u.Cost.Nanos > 0 {
		t.report(u, nil)
	}
	switch r.StopReason {
	case wire.StopRefusal: // neither the prompt nor the turns before it are part of the conversation
	case wire.StopCancelled: // the thread does not have the turn
		t.learned = t.session.known.Add(t.Request().History, "")
	default:
		t.learned = t.session.known.Add(t.Request().History, t.Task())
	}
	foreign := resultForeign(m.Result, r.StopReason)
	switch r.StopReason {
	case wire.StopEndTurn:
		return t.conclude(core.Done{Truncated: t.truncated}, foreign)
	case wire.StopMaxTokens, wire.StopMaxTurnRequests:
		return t.conclude(core.Done{Truncated: true}, foreign)
	case wire.StopCancelled:
		return t.conclude(core.Cancelled{Reason: t.whyCancelled()}, foreign)
	case wire.StopRefusal:
		f := core.NewFault(core.CodeNotAuthorized, "the agent refuses to go on with this request; it is not part of the conversation")
		f.PeerCode = wire.StopRefusal
		return t.conclude(core.Failed{Fault: f}, foreign)
	}
	t.conn.opts.Count("editor.unknown_stop_reason")
	return t.conclude(core.Done{Truncated: t.truncated}, foreign)
}

// conclude reports the end of the task.
func (t *turn) conclude(end core.Body, foreign *core.Foreign) error {
	t.tellWaiting()
	t.unsteered()
	t.report(end, foreign)
	return t.muted
}

// resultForeign returns what else the answer to the prompt says. The stop reason is part of it
// where the end of the task does not imply it.
func resultForeign(result strictjson.Value, reason string) *core.Foreign {
	if reason == wire.StopEndTurn {
		return wire.Rest(result, "stopReason", "usage")
	}
	return wire.Rest(result, "usage")
}

// tokens returns usage as the hub counts it.
func tokens(u wire.Usage) core.Usage {
	return core.Usage{Input: u.InputTokens, Output: u.OutputTokens, CacheRead: u.CachedReadTokens, CacheWrite: u.CachedWriteTokens, Thinking: u.ThoughtTokens}
}

// usageOfChunk returns the tokens of a call of the model, which Qwen Code tells with a chunk that has
// no text.
func usageOfChunk(u *wire.Update) (core.Usage, bool) {
	var spent wire.Usage
	v := u.Whole.Get("_meta", "usage")
	if v.Kind() != strictjson.Object || v.Decode(&spent) != nil {
		return core.Usage{}, false
	}
	return tokens(spent), true
}

// usageOf returns the tokens of a turn where the agent counts them: claude-agent-acp as usage,
// Gemini CLI as quota among the metadata. The tokens of the protocol's own usage_update are the
// size of the context and no sum.
func usageOf(r wire.PromptResponse, result strictjson.Value) (core.Usage, bool) {
	if r.Usage != nil {
		return tokens(*r.Usage), true
	}
	var quota struct {
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
	}
	count := result.Get("_meta", "quota", "token_count")
	if count.Absent() || count.Decode(&quota) != nil {
		return core.Usage{}, false
	}
	u := core.Usage{Input: quota.Input, Output: quota.Output}
	var models []struct {
		Model string `json:"model"`
	}
	if v := result.Get("_meta", "quota", "model_usage"); v.Exists() && v.Decode(&models) == nil && len(models) == 1 {
		u.Model = models[0].Model
	}
	return u, true
}
