package editor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/visible"
)

// turn is a task as the editor sees it. The pump owns it. It is a [core.Sink]: each event
// becomes updates of the session.
type turn struct {
	conv   *conversation
	task   *task.Task
	prompt *prompt     // of the editor itself; nil for a turn of somebody else, or from before
	shown  core.Cursor // up to where it was shown
	tools  map[string]struct{}
	usage  core.Usage
	spoke  bool            // it has answered a piece of text
	rest   json.RawMessage // members of each chunk, so that two turns at a time can be told apart
	// replayed is set while what was said before is shown: nothing is asked.
	replayed bool

	ctx     context.Context //nolint:containedctx // that of the batch being shown
	text    strings.Builder // consecutive pieces of text, sent together
	failure error
}

// pieceBytes is about how much consecutive text is sent together.
const pieceBytes = 32 << 10

// turn returns the turn of a task, a new one for the first of its events.
func (conv *conversation) turn(of *task.Task) *turn {
	t := conv.turns[of.ID()]
	if t == nil {
		t = &turn{conv: conv, task: of, tools: map[string]struct{}{}}
		conv.turns[of.ID()] = t
	}
	return t
}

// show sends consecutive events of a turn. Those that were shown before are left out.
func (conv *conversation) show(ctx context.Context, t *turn, events []core.Event) error {
	t.ctx = ctx
	for _, e := range events {
		rest, fresh := e.After(t.shown)
		if !fresh {
			continue
		}
		t.shown = e.Cursor()
		if rest.Body.Kind() != core.KindText || rest.Foreign != nil {
			t.flush()
		}
		if err := rest.Deliver(t); err != nil {
			return err
		}
	}
	t.flush()
	err := t.failure
	t.failure = nil
	return err
}

// own reports whether a prompt of the editor waits for the turn.
func (t *turn) own() bool { return t.prompt != nil }

// say sends a chunk of text. The first error ends what is sent of a batch.
func (t *turn) say(kind string, k core.Kind, text string, more json.RawMessage) {
	if t.failure != nil || text == "" && more == nil {
		return
	}
	frame := wire.AppendChunk(make([]byte, 0, len(text)+len(text)/16+192), string(t.conv.id), kind, text, more)
	t.failure = t.conv.c.update(t.ctx, k, t.task.ID(), frame, t.conv.id)
}

// send sends an update that is JSON.
func (t *turn) send(k core.Kind, update json.RawMessage) error {
	if t.failure == nil {
		frame := wire.AppendUpdate(make([]byte, 0, len(update)+160), string(t.conv.id), update)
		t.failure = t.conv.c.update(t.ctx, k, t.task.ID(), frame, t.conv.id)
	}
	return t.failure
}

// flush sends the collected text.
func (t *turn) flush() {
	if t.text.Len() > 0 {
		t.say(wire.UpdateAgentMessageChunk, core.KindText, t.text.String(), t.rest)
		t.text.Reset()
	}
}

// fold sends what the protocol has no words for as a thought.
func (t *turn) fold(k core.Kind, format string, args ...any) error {
	t.conv.c.count("folded." + k.String())
	t.say(wire.UpdateAgentThoughtChunk, k, visible.Text(fmt.Sprintf(format, args...))+"\n", t.rest)
	return t.failure
}

// gap says that a part of the turn is no longer kept.
func (t *turn) gap(ctx context.Context) error {
	t.ctx = ctx
	t.conv.c.count("gap")
	t.say(wire.UpdateAgentThoughtChunk, core.KindText, "[a part of this turn is no longer kept]\n", t.rest)
	err := t.failure
	t.failure = nil
	return err
}

// verbatim sends the update that an event of the same dialect came from, and reports whether
// there is nothing more to send for the event.
func (t *turn) verbatim(e core.Event) (more json.RawMessage, done bool) {
	whole, more, told := wire.OfForeign(e.Foreign)
	if whole != nil {
		_ = t.send(e.Body.Kind(), whole) // kept in failure
	}
	return more, told || whole != nil
}

// with returns the members to be added to a chunk.
func (t *turn) with(more json.RawMessage) json.RawMessage {
	if more == nil {
		return t.rest
	}
	return more
}

