package conversation

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/visible"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// liveSink turns the events of one task into the messages of a stream as they happen. A
// kind without a payload of its own becomes its entry of the history.
type liveSink struct {
	*historySink
	count func(what string)
	out   []*pb.ClientStreamEvent
	// pending is text that is not in out yet, up to the event last.
	pending string
	last    core.Event
}

var _ core.Sink = (*liveSink)(nil)

// liveMessages returns the messages for consecutive events of a task.
func (r *reader) liveMessages(t *task.Task, events []core.Event) []*pb.ClientStreamEvent {
	s := r.service
	l := &liveSink{historySink: &historySink{key: r.key, task: t, agent: t.Agent(), maxBytes: s.opts.MaxMessageBytes}, count: s.count}
	for _, e := range events {
		if _, isText := e.Body.(core.Text); !isText {
			l.flush()
		}
		_ = e.Deliver(l) // it returns no error
		for _, h := range l.entries {
			l.count("folded." + e.Body.Kind().String())
			l.emit(e, &pb.ClientStreamEvent{Payload: &pb.ClientStreamEvent_Event{Event: h.event}})
		}
		l.entries = nil
	}
	l.flush()
	return l.out
}

// emit adds the message of an event. A client resumes after that event.
func (l *liveSink) emit(e core.Event, m *pb.ClientStreamEvent) {
	m.ConversationKey, m.Timestamp = l.key, timestamp(e.At)
	if size := proto.Size(m); size > l.maxBytes {
		l.count("refused.too_large")
		note := fmt.Sprintf("[%d bytes do not fit into a message; all of it: GET %s]", size, l.taskPath())
		m.Payload = &pb.ClientStreamEvent_Event{Event: l.add(e, outbound, string(l.agent), e.Body.Kind().String(), note)}
		l.entries = nil
	}
	m.EventId = core.PlaceAfter(l.task.ID(), e).String()
	l.out = append(l.out, m)
}

// chunkBytes is about how much consecutive text is merged into one message: existing
// clients drop some messages when there are many.
const chunkBytes = 32 << 10

// Text merges consecutive text.
func (l *liveSink) Text(e core.Event, b core.Text) error {
	l.pending, l.last = l.pending+b.Text, e
	if len(l.pending) >= chunkBytes {
		l.flush()
	}
	return nil
}

// flush emits the pending text.
func (l *liveSink) flush() {
	if l.pending != "" {
		l.emitText(l.last, l.pending)
		l.out[len(l.out)-1].EventId = core.PlaceAfter(l.task.ID(), l.last).String()
		l.pending = ""
	}
}

// emitText emits text in pieces that fit into messages, from none of which a client can
// resume.
func (l *liveSink) emitText(e core.Event, text string) {
	for _, piece := range wire.Pieces(text, l.maxBytes/2) {
		m := &pb.ClientStreamEvent{Payload: &pb.ClientStreamEvent_Text{Text: &pb.TextChunk{Content: piece.(core.Text).Text}}}
		l.emit(e, m)
		m.EventId = ""
	}
}

func (l *liveSink) Thinking(e core.Event, b core.Thinking) error {
	l.emit(e, &pb.ClientStreamEvent{Payload: &pb.ClientStreamEvent_Thinking{Thinking: &pb.ThinkingChunk{Content: wire.ValidUTF8(b.Text)}}})
	return nil
}

// Accepted emits the estimate.
func (l *liveSink) Accepted(e core.Event, b core.Accepted) error {
	if b.Estimate <= 0 {
		return nil
	}
	return l.Thinking(e, core.Thinking{Text: "estimated time: " + b.Estimate.String()})
}

// emitResponse emits an event that an agent's MessageResponse also has, with its unknown
// fields.
func (l *liveSink) emitResponse(e core.Event) error {
	r, err := wire.ResponseOf("", e.Body, e.Foreign)
	if err != nil { // the kept bytes are of another dialect
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
	l.emit(e, m)
	return nil
}

func (l *liveSink) ToolCall(e core.Event, _ core.ToolCall) error { return l.emitResponse(e) }

func (l *liveSink) ToolResult(e core.Event, _ core.ToolResult) error { return l.emitResponse(e) }

func (l *liveSink) ToolState(e core.Event, _ core.ToolState) error { return l.emitResponse(e) }

func (l *liveSink) Usage(e core.Event, _ core.Usage) error { return l.emitResponse(e) }

func (l *liveSink) ApprovalRequested(e core.Event, b core.ApprovalRequested) error {
	l.emit(e, &pb.ClientStreamEvent{Payload: &pb.ClientStreamEvent_ToolApproval{ToolApproval: &pb.ClientToolApprovalRequest{
		AgentId: wire.ValidUTF8(string(l.agent)), RequestId: string(l.task.ID()),
		ToolId: wire.ValidUTF8(b.ID), ToolName: visible.Line(b.Name), InputJson: wire.ValidUTF8(b.Input),
	}}})
	return nil
}

// The view of the questions tells them, and who answered.

func (l *liveSink) QuestionAsked(core.Event, core.QuestionAsked) error       { return nil }
func (l *liveSink) QuestionAnswered(core.Event, core.QuestionAnswered) error { return nil }

// Done emits the part of the answer that was not streamed, then the end, with the whole
// answer where it fits into a message.
func (l *liveSink) Done(e core.Event, b core.Done) error {
	streamed := l.streamed()
	whole := answer(streamed, b)
	if rest := whole[len(streamed):]; rest != "" {
		l.emitText(e, rest)
	}
	done := &pb.StreamDone{}
	if whole = wire.ValidUTF8(whole); len(whole) < l.maxBytes/2 {
		done.FullResponse = &whole
	}
	l.emit(e, &pb.ClientStreamEvent{Payload: &pb.ClientStreamEvent_Done{Done: done}})
	return nil
}

// streamed returns the text of the task before its end.
func (l *liveSink) streamed() string {
	events := l.task.Events()
	for len(events) > 0 && events[len(events)-1].Body.Kind().Ends() {
		events = events[:len(events)-1]
	}
	return core.Fold(events).Text
}

func (l *liveSink) Failed(e core.Event, b core.Failed) error {
	l.emitError(e, faultText(b.Fault), b.Fault != nil && b.Fault.Retryable)
	return nil
}

func (l *liveSink) Cancelled(e core.Event, b core.Cancelled) error {
	l.emitError(e, cancelText(b), false)
	return nil
}

// emitError emits an end without an answer.
func (l *liveSink) emitError(e core.Event, text string, recoverable bool) {
	l.emit(e, &pb.ClientStreamEvent{Payload: &pb.ClientStreamEvent_Error{
		Error: &pb.StreamError{Message: wire.CutText(text, l.maxBytes/2), Recoverable: recoverable},
	}})
}
