package conversation

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/visible"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// The directions of an Event that existing clients know.
const (
	inbound  = "inbound_to_agent"
	outbound = "outbound_from_agent"
)

// entry is an Event of the history with its place in the conversation.
type entry struct {
	place core.Place
	at    time.Time
	event *pb.Event
}

// message returns the entry as a message of a stream.
func (e entry) message() *pb.ClientStreamEvent {
	return &pb.ClientStreamEvent{
		ConversationKey: e.event.GetConversationKey(), Timestamp: e.event.GetTimestamp(), EventId: e.event.GetId(),
		Payload: &pb.ClientStreamEvent_Event{Event: e.event},
	}
}

func timestamp(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

// historySink turns the events of one task into entries: its messages, tools and end. The
// answer is one entry, once the task has ended.
type historySink struct {
	key      string
	task     *task.Task
	agent    core.AgentID
	maxBytes int
	text     strings.Builder
	entries  []entry
}

var _ core.Sink = (*historySink)(nil)

// historyOf returns the history of a task with these events, in order.
func historyOf(key string, t *task.Task, events []core.Event, maxBytes int) []entry {
	h := &historySink{key: key, task: t, maxBytes: maxBytes}
	for _, e := range events {
		_ = e.Deliver(h) // it returns no error
	}
	return h.entries
}

// add adds an entry whose id is that of the event.
func (h *historySink) add(e core.Event, direction, author, kind, text string) *pb.Event {
	place := core.PlaceAfter(h.task.ID(), e)
	m := &pb.Event{
		Id: place.String(), ConversationKey: h.key, Direction: direction, Author: wire.ValidUTF8(author), Timestamp: timestamp(e.At), Type: kind,
		Text: proto.String(h.fit(text)),
	}
	if len(*m.Text) < len(text) {
		m.RawPayloadRef = proto.String(h.taskPath())
	}
	h.entries = append(h.entries, entry{place, e.At, m})
	return m
}

// fit cuts a text that does not fit into a message, and appends where all of it is.
func (h *historySink) fit(text string) string {
	text = wire.ValidUTF8(text)
	if len(text) <= h.maxBytes/2 {
		return text
	}
	head := wire.CutText(text, h.maxBytes/2)
	return fmt.Sprintf("%s\n\n[%d of %d bytes; all of it: GET %s]", head, len(head), len(text), h.taskPath())
}

func (h *historySink) taskPath() string { return "/v1/tasks/" + string(h.task.ID()) }

// addOutbound adds an entry of the agent, addInbound one of the requester or of a
// client that steered the task.
func (h *historySink) addOutbound(e core.Event, kind, text string) error {
	h.add(e, outbound, string(h.agent), kind, text)
	return nil
}

func (h *historySink) addInbound(e core.Event, author, kind, text string) error {
	h.add(e, inbound, author, kind, text)
	return nil
}

// Opened adds the request.
func (h *historySink) Opened(e core.Event, b core.Opened) error {
	h.agent = b.Request.To.Agent()
	r := b.Request
	r.History = nil // the conversation has those turns
	text, _ := wire.ContentOf(r)
	if len(r.Attachments) > 0 {
		var names []string
		for _, f := range r.Attachments {
			names = append(names, describe(f))
		}
		text += "\n\nAttached: " + strings.Join(names, ", ")
	}
	m := h.add(e, inbound, b.From.ID, "message", text)
	m.ActorPrincipalId = proto.String(wire.ValidUTF8(b.From.ID))
	return nil
}

// describe names a file: "a.txt (text/plain, 5 bytes)".
func describe(f core.File) string {
	return fmt.Sprintf("%s (%s, %d bytes)", f.Name, mediaType(f), len(f.Data))
}

func mediaType(f core.File) string { return cmp.Or(f.MediaType, "application/octet-stream") }

// Assigned sets the author of what follows, and says who had the conversation before.
func (h *historySink) Assigned(e core.Event, b core.Assigned) error {
	h.agent = b.Agent
	if b.Handover == nil {
		return nil
	}
	return h.addOutbound(e, "handover", b.Handover.Words())
}

// Text collects the answer.
func (h *historySink) Text(_ core.Event, b core.Text) error {
	h.text.WriteString(b.Text)
	return nil
}

func (h *historySink) ToolCall(e core.Event, b core.ToolCall) error {
	return h.addOutbound(e, "tool_call", "tool:"+visible.Line(b.Name)+" input:"+b.Input)
}

func (h *historySink) ToolResult(e core.Event, b core.ToolResult) error {
	return h.addOutbound(e, "tool_result", b.Output)
}

// File adds the name of the file, with its bytes where they fit into a message.
func (h *historySink) File(e core.Event, b core.File) error {
	m := h.add(e, outbound, string(h.agent), "file", describe(b))
	m.RawPayloadRef = proto.String(h.taskPath())
	if base64.StdEncoding.EncodedLen(len(b.Data)) < h.maxBytes/2 {
		m.RawPayloadRef = proto.String("data:" + wire.ValidUTF8(mediaType(b)) + ";base64," + base64.StdEncoding.EncodeToString(b.Data))
	}
	return nil
}

// Done adds the answer.
func (h *historySink) Done(e core.Event, b core.Done) error {
	text := answer(h.text.String(), b)
	if text == "" {
		return nil
	}
	return h.addOutbound(e, "message", text)
}

// answer returns the whole answer as text: what was streamed, else the text of Done, and
// below it the data of Done.
func answer(streamed string, b core.Done) string {
	text := cmp.Or(streamed, b.Text)
	if len(b.Data) == 0 {
		return text
	}
	data := core.Fenced("Data", "json", b.Data)
	if text == "" {
		return data
	}
	return text + "\n\n" + data
}

// Failed adds the text before the failure, then the failure.
func (h *historySink) Failed(e core.Event, b core.Failed) error {
	return h.addFailure(e, faultText(b.Fault))
}

// Cancelled is Failed for a cancelled task.
func (h *historySink) Cancelled(e core.Event, b core.Cancelled) error {
	return h.addFailure(e, cancelText(b))
}

func cancelText(b core.Cancelled) string { return "cancelled: " + cmp.Or(b.Reason, "it was stopped") }

// addFailure adds an end without an answer. When the text before it takes the id of the
// end, the failure gets the next one, which no event ever has.
func (h *historySink) addFailure(e core.Event, text string) error {
	if h.text.Len() > 0 {
		_ = h.addOutbound(e, "message", h.text.String())
		e.Seq, e.Merged = e.End()+1, nil
	}
	return h.addOutbound(e, "error", text)
}

// faultText returns a fault as text, an agent's own without a code.
func faultText(f *core.Fault) string {
	switch {
	case f == nil:
		return wire.Unexplained
	case f.Code == core.CodeInternal:
		return f.Message
	}
	return wire.FaultText(f)
}

func (h *historySink) ApprovalDecided(e core.Event, b core.ApprovalDecided) error {
	text := "tool:" + b.ID + " denied"
	if b.Approved {
		text = "tool:" + b.ID + " approved"
	}
	return h.addInbound(e, b.By, "tool_approval", withReason(text, b.Reason))
}

func (h *historySink) Injected(e core.Event, b core.Injected) error {
	return h.addInbound(e, b.Attribution(), "injection", b.Content)
}

func (h *historySink) QuestionAsked(e core.Event, b core.QuestionAsked) error {
	return h.addOutbound(e, "user_question", visible.Text(b.Text))
}

func (h *historySink) QuestionAnswered(e core.Event, b core.QuestionAnswered) error {
	return h.addInbound(e, b.By, "question_answered", visible.Text(b.Words()))
}

func (h *historySink) InjectionAnswered(e core.Event, b core.InjectionAnswered) error {
	text := "rejected"
	if b.Accepted {
		text = "accepted"
	}
	return h.addOutbound(e, "injection_ack", withReason(text, b.Reason))
}

func withReason(text, reason string) string {
	if reason == "" {
		return text
	}
	return text + ": " + reason
}

func (h *historySink) CancelRequested(e core.Event, b core.CancelRequested) error {
	return h.addInbound(e, b.By, "cancel", b.Reason)
}

func (h *historySink) Retrying(e core.Event, b core.Retrying) error {
	h.add(e, outbound, string(b.Agent), "retrying", faultText(b.Fault))
	return nil
}

func (h *historySink) SessionStarted(e core.Event, b core.SessionStarted) error {
	return h.addOutbound(e, "session_init", b.Session)
}

func (h *historySink) SessionLost(e core.Event, b core.SessionLost) error {
	return h.addOutbound(e, "session_orphaned", b.Reason)
}

// ForeignFrame adds the name of a frame that only its own dialect knows.
func (h *historySink) ForeignFrame(e core.Event, b core.ForeignFrame) error {
	return h.addOutbound(e, "foreign", visible.Line(b.Dialect+" "+b.Name))
}

// These are live events only.

func (h *historySink) Accepted(core.Event, core.Accepted) error                   { return nil }
func (h *historySink) Thinking(core.Event, core.Thinking) error                   { return nil }
func (h *historySink) ToolState(core.Event, core.ToolState) error                 { return nil }
func (h *historySink) ApprovalRequested(core.Event, core.ApprovalRequested) error { return nil }
func (h *historySink) Usage(core.Event, core.Usage) error                         { return nil }