// Opened shows what somebody else asked, or what was asked before.
func (t *turn) Opened(e core.Event, b core.Opened) error {
	if t.own() {
		return nil
	}
	if b.From.ID != t.conv.c.opts.Principal.ID {
		t.say(wire.UpdateUserMessageChunk, core.KindOpened, "["+b.From.ID+"] ", nil)
	}
	if f := b.Request.Foreign; f != nil && f.Dialect == Dialect {
		if prompt := strictjson.ParseValid(f.JSON).Get("prompt"); prompt.Exists() {
			for block := range prompt.Items() {
				if err := t.send(core.KindOpened, chunkOf(wire.UpdateUserMessageChunk, block.Raw(), nil)); err != nil {
					return err
				}
			}
			return t.failure
		}
	}
	t.say(wire.UpdateUserMessageChunk, core.KindOpened, b.Request.Content, nil)
	if len(b.Request.Data) > 0 {
		t.say(wire.UpdateUserMessageChunk, core.KindOpened, fenced(b.Request.Data), nil)
	}
	for _, f := range b.Request.Attachments {
		if err := t.send(core.KindOpened, chunkOf(wire.UpdateUserMessageChunk, strictjson.Encode(fileBlock(t.task.ID(), f)), nil)); err != nil {
			return err
		}
	}
	return t.failure
}

// chunkOf returns a chunk with a content block.
func chunkOf(kind string, block, more json.RawMessage) json.RawMessage {
	update := append(append(append(append([]byte(`{"sessionUpdate":"`), kind...), `","content":`...), block...), '}')
	return wire.Restore(update, more)
}

// fenced returns data as Markdown.
func fenced(data json.RawMessage) string { return "\n```json\n" + string(data) + "\n```\n" }

// Text collects consecutive text.
func (t *turn) Text(e core.Event, b core.Text) error {
	t.spoke = true
	if e.Foreign != nil {
		if more, done := t.verbatim(e); !done {
			t.say(wire.UpdateAgentMessageChunk, core.KindText, b.Text, t.with(more))
		}
		return t.failure
	}
	t.text.WriteString(b.Text)
	if t.text.Len() >= pieceBytes {
		t.flush()
	}
	return t.failure
}

// kindOf returns the kind of the update that an event of the dialect comes from, and that; "" for none.
func kindOf(e core.Event) (kind string, whole json.RawMessage) {
	whole, _, _ = wire.OfForeign(e.Foreign)
	if whole != nil {
		kind, _ = strictjson.ParseValid(whole).Get("sessionUpdate").Text()
	}
	return kind, whole
}

// Thinking shows a thought. A notice or a compaction of an editor agent is one for an editor that does not
// show those.
func (t *turn) Thinking(e core.Event, b core.Thinking) error {
	if kind, _ := kindOf(e); kind != "" && !t.conv.c.shows(kind) {
		e.Foreign = nil
	}
	if more, done := t.verbatim(e); !done {
		t.say(wire.UpdateAgentThoughtChunk, core.KindThinking, b.Text, t.with(more))
	}
	return t.failure
}

// File shows a file as a part of the answer.
func (t *turn) File(e core.Event, b core.File) error {
	if more, done := t.verbatim(e); !done {
		return t.send(core.KindFile, chunkOf(wire.UpdateAgentMessageChunk, strictjson.Encode(fileBlock(t.task.ID(), b)), t.with(more)))
	}
	return t.failure
}

// ForeignFrame passes on an update that only its own dialect knows.
func (t *turn) ForeignFrame(e core.Event, b core.ForeignFrame) error {
	kind, whole := kindOf(e)
	switch {
	case kind == wire.UpdateConfigOptionUpdate, kind == wire.UpdateCurrentModeUpdate:
		if t.hear(kind, whole) {
			t.conv.c.tellOptions(t.ctx, t.conv)
			return t.failure
		}
	case !t.conv.c.shows(kind):
		t.conv.c.count("folded." + core.KindForeign.String())
		return t.failure
	}
	if _, done := t.verbatim(e); !done {
		t.conv.c.self.Refused()
		t.conv.c.count("refused." + core.KindForeign.String())
	}
	return t.failure
}

// Usage adds up: it is part of the result. An editor agent's own update is passed on. No
// usage_update is made for other agents, because it says how full the window of the model is.
func (t *turn) Usage(e core.Event, b core.Usage) error {
	t.usage = t.usage.Add(b)
	_, _ = t.verbatim(e) // what it sends is all there is
	return t.failure
}

// usageOf returns the usage for the result; nil if none was reported.
func (t *turn) usageOf() *wire.Usage {
	u := t.usage
	if u == (core.Usage{}) {
		return nil
	}
	return &wire.Usage{
		InputTokens: u.Input, OutputTokens: u.Output, CachedReadTokens: u.CacheRead, CachedWriteTokens: u.CacheWrite, ThoughtTokens: u.Thinking,
		TotalTokens: u.Total(),
	}
}

