package conversation

import (
	"cmp"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// teller turns the events of one task into what a client is told as it happens. What
// has no payload of its own is told as the Event that a ledger makes of it.
type teller struct {
	*ledger
	count func(what string)
	out   []*pb.ClientStreamEvent
	// chunk is the piece of text that grows, and whose last event it is.
	chunk string
	last  core.Event
}

var _ core.Sink = (*teller)(nil)

// tell returns what a client is told of events of a task that follow one another.
func (o Options) tell(key string, t *task.Task, events []core.Event, count func(string)) []*pb.ClientStreamEvent {
	to := &teller{ledger: &ledger{key: key, task: t, agent: t.Agent(), maxBytes: o.MaxMessageBytes}, count: count}
	for _, e := range events {
		if _, isText := e.Body.(core.Text); !isText {
			to.flush()
		}
		_ = e.Deliver(to) // it returns no error
		for _, remembered := range to.entries {
			count("folded." + e.Body.Kind().String())
			to.say(e, &pb.ClientStreamEvent{Payload: &pb.ClientStreamEvent_Event{Event: remembered.event}})
		}
		to.entries = nil
	}
	to.flush()
	return to.out
}

// say adds a message that tells an event. Clients go on from behind it.
func (t *teller) say(e core.Event, m *pb.ClientStreamEvent) {
	m.ConversationKey, m.Timestamp = wire.ValidUTF8(t.key), timestamp(e.At)
	if proto.Size(m) > t.maxBytes {
		t.count("refused.too_large")
		size := proto.Size(m)
		t.ledger.add(e, outbound, string(t.agent), e.Body.Kind().String(),
			fmt.Sprintf("[%d bytes, more than a message has room for: the whole is told by GET /v1/tasks/%s]", size, t.task.ID()))
		m.Payload = &pb.ClientStreamEvent_Event{Event: t.entries[len(t.entries)-1].event}
		t.entries = nil
	}
	m.EventId = core.PlaceBehind(t.task.ID(), e).String()
	t.out = append(t.out, m)
}

// chunkBytes is about how long pieces of text grow that came one after the other:
// existing clients drop some when there are many.
const chunkBytes = 32 << 10

// Text joins pieces that follow one another.
func (t *teller) Text(e core.Event, b core.Text) error {
	t.chunk, t.last = t.chunk+b.Text, e
	if len(t.chunk) >= chunkBytes {
		t.flush()
	}
	return nil
}

// flush tells the text so far.
func (t *teller) flush() {
	if t.chunk != "" {
		t.words(t.last, t.chunk)
		t.out[len(t.out)-1].EventId = core.PlaceBehind(t.task.ID(), t.last).String()
		t.chunk = ""
	}
}

// words tells text in pieces that fit, none of which is a place to go on from.
func (t *teller) words(e core.Event, text string) {
	for _, piece := range wire.Pieces(text, t.maxBytes/2) {
		m := &pb.ClientStreamEvent{Payload: &pb.ClientStreamEvent_Text{Text: &pb.TextChunk{Content: piece.(core.Text).Text}}}
		t.say(e, m)
		m.EventId = ""
	}
}

// Thinking implements core.Sink.
func (t *teller) Thinking(e core.Event, b core.Thinking) error {
	t.say(e, &pb.ClientStreamEvent{Payload: &pb.ClientStreamEvent_Thinking{Thinking: &pb.ThinkingChunk{Content: wire.ValidUTF8(b.Text)}}})
	return nil
}

// Accepted tells an estimate.
func (t *teller) Accepted(e core.Event, b core.Accepted) error {
	if b.Estimate <= 0 {
		return nil
	}
	return t.Thinking(e, core.Thinking{Text: "estimated time: " + b.Estimate.String()})
}

// response tells what an agent's own event tells, unknown fields included.
func (t *teller) response(e core.Event) error {
	r, err := wire.ResponseOf("", e.Body, e.Foreign)
	if err != nil { // the kept bytes are none of ours
		if r, err = wire.ResponseOf("", e.Body, nil); err != nil {
			return err
		}
	}
	m := &pb.ClientStreamEvent{}
	switch p := r.GetEvent().(type) {
	case *pb.MessageResponse_ToolUse:
		m.Payload = &pb.ClientStreamEvent_ToolUse{ToolUse: p.ToolUse}
	case *pb.MessageResponse_ToolResult:
		m.Payload = &pb.ClientStreamEvent_ToolResult{ToolResult: p.ToolResult}
	case *pb.MessageResponse_ToolState:
		m.Payload = &pb.ClientStreamEvent_ToolState{ToolState: p.ToolState}
	case *pb.MessageResponse_Usage:
		m.Payload = &pb.ClientStreamEvent_Usage{Usage: p.Usage}
	}
	t.say(e, m)
	return nil
}

// ToolCall implements core.Sink.
func (t *teller) ToolCall(e core.Event, _ core.ToolCall) error { return t.response(e) }

// ToolResult implements core.Sink.
func (t *teller) ToolResult(e core.Event, _ core.ToolResult) error { return t.response(e) }

// ToolState implements core.Sink.
func (t *teller) ToolState(e core.Event, _ core.ToolState) error { return t.response(e) }

// Usage implements core.Sink.
func (t *teller) Usage(e core.Event, _ core.Usage) error { return t.response(e) }

// ApprovalRequested implements core.Sink.
func (t *teller) ApprovalRequested(e core.Event, b core.ApprovalRequested) error {
	t.say(e, &pb.ClientStreamEvent{Payload: &pb.ClientStreamEvent_ToolApproval{ToolApproval: &pb.ClientToolApprovalRequest{
		AgentId: wire.ValidUTF8(string(t.agent)), RequestId: string(t.task.ID()), ToolId: wire.ValidUTF8(b.ID), ToolName: wire.ValidUTF8(b.Name), InputJson: wire.ValidUTF8(b.Input),
	}}})
	return nil
}

// Done tells what was not told yet, and the end with the whole answer where a message
// has room for it.
func (t *teller) Done(e core.Event, b core.Done) error {
	before := t.before()
	whole := answer(before, b)
	if rest := whole[len(before):]; rest != "" {
		t.words(e, rest)
	}
	done := &pb.StreamDone{}
	if whole = wire.ValidUTF8(whole); len(whole) < t.maxBytes/2 {
		done.FullResponse = &whole
	}
	t.say(e, &pb.ClientStreamEvent{Payload: &pb.ClientStreamEvent_Done{Done: done}})
	return nil
}

// before is the text of the task before its end.
func (t *teller) before() string {
	events := t.task.Events()
	for len(events) > 0 && events[len(events)-1].Body.Kind().Ends() {
		events = events[:len(events)-1]
	}
	return core.Fold(events).Text
}

// Failed implements core.Sink.
func (t *teller) Failed(e core.Event, b core.Failed) error {
	t.say(e, streamError(why(b.Fault), b.Fault != nil && b.Fault.Retryable, t.maxBytes))
	return nil
}

// Cancelled implements core.Sink.
func (t *teller) Cancelled(e core.Event, b core.Cancelled) error {
	t.say(e, streamError("cancelled: "+cmp.Or(b.Reason, "it was stopped"), false, t.maxBytes))
	return nil
}

// streamError ends an answer badly.
func streamError(text string, recoverable bool, maxBytes int) *pb.ClientStreamEvent {
	return &pb.ClientStreamEvent{Payload: &pb.ClientStreamEvent_Error{
		Error: &pb.StreamError{Message: wire.CutText(text, maxBytes/2), Recoverable: recoverable},
	}}
}
