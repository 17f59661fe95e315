package client

import (
	"context"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Some agents answer the prompt before they have told the last of the turn (OpenCode by up to 0.2 s).
// So a turn ends once its agent has said nothing for a while after the answer. One that goes on ends as
// truncated, and what comes even later is told as lost in the next turn.
const (
	lateQuiet = 300 * time.Millisecond
	lateMost  = 2 * time.Second
)

// lingers reports whether the agent may say more after an answer to the prompt. A hub does not, and
// what is cancelled or refused is not waited for.
func (t *turn) lingers(answer jsonrpc.Message) bool {
	if info := t.conn.hi.AgentInfo; answer.Err != nil || t.muted != nil || t.isCancelling() || info != nil && info.Name == wire.HubName {
		return false
	}
	reason, _ := answer.Result.Get("stopReason").Text()
	return reason != wire.StopCancelled && reason != string(wire.StopRefusal)
}

// linger reports what the agent says after its answer to the prompt.
func (t *turn) linger(ctx context.Context) {
	most := time.Now().Add(lateMost)
	for {
		left := time.Until(most)
		if left <= 0 {
			t.truncated = true
			return
		}
		quiet, stop := context.WithTimeout(ctx, min(left, lateQuiet))
		it, err := t.queue.Take(quiet, ctx)
		stop()
		if err != nil {
			t.truncated = t.truncated || left < lateQuiet && ctx.Err() == nil
			return
		}
		if !t.after(ctx, &it) {
			return
		}
	}
}

// after handles what happens after the answer to the prompt. It reports false if the agent is gone or
// the hub does not want more.
func (t *turn) after(ctx context.Context, it *item) bool {
	t.frames.Begin(it.frame)
	switch {
	case it.lost != nil:
		return false
	case it.skipped != nil:
		t.skip(it.skipped)
	case it.told != nil:
		if in, is := it.told.(core.Injected); is {
			t.steering = append(t.steering, steering{id: in.ID}) // too late for it
		}
		return it.told.Kind() != core.KindCancelRequested
	case it.steered != nil:
		t.steered(*it.steered)
	case it.withdrawn != "":
		t.withdraw(ctx, it.withdrawn)
	case it.message == nil:
		t.update(&it.update)
	case it.message.Kind() == jsonrpc.Request:
		_ = t.conn.answerCancelled(ctx, *it.message)
	}
	return t.muted == nil
}

// lost is the name of the event that tells how much of the turn before came too late.
const lostUpdates = "late_update"

// tellLost reports what came too late for the turn before.
func (t *turn) tellLost(bytes int) {
	if bytes > 0 {
		t.report(core.ForeignFrame{Dialect: wire.Dialect, Name: lostUpdates}, &core.Foreign{Dialect: wire.Dialect, JSON: strictjson.Encode(struct {
			Lost int `json:"lost_bytes"`
		}{bytes})})
	}
}
