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
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// The directions and types of an Event that existing clients know.
const (
	inbound  = "inbound_to_agent"
	outbound = "outbound_from_agent"

	typeMessage    = "message"
	typeToolCall   = "tool_call"
	typeToolResult = "tool_result"
	typeError      = "error"
)

// entry is an Event of a conversation with its place there.
type entry struct {
	place core.Place
	at    time.Time
	event *pb.Event
}

// ledger turns the events of one task into what a conversation remembers of it: what
// was said, which tools ran, how it ended. The answer stands there once the task has
// ended. What is told as it happens only (thinking, tool states, usage) is left out.
type ledger struct {
	key      string
	task     *task.Task
	agent    core.AgentID
	maxBytes int
	text     strings.Builder
	entries  []entry
}

var _ core.Sink = (*ledger)(nil)

// ledgerOf returns what a conversation remembers of a task that has these events, in
// order.
func ledgerOf(key string, t *task.Task, events []core.Event, maxBytes int) []entry {
	l := &ledger{key: key, task: t, maxBytes: maxBytes}
	for _, e := range events {
		_ = e.Deliver(l) // it returns no error
	}
	return l.entries
}

// message is the entry as a stream tells it.
func (e entry) message() *pb.ClientStreamEvent {
	return &pb.ClientStreamEvent{
		ConversationKey: e.event.GetConversationKey(), Timestamp: e.event.GetTimestamp(), EventId: e.event.GetId(),
		Payload: &pb.ClientStreamEvent_Event{Event: e.event},
	}
}

