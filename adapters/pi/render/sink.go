package render

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
	"github.com/dragoman-hub/dragoman/core"
)

var _ core.Sink = (*View)(nil)

// Opened is nothing: the user's message precedes the view.
func (v *View) Opened(core.Event, core.Opened) error { return nil }

// Assigned names the agent of what follows.
func (v *View) Assigned(_ core.Event, b core.Assigned) error {
	v.agent = b.Agent
	return nil
}

// Accepted is nothing: pi clients do not show it.
func (v *View) Accepted(core.Event, core.Accepted) error { return nil }

// SessionStarted is nothing: pi clients do not show it.
func (v *View) SessionStarted(core.Event, core.SessionStarted) error { return nil }

// SessionLost is a warning.
func (v *View) SessionLost(e core.Event, b core.SessionLost) error {
	v.task.Count("folded.session_lost")
	v.notice(e.At, NoticeWarning, "the agent has lost its own session: "+b.Reason)
	return nil
}

// notice asks the client to show a line of text.
func (v *View) notice(at time.Time, kind, text string) {
	v.Flush()
	v.event(noticeSize+len(text), func(b []byte) []byte { return appendNotice(b, at, kind, text) })
}

// Gap warns that a part of the task is no longer kept.
func (v *View) Gap(from, to uint64, at time.Time) {
	v.notice(at, NoticeWarning, "events "+strconv.FormatUint(from, 10)+" to "+strconv.FormatUint(to, 10)+" of this run are no longer kept")
}

// Thinking is added to a block of thinking.
func (v *View) Thinking(e core.Event, b core.Thinking) error {
	v.say(blockThinking, b.Text, e.At)
	return nil
}

// Text is added to a block of text.
func (v *View) Text(e core.Event, b core.Text) error {
	v.hasText = true
	v.say(blockText, b.Text, e.At)
	return nil
}

// ApprovalRequested asks the person at the client. The id of the request leads back to
// the event ([ParseRequestID]).
func (v *View) ApprovalRequested(e core.Event, b core.ApprovalRequested) error {
	v.endCalls()
	v.Flush()
	v.event(len(b.Input)+256, func(dst []byte) []byte {
		dst = wire.AppendString(append(dst, `{"type":"extension_ui_request","requestId":`...), RequestID(v.task.ID, e.Seq))
		dst = wire.AppendString(append(dst, `,"method":"confirm","title":`...), "Allow "+b.Name+"?")
		dst = wire.AppendString(append(dst, `,"message":`...), b.Input)
		dst = strconv.AppendInt(append(dst, `,"timeout":`...), v.task.ApprovalTimeout.Milliseconds(), 10)
		return append(dst, '}')
	})
	return nil
}

// RequestID returns the id of an approval: the task, and the number of the event that
// asked for it. It is valid in extension_ui_response.
func RequestID(task core.TaskID, seq uint64) string {
	return string(task) + ":" + strconv.FormatUint(seq, 10)
}

// ParseRequestID is the inverse of RequestID.
func ParseRequestID(id string) (core.TaskID, uint64, bool) {
	task, seq, ok := strings.Cut(id, ":")
	n, err := strconv.ParseUint(seq, 10, 64)
	return core.TaskID(task), n, ok && err == nil
}

// ApprovalDecided tells the clients that did not decide.
func (v *View) ApprovalDecided(e core.Event, b core.ApprovalDecided) error {
	v.task.Count("folded.approval_decided")
	text := "denied"
	if b.Approved {
		text = "approved"
	}
	if text += " by " + b.By; b.Reason != "" {
		text += ": " + b.Reason
	}
	for _, c := range v.calls {
		if c.id == b.ID {
			text = c.name + ": " + text
		}
	}
	v.notice(e.At, NoticeInfo, text)
	return nil
}

// Injected is kept until the agent has answered it.
func (v *View) Injected(_ core.Event, b core.Injected) error {
	v.injected = append(v.injected, b)
	return nil
}

// InjectionAnswered shows what the agent accepted at the place where it did: what it says
// from there on is another message. What it did not accept is asked again as a turn of
// its own.
func (v *View) InjectionAnswered(e core.Event, b core.InjectionAnswered) error {
	i := slices.IndexFunc(v.injected, func(in core.Injected) bool { return in.ID == b.ID })
	if i < 0 {
		return nil
	}
	in := v.injected[i]
	v.injected = slices.Delete(v.injected, i, i+1)
	if !b.Accepted {
		return nil
	}
	v.endCalls()
	if v.draft != nil {
		v.endDraft(StopDone, "")
	}
	if v.turn.reply != nil {
		v.endTurn()
	}
	v.beginTurn()
	v.add(conversation.UserMessage(in.Content, nil, e.At.UnixMilli()))
	return nil
}

