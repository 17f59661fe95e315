package render

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/visible"
)

var _ core.Sink = (*View)(nil)

// Opened is ignored: the user's message precedes the view.
func (v *View) Opened(core.Event, core.Opened) error { return nil }

// Assigned sets the agent of the messages that follow.
func (v *View) Assigned(_ core.Event, b core.Assigned) error {
	v.SpeakAs(b.Agent, b.Dialect)
	return nil
}

// Accepted is ignored: pi clients do not show it.
func (v *View) Accepted(core.Event, core.Accepted) error { return nil }

// SessionStarted is ignored: pi clients do not show it.
func (v *View) SessionStarted(core.Event, core.SessionStarted) error { return nil }

// SessionLost shows a warning.
func (v *View) SessionLost(e core.Event, b core.SessionLost) error {
	v.task.Count("folded.session_lost")
	v.notice(e.At, NoticeWarning, "the agent has lost its own session: "+b.Reason)
	return nil
}

// notice asks the client to show a line of text.
func (v *View) notice(at time.Time, kind, text string) {
	v.Flush()
	text = visible.Text(text)
	v.event(noticeSize+len(text), func(b []byte) []byte { return appendNotice(b, at, kind, text) })
}

// Gap warns that the events from and to, and those between them, are no longer kept.
func (v *View) Gap(from, to uint64, at time.Time) {
	v.notice(at, NoticeWarning, "events "+strconv.FormatUint(from, 10)+" to "+strconv.FormatUint(to, 10)+" of this run are no longer kept")
}

// Thinking adds to a block of thinking.
func (v *View) Thinking(e core.Event, b core.Thinking) error {
	v.grow(blockThinking, b.Text, e.At)
	return nil
}

// Text adds to a block of text.
func (v *View) Text(e core.Event, b core.Text) error {
	v.hasText = true
	v.grow(blockText, b.Text, e.At)
	return nil
}

// ApprovalRequested asks the user for a decision, or tells one who may not decide that somebody
// else has to. The id of the UI request identifies the
// event ([ParseRequestID]).
func (v *View) ApprovalRequested(e core.Event, b core.ApprovalRequested) error {
	if v.task.MayDecide != nil && !v.task.MayDecide() {
		v.notice(e.At, NoticeInfo, string(v.agent)+" waits for somebody to approve "+b.Name)
		return nil
	}
	v.endCalls()
	v.Flush()
	v.event(len(b.Input)+256, func(dst []byte) []byte {
		dst = strictjson.AppendString(append(dst, `{"type":"extension_ui_request","requestId":`...), RequestID(v.task.ID, e))
		dst = strictjson.AppendString(append(dst, `,"method":"confirm","title":`...), "Allow "+visible.Line(b.Name)+"?")
		dst = strictjson.AppendString(append(dst, `,"message":`...), visible.JSON(b.Input))
		dst = strconv.AppendInt(append(dst, `,"timeout":`...), v.task.ApprovalTimeout.Milliseconds(), 10)
		return append(dst, '}')
	})
	return nil
}

// RequestID returns the id of an approval for extension_ui_response: the task and the place of its
// ApprovalRequested event.
func RequestID(task core.TaskID, e core.Event) string {
	return string(task) + ":" + strconv.FormatUint(uint64(e.Epoch), 10) + "-" + strconv.FormatUint(e.Seq, 10)
}

// ParseRequestID is the inverse of RequestID.
func ParseRequestID(id string) (core.TaskID, core.Cursor, bool) {
	task, place, ok := strings.Cut(id, ":")
	at, err := core.ParseCursor(strings.Replace(place, "-", ".", 1))
	return core.TaskID(task), at, ok && err == nil && place != ""
}

// ApprovalDecided informs the clients that did not decide.
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

// The dialog of a question tells it, and a notice who answered: see Envelope.Dialog.

func (v *View) QuestionAsked(core.Event, core.QuestionAsked) error       { return nil }
func (v *View) QuestionAnswered(core.Event, core.QuestionAnswered) error { return nil }

// Injected keeps the message until the agent has answered it.
func (v *View) Injected(_ core.Event, b core.Injected) error {
	v.injected = append(v.injected, b)
	return nil
}

// InjectionAnswered adds an accepted message at the place where the agent accepted it and
// ends the draft before it. A refused message is dropped here: the session sends it again
// as the next turn.
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

// File adds a note to the text, with the content of a text file. Any other file follows as
// a separate message.
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

// Usage adds to the draft or, without one, to the next message.
func (v *View) Usage(_ core.Event, b core.Usage) error {
	if v.draft != nil {
		v.draft.spend(b)
	} else {
		v.usage = v.usage.Add(b)
	}
	return nil
}

// Retrying announces that the hub retries with another agent.
func (v *View) Retrying(_ core.Event, b core.Retrying) error {
	v.endRetry(b.Fault)
	v.attempt = b.Attempt
	problem := FaultMessage(b.Fault)
	v.event(retrySize+len(problem), func(dst []byte) []byte { return appendRetryStart(dst, b.Attempt, v.task.MaxAttempts, 0, problem) })
	return nil
}

// endRetry ends the current retry, with success if the fault is nil.
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

// RetryCancelled is the error of a retry that a user cancelled.
const RetryCancelled = "Retry cancelled"

// FaultMessage returns the message of a task's fault, which may be nil.
func FaultMessage(f *core.Fault) string {
	if f == nil {
		return core.InternalMessage
	}
	return f.Message
}

// CancelRequested is ignored: the end of the task shows it.
func (v *View) CancelRequested(core.Event, core.CancelRequested) error { return nil }

// ForeignFrame adds an event that clients may ignore (section 14).
func (v *View) ForeignFrame(e core.Event, b core.ForeignFrame) error {
	v.task.Count("folded.foreign")
	v.Flush()
	v.event(256, func(dst []byte) []byte {
		dst = strictjson.AppendString(append(dst, `{"type":"foreign_frame","dialect":`...), b.Dialect)
		dst = strictjson.AppendString(append(dst, `,"name":`...), b.Name)
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

// Done ends the last message. Its text, if none was streamed, and its structured data
// become blocks of that message.
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

// fail ends a failed or cancelled task. Calls that never started get no result.
func (v *View) fail(e core.Event, stop, text string) {
	v.calls = slices.DeleteFunc(v.calls, func(c *toolCall) bool { return !c.started })
	v.resolve("the run ended before the tool did", e.At)
	v.beginDraft(e.At)
	v.end(e, stop, text)
}

// end ends the last message, adds the unanswered injections, and ends the turn.
func (v *View) end(e core.Event, stop, problem string) {
	v.endDraft(stop, problem)
	for _, in := range v.injected {
		v.add(conversation.UserMessage(in.Content, nil, e.At.UnixMilli()))
	}
	v.injected = nil
	v.endTurn()
}