// timestamp is how times are told.
func timestamp(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

// add writes an entry whose id is that of the event.
func (l *ledger) add(e core.Event, direction, author, kind, text string) *pb.Event {
	m := &pb.Event{
		ConversationKey: wire.ValidUTF8(l.key), Direction: direction, Author: wire.ValidUTF8(author), Timestamp: timestamp(e.At), Type: kind,
		Text: proto.String(l.fit(text)),
	}
	place := core.PlaceBehind(l.task.ID(), e)
	m.Id = place.String()
	if len(*m.Text) < len(text) {
		m.RawPayloadRef = proto.String("/v1/tasks/" + string(l.task.ID()))
	}
	l.entries = append(l.entries, entry{place, e.At, m})
	return m
}

// fit cuts a text that no message has room for, and says so.
func (l *ledger) fit(text string) string {
	text = wire.ValidUTF8(text)
	if len(text) <= l.maxBytes/2 {
		return text
	}
	head := wire.CutText(text, l.maxBytes/2)
	return fmt.Sprintf("%s\n\n[%d of %d bytes: the whole is told by GET /v1/tasks/%s]", head, len(head), len(text), l.task.ID())
}

// said writes an entry of the agent's, asked one of who asked or decided.
func (l *ledger) said(e core.Event, kind, text string) error {
	l.add(e, outbound, string(l.agent), kind, text)
	return nil
}

func (l *ledger) asked(e core.Event, author, kind, text string) error {
	l.add(e, inbound, author, kind, text)
	return nil
}

// Opened writes down what was asked.
func (l *ledger) Opened(e core.Event, b core.Opened) error {
	l.agent = b.Request.To.Agent()
	r := b.Request
	r.History = nil // those turns stand before this one
	text, _ := wire.ContentOf(r)
	if len(r.Attachments) > 0 {
		var names []string
		for _, f := range r.Attachments {
			names = append(names, describe(f))
		}
		text += "\n\nAttached: " + strings.Join(names, ", ")
	}
	m := l.add(e, inbound, b.From.ID, typeMessage, text)
	m.ActorPrincipalId = proto.String(wire.ValidUTF8(b.From.ID))
	return nil
}

// describe names a file: "a.txt (text/plain, 5 bytes)".
func describe(f core.File) string {
	return fmt.Sprintf("%s (%s, %d bytes)", f.Name, cmp.Or(f.MediaType, "application/octet-stream"), len(f.Data))
}

// Assigned notes who answers.
func (l *ledger) Assigned(_ core.Event, b core.Assigned) error {
	l.agent = b.Agent
	return nil
}

// Text gathers the answer.
func (l *ledger) Text(_ core.Event, b core.Text) error {
	l.text.WriteString(b.Text)
	return nil
}

// ToolCall implements core.Sink.
func (l *ledger) ToolCall(e core.Event, b core.ToolCall) error {
	return l.said(e, typeToolCall, "tool:"+b.Name+" input:"+b.Input)
}

// ToolResult implements core.Sink.
func (l *ledger) ToolResult(e core.Event, b core.ToolResult) error {
	return l.said(e, typeToolResult, b.Output)
}

// File names the file and holds it, where a message has room for it.
func (l *ledger) File(e core.Event, b core.File) error {
	m := l.add(e, outbound, string(l.agent), "file", describe(b))
	m.RawPayloadRef = proto.String("/v1/tasks/" + string(l.task.ID()))
	if base64.StdEncoding.EncodedLen(len(b.Data)) < l.maxBytes/2 {
		m.RawPayloadRef = proto.String("data:" + wire.ValidUTF8(cmp.Or(b.MediaType, "application/octet-stream")) + ";base64," + base64.StdEncoding.EncodeToString(b.Data))
	}
	return nil
}

// Done writes the answer down.
func (l *ledger) Done(e core.Event, b core.Done) error {
	text := answer(l.text.String(), b)
	if text == "" {
		return nil
	}
	return l.said(e, typeMessage, text)
}

// answer is the whole answer in words: what was told before, else what the end says,
// and below it what the end has beside words.
func answer(text string, b core.Done) string {
	if text == "" {
		text = b.Text
	}
	if len(b.Data) > 0 {
		data := wire.Fenced("Data", b.Data)
		if text == "" {
			return data
		}
		text += "\n\n" + data
	}
	return text
}

// Failed writes down what was said before the failure, then the failure.
func (l *ledger) Failed(e core.Event, b core.Failed) error { return l.broken(e, why(b.Fault)) }

// Cancelled is Failed for what was stopped.
func (l *ledger) Cancelled(e core.Event, b core.Cancelled) error {
	return l.broken(e, "cancelled: "+cmp.Or(b.Reason, "it was stopped"))
}

// broken writes an end that is no answer. The failure has the number behind the end,
// which no event ever has, when the end is where the words before it stand.
func (l *ledger) broken(e core.Event, text string) error {
	if l.text.Len() > 0 {
		_ = l.said(e, typeMessage, l.text.String())
		e.Seq, e.Merged = e.End()+1, nil
	}
	return l.said(e, typeError, text)
}

// why tells a fault: an agent's own in its own words.
func why(f *core.Fault) string {
	switch {
	case f == nil:
		return wire.Unexplained
	case f.Code == core.CodeInternal:
		return f.Message
	}
	return wire.FaultText(f)
}

// ApprovalDecided implements core.Sink.
func (l *ledger) ApprovalDecided(e core.Event, b core.ApprovalDecided) error {
	text := "tool:" + b.ID + " denied"
	if b.Approved {
		text = "tool:" + b.ID + " approved"
	}
	if b.Reason != "" {
		text += ": " + b.Reason
	}
	return l.asked(e, b.By, "tool_approval", text)
}

// Injected implements core.Sink.
func (l *ledger) Injected(e core.Event, b core.Injected) error {
	return l.asked(e, b.Source, "injection", b.Content)
}

// InjectionAnswered implements core.Sink.
func (l *ledger) InjectionAnswered(e core.Event, b core.InjectionAnswered) error {
	text := "accepted"
	if !b.Accepted {
		text = "rejected"
	}
	if b.Reason != "" {
		text += ": " + b.Reason
	}
	return l.said(e, "injection_ack", text)
}

// CancelRequested implements core.Sink.
func (l *ledger) CancelRequested(e core.Event, b core.CancelRequested) error {
	return l.asked(e, b.By, "cancel", b.Reason)
}

// Retrying implements core.Sink.
func (l *ledger) Retrying(e core.Event, b core.Retrying) error {
	l.add(e, outbound, string(b.Agent), "retrying", why(b.Fault))
	return nil
}

// SessionStarted implements core.Sink.
func (l *ledger) SessionStarted(e core.Event, b core.SessionStarted) error {
	return l.said(e, "session_init", b.Session)
}

// SessionLost implements core.Sink.
func (l *ledger) SessionLost(e core.Event, b core.SessionLost) error {
	return l.said(e, "session_orphaned", b.Reason)
}

// ForeignFrame names what only another dialect knows.
func (l *ledger) ForeignFrame(e core.Event, b core.ForeignFrame) error {
	return l.said(e, "foreign", b.Dialect+" "+b.Name)
}

// These are told as they happen, and not remembered here.

func (l *ledger) Accepted(core.Event, core.Accepted) error                   { return nil }
func (l *ledger) Thinking(core.Event, core.Thinking) error                   { return nil }
func (l *ledger) ToolState(core.Event, core.ToolState) error                 { return nil }
func (l *ledger) ApprovalRequested(core.Event, core.ApprovalRequested) error { return nil }
func (l *ledger) Usage(core.Event, core.Usage) error                         { return nil }