// File is folded into the text: a note, and the file itself if it is text. Any other file
// follows as a message of its own.
func (v *View) File(e core.Event, b core.File) error {
	v.task.Count("folded.file")
	v.endCalls()
	d := v.beginDraft(e.At)
	if d.affordsBlock() {
		v.endBlocks()
	}
	note := conversation.FileNote(b)
	if conversation.IsText(b) {
		note += "\n" + string(b.Data)
	} else {
		v.add(conversation.FileMessage(b, e.At.UnixMilli()))
	}
	i := v.block(blockText)
	if len(d.blocks[i].body) > 0 {
		note = "\n" + note + "\n"
	}
	d.grow(i, note)
	if d.affordsBlock() {
		v.endBlocks()
	}
	return nil
}

// Usage is added to the message that grows, or to the next.
func (v *View) Usage(_ core.Event, b core.Usage) error {
	if v.draft != nil {
		v.draft.spend(b)
	} else {
		v.usage = v.usage.Add(b)
	}
	return nil
}

// Retrying tells that another agent is asked.
func (v *View) Retrying(_ core.Event, b core.Retrying) error {
	v.endRetry(b.Fault)
	v.attempt = b.Attempt
	problem := FaultMessage(b.Fault)
	v.event(retrySize+len(problem), func(dst []byte) []byte { return appendRetryStart(dst, b.Attempt, v.task.MaxAttempts, 0, problem) })
	return nil
}

// endRetry ends the retry under way: with success, or because of the fault.
func (v *View) endRetry(f *core.Fault) {
	if v.attempt == 0 {
		return
	}
	attempt := v.attempt
	v.attempt = 0
	problem := ""
	if f != nil {
		problem = f.Message
	}
	v.event(retrySize+len(problem), func(b []byte) []byte { return appendRetryEnd(b, attempt, problem) })
}

// RetryCancelled is why a retry ends that a person did not want.
const RetryCancelled = "Retry cancelled"

// FaultMessage returns why a task failed; its fault may be nil.
func FaultMessage(f *core.Fault) string {
	if f == nil {
		return core.InternalMessage
	}
	return f.Message
}

// CancelRequested is nothing: the end of the task shows it.
func (v *View) CancelRequested(core.Event, core.CancelRequested) error { return nil }

// ForeignFrame is an event that clients may ignore (section 14).
func (v *View) ForeignFrame(e core.Event, b core.ForeignFrame) error {
	v.task.Count("folded.foreign")
	v.Flush()
	v.event(256, func(dst []byte) []byte {
		dst = wire.AppendString(append(dst, `{"type":"foreign_frame","dialect":`...), b.Dialect)
		dst = wire.AppendString(append(dst, `,"name":`...), b.Name)
		if f := e.Foreign; f != nil && len(f.JSON) > 0 {
			dst = append(append(dst, `,"frame":`...), f.JSON...)
		}
		if f := e.Foreign; f != nil && len(f.Wire) > 0 {
			dst = base64.StdEncoding.AppendEncode(append(dst, `,"wire":"`...), f.Wire)
			dst = append(dst, '"')
		}
		return append(dst, '}')
	})
	return nil
}

// Done ends the last message. Text that came only now, and structured data, become
// blocks of it.
func (v *View) Done(e core.Event, b core.Done) error {
	v.endCalls()
	v.resolve("", e.At)
	d := v.beginDraft(e.At)
	if !v.hasText && b.Text != "" {
		d.grow(v.block(blockText), b.Text)
	}
	if len(b.Data) > 0 {
		v.task.Count("folded.data")
		v.endBlocks()
		d.grow(v.block(blockText), string(b.Data))
	}
	stop := StopDone
	if b.Truncated {
		stop = StopLength
	}
	v.end(e, stop, "")
	return nil
}

// Failed ends the last message with an error.
func (v *View) Failed(e core.Event, b core.Failed) error {
	v.endRetry(b.Fault)
	v.fail(e, StopError, FaultMessage(b.Fault))
	return nil
}

// Cancelled ends the last message as aborted.
func (v *View) Cancelled(e core.Event, b core.Cancelled) error {
	v.endRetry(core.NewFault(core.CodeCancelled, RetryCancelled))
	text := "Request was aborted."
	if b.Reason != "" {
		text = "Request was aborted: " + b.Reason
	}
	v.fail(e, StopAborted, text)
	return nil
}

// fail ends a task that is not done. Calls that never started stay in the message.
func (v *View) fail(e core.Event, stop, text string) {
	v.calls = slices.DeleteFunc(v.calls, func(c *toolCall) bool { return !c.started })
	v.resolve("the run ended before the tool did", e.At)
	v.beginDraft(e.At)
	v.end(e, stop, text)
}

// end ends the last message, adds what was injected and never answered, and ends the
// turn.
func (v *View) end(e core.Event, stop, problem string) {
	v.endDraft(stop, problem)
	for _, in := range v.injected {
		v.add(conversation.UserMessage(in.Content, nil, e.At.UnixMilli()))
	}
	v.injected = nil
	v.endTurn()
}
