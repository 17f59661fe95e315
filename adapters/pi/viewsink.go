package pi

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

var _ core.Sink = (*view)(nil)

// Opened says nothing new: the user's message stands before the view.
func (v *view) Opened(core.Event, core.Opened) error { return nil }

// Assigned names the model of what follows.
func (v *view) Assigned(_ core.Event, b core.Assigned) error {
	v.agent = b.Agent
	return nil
}

// Accepted is nothing that a pi client shows.
func (v *view) Accepted(core.Event, core.Accepted) error { return nil }

// SessionStarted is nothing that a pi client shows.
func (v *view) SessionStarted(core.Event, core.SessionStarted) error { return nil }

// SessionLost is shown as a warning.
func (v *view) SessionLost(e core.Event, b core.SessionLost) error {
	v.count("folded.session_lost")
	v.warn(e, "the agent has lost its own session: "+b.Reason)
	return nil
}

func (v *view) warn(e core.Event, text string) {
	v.flush()
	v.out.notice(v.prefix, e.At.UnixMilli(), "warning", text)
}

// gap tells that a part of the task is gone.
func (v *view) gap(from, to uint64, at time.Time) {
	v.warn(core.Event{At: at}, "events "+strconv.FormatUint(from, 10)+" to "+strconv.FormatUint(to, 10)+" of this run are no longer kept")
}

// Thinking goes into a block of thinking.
func (v *view) Thinking(e core.Event, b core.Thinking) error {
	v.say(blockThinking, b.Text, e.At)
	return nil
}

// Text goes into a block of text.
func (v *view) Text(e core.Event, b core.Text) error {
	v.spoke = true
	v.say(blockText, b.Text, e.At)
	return nil
}

// ApprovalRequested asks the client's person. The id of the request leads back to
// the event, see [parseRequestID].
func (v *view) ApprovalRequested(e core.Event, b core.ApprovalRequested) error {
	v.settle()
	v.flush()
	v.out.event(v.prefix, len(b.Input)+256, func(dst []byte) []byte {
		dst = wire.AppendString(append(dst, `{"type":"extension_ui_request","requestId":`...), requestID(v.task, e.Seq))
		dst = wire.AppendString(append(dst, `,"method":"confirm","title":`...), "Allow "+b.Name+"?")
		dst = wire.AppendString(append(dst, `,"message":`...), b.Input)
		dst = strconv.AppendInt(append(dst, `,"timeout":`...), v.approval.Milliseconds(), 10)
		return append(dst, '}')
	})
	return nil
}

// requestID names an approval by the event that asked for it. It always passes the
// validation of extension_ui_response.
func requestID(task core.TaskID, seq uint64) string {
	return string(task) + ":" + strconv.FormatUint(seq, 10)
}

// parseRequestID is the inverse of requestID.
func parseRequestID(id string) (core.TaskID, uint64, bool) {
	task, seq, ok := strings.Cut(id, ":")
	n, err := strconv.ParseUint(seq, 10, 64)
	return core.TaskID(task), n, ok && err == nil
}

// ApprovalDecided tells those who did not decide.
func (v *view) ApprovalDecided(e core.Event, b core.ApprovalDecided) error {
	v.count("folded.approval_decided")
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
	v.flush()
	v.out.notice(v.prefix, e.At.UnixMilli(), "info", text)
	return nil
}

// Injected waits until the agent has taken it.
func (v *view) Injected(_ core.Event, b core.Injected) error {
	v.injected = append(v.injected, b)
	return nil
}

// InjectionAnswered shows what the agent has taken where it took it: what it says
// from there on is another message. What it has not taken is asked again as a turn
// of its own.
func (v *view) InjectionAnswered(e core.Event, b core.InjectionAnswered) error {
	i := slices.IndexFunc(v.injected, func(in core.Injected) bool { return in.ID == b.ID })
	if i < 0 {
		return nil
	}
	in := v.injected[i]
	v.injected = slices.Delete(v.injected, i, i+1)
	if !b.Accepted {
		return nil
	}
	v.settle()
	if v.draft != nil {
		v.close(stopDone, "")
	}
	if v.turn.reply != nil {
		v.endTurn()
	}
	v.beginTurn()
	v.speak(conversation.UserMessage(in.Content, nil, e.At.UnixMilli()))
	return nil
}