// Done ends the turn.
func (t *turn) Done(e core.Event, b core.Done) error {
	if !t.spoke {
		t.say(wire.UpdateAgentMessageChunk, core.KindDone, b.Text, t.rest)
	}
	if len(b.Data) > 0 {
		t.conv.c.count("folded.data")
		t.say(wire.UpdateAgentMessageChunk, core.KindDone, fenced(b.Data), t.rest)
	}
	return t.end(e)
}

// Failed ends the turn with the error of the prompt. A turn without a prompt shows it.
func (t *turn) Failed(e core.Event, b core.Failed) error {
	if !t.own() {
		t.say(wire.UpdateAgentMessageChunk, core.KindFailed, "["+b.Fault.Error()+"]\n", t.rest)
	}
	return t.end(e)
}

// Cancelled ends the turn.
func (t *turn) Cancelled(e core.Event, b core.Cancelled) error {
	if !t.own() {
		t.say(wire.UpdateAgentMessageChunk, core.KindCancelled, "[cancelled: "+cmp.Or(b.Reason, "it was stopped")+"]\n", t.rest)
	}
	return t.end(e)
}

// end closes what the editor was asked in the turn, and answers the prompt.
func (t *turn) end(e core.Event) error {
	if t.conv.turns[t.task.ID()] == t {
		delete(t.conv.turns, t.task.ID())
	}
	if t.failure != nil {
		return t.failure
	}
	if t.own() {
		t.learn()
	}
	if err := t.conv.c.withdraw(t.ctx, func(a *asked) bool { return a.task == t.task.ID() }); err != nil {
		return err
	}
	return t.finish(t.ctx, e)
}

// SessionLost says that the agent does not remember what was said before.
func (t *turn) SessionLost(e core.Event, b core.SessionLost) error {
	return t.fold(e.Body.Kind(), "The agent lost its session: %s", cmp.Or(b.Reason, "it does not say why"))
}

// Retrying says that another agent is tried.
func (t *turn) Retrying(e core.Event, b core.Retrying) error {
	return t.fold(e.Body.Kind(), "%s failed (%s): another agent is tried", b.Agent, b.Fault.Message)
}

// QuestionAsked tells in a conversation that is loaded what the user was asked by a form.
func (t *turn) QuestionAsked(e core.Event, b core.QuestionAsked) error {
	if !t.replayed {
		return t.failure
	}
	return t.fold(e.Body.Kind(), "%s asks: %s", t.task.Agent(), b.Text)
}

// QuestionAnswered tells in a conversation that is loaded what was answered.
func (t *turn) QuestionAnswered(e core.Event, b core.QuestionAnswered) error {
	if !t.replayed {
		return t.failure
	}
	return t.fold(e.Body.Kind(), "%s: %s", cmp.Or(b.By, "nobody answers"), b.Words())
}

// Injected shows what somebody else told the agent meanwhile.
func (t *turn) Injected(e core.Event, b core.Injected) error {
	if t.prompt.steers(b.ID) {
		return t.failure
	}
	t.conv.c.count("folded." + e.Body.Kind().String())
	t.say(wire.UpdateUserMessageChunk, core.KindInjected, b.Content, nil)
	return t.failure
}

// InjectionAnswered says if the agent did not take it. It answers the editor if that is who told it.
func (t *turn) InjectionAnswered(e core.Event, b core.InjectionAnswered) error {
	if id := t.prompt.unsteered(b.ID); id != nil {
		answer := wire.SteeringResponse{Outcome: wire.SteeringInjected}
		if !b.Accepted {
			answer = wire.SteeringResponse{Outcome: wire.SteeringFailed, Reason: cmp.Or(b.Reason, "the agent did not take it")}
		}
		return t.conv.c.answer(t.ctx, id, strictjson.Encode(answer))
	}
	if b.Accepted {
		t.conv.c.count("folded." + e.Body.Kind().String())
		return t.failure
	}
	return t.fold(e.Body.Kind(), "The agent did not take what it was told: %s", cmp.Or(b.Reason, "it does not say why"))
}

// The editor knows of its own cancel, and the end follows. Which agent works, when it took the
// task and how it calls its session matter to nobody there.

func (t *turn) CancelRequested(core.Event, core.CancelRequested) error { return nil }
func (t *turn) Assigned(core.Event, core.Assigned) error               { return nil }
func (t *turn) Accepted(core.Event, core.Accepted) error               { return nil }
func (t *turn) SessionStarted(core.Event, core.SessionStarted) error   { return nil }