// File is folded into the text: a note, and the file itself where it is text. Any
// other file follows as a message of its own.
func (v *view) File(e core.Event, b core.File) error {
	v.count("folded.file")
	v.settle()
	d := v.begin(e.At)
	if d.affordsShape(2) {
		v.endBlocks()
	}
	note := conversation.FileNote(b)
	if conversation.IsText(b) {
		note += "\n" + string(b.Data)
	} else {
		v.speak(conversation.FileMessage(b, e.At.UnixMilli()))
	}
	i := v.block(blockText)
	if len(d.blocks[i].body) > 0 {
		note = "\n" + note + "\n"
	}
	d.grow(i, note)
	if d.affordsShape(2) {
		v.endBlocks()
	}
	return nil
}

// Usage adds to the message under way, or to the next.
func (v *view) Usage(_ core.Event, b core.Usage) error {
	if v.draft != nil {
		v.draft.spend(b)
	} else {
		v.usage = v.usage.Add(b)
	}
	return nil
}

// Retrying tells that another agent is tried.
func (v *view) Retrying(_ core.Event, b core.Retrying) error {
	v.recovered(b.Fault)
	v.attempt = b.Attempt
	v.out.retryStart(v.prefix, b.Attempt, v.attempts, 0, messageOf(b.Fault))
	return nil
}

// recovered ends the retry under way: with success, or because of the fault.
func (v *view) recovered(f *core.Fault) {
	if v.attempt == 0 {
		return
	}
	attempt := v.attempt
	v.attempt = 0
	problem := ""
	if f != nil {
		problem = f.Message
	}
	v.out.retryEnd(v.prefix, attempt, problem)
}

func messageOf(f *core.Fault) string {
	if f == nil {
		return core.InternalMessage
	}
	return f.Message
}

// CancelRequested shows in how the run ends.
func (v *view) CancelRequested(core.Event, core.CancelRequested) error { return nil }

// ForeignFrame passes as an event that clients may ignore (section 14).
func (v *view) ForeignFrame(e core.Event, b core.ForeignFrame) error {
	v.count("folded.foreign")
	v.flush()
	v.out.event(v.prefix, 256, func(dst []byte) []byte {
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

// Done ends the last message. A text that came only now, and what was answered in a
// structure, are blocks of it.
func (v *view) Done(e core.Event, b core.Done) error {
	v.settle()
	v.resolve("", e.At)
	d := v.begin(e.At)
	if !v.spoke && b.Text != "" {
		d.grow(v.block(blockText), b.Text)
	}
	if len(b.Data) > 0 {
		v.count("folded.data")
		v.endBlocks()
		d.grow(v.block(blockText), string(b.Data))
	}
	stop := stopDone
	if b.Truncated {
		stop = stopLength
	}
	v.end(e, stop, "")
	return nil
}

// Failed ends the last message in an error.
func (v *view) Failed(e core.Event, b core.Failed) error {
	v.recovered(b.Fault)
	v.broken(e, stopError, messageOf(b.Fault))
	return nil
}

// Cancelled ends the last message as aborted.
func (v *view) Cancelled(e core.Event, b core.Cancelled) error {
	v.recovered(core.NewFault(core.CodeCancelled, retryCancelled))
	text := "Request was aborted."
	if b.Reason != "" {
		text = "Request was aborted: " + b.Reason
	}
	v.broken(e, stopAborted, text)
	return nil
}

// broken ends a task that was not done. Calls that never began stay in the message.
func (v *view) broken(e core.Event, stop, text string) {
	v.calls = slices.DeleteFunc(v.calls, func(c *toolCall) bool { return !c.started })
	v.resolve("the run ended before the tool did", e.At)
	v.begin(e.At)
	v.end(e, stop, text)
}

// end closes the last message and its turn, behind what was injected and never
// acknowledged.
func (v *view) end(e core.Event, stop, problem string) {
	v.close(stop, problem)
	for _, in := range v.injected {
		v.speak(conversation.UserMessage(in.Content, nil, e.At.UnixMilli()))
	}
	v.injected = nil
	v.endTurn()
}
