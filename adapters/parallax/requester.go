package parallax

import (
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// requesterSink turns the events of a task into frames to the agent that requested it:
// one task_progress for each if the agent declared that extension, and the end, which
// otherwise has all of them (outcome.go). Consecutive pieces of text are sent together.
type requesterSink struct {
	s       *session
	task    *task.Task
	request *request
	text    strings.Builder
	out     []outgoing
}

func (r *requesterSink) add(kind string, frame []byte) {
	r.out = append(r.out, outgoing{kind: kind, frame: frame})
}

func (r *requesterSink) ref() wire.TaskRef {
	ref := wire.TaskRef{RequestID: r.request.id, TaskID: string(r.task.ID())}
	if r.request.attempt > 0 {
		ref.ExecutionID = executionOf(r.task.ID(), r.request.attempt)
	}
	return ref
}

// sendItem adds a task_progress. One that does not fit is replaced by omitted.
func (r *requesterSink) sendItem(i wire.Item, f *core.Foreign) error {
	if !r.s.extensions[wire.ExtensionProgress] {
		return nil
	}
	r.request.seq++
	p := wire.Progress{TaskRef: r.ref(), Seq: r.request.seq, Item: i}
	frame, err := r.s.frame(wire.TypeTaskProgress, "", p, f)
	if err == nil && len(frame) > r.s.opts.MaxMessageBytes {
		r.s.agent.Refused()
		r.s.hub.Count("parallax.refused.progress")
		p.Item = wire.Item{Omitted: &wire.Omitted{Kind: i.Name(), Bytes: len(frame), Reason: "it does not fit into a message"}}
		frame, err = r.s.frame(wire.TypeTaskProgress, "", p, nil)
	}
	r.add(wire.TypeTaskProgress, frame)
	return err
}

// sendEvent adds the item of an event.
func (r *requesterSink) sendEvent(e core.Event) error {
	if err := r.flush(); err != nil {
		return err
	}
	i, f := wire.ItemOfEvent(e)
	return r.sendItem(i, f)
}

// sendOrFold is sendEvent for an event that is in the metadata of the end without the
// extension.
func (r *requesterSink) sendOrFold(e core.Event) error {
	r.countFolded(e, wire.ExtensionProgress)
	return r.sendEvent(e)
}

// countFolded counts an event that becomes part of the end without an extension.
func (r *requesterSink) countFolded(e core.Event, extension string) {
	if !r.s.extensions[extension] {
		r.s.hub.Count("parallax.folded." + e.Body.Kind().String())
	}
}

// flush adds the text so far.
func (r *requesterSink) flush() error {
	text := r.text.String()
	r.text.Reset()
	return wire.Pieces(text, func(piece string) error { return r.sendItem(wire.Item{Text: &piece}, nil) })
}

// sendText adds text in pieces. The first has the unknown members.
func (r *requesterSink) sendText(text string, f *core.Foreign, item func(piece *string) wire.Item) error {
	if len(text) <= wire.PieceBytes {
		return r.sendItem(item(&text), f)
	}
	return wire.Pieces(text, func(piece string) error {
		first := f
		f = nil
		return r.sendItem(item(&piece), first)
	})
}

func (r *requesterSink) Opened(core.Event, core.Opened) error { return nil }

func (r *requesterSink) Assigned(e core.Event, b core.Assigned) error {
	r.request.attempt = b.Attempt
	r.countFolded(e, "") // in the executionId of what follows
	return nil
}

func (r *requesterSink) Accepted(e core.Event, b core.Accepted) error {
	r.countFolded(e, wire.ExtensionAccepted)
	if !r.s.extensions[wire.ExtensionAccepted] {
		return nil
	}
	if err := r.flush(); err != nil {
		return err
	}
	p := wire.TaskAccepted{TaskRef: r.ref(), EstimatedMs: wire.Count(b.Estimate.Milliseconds())}
	frame, err := r.s.frame(wire.TypeTaskAccepted, "", p, e.Foreign)
	r.add(wire.TypeTaskAccepted, frame)
	return err
}

func (r *requesterSink) Text(e core.Event, b core.Text) error {
	r.request.streamed = true
	if wire.MembersOf(e.Foreign) == nil {
		r.text.WriteString(b.Text)
		return nil
	}
	if err := r.flush(); err != nil {
		return err
	}
	return r.sendText(b.Text, e.Foreign, func(piece *string) wire.Item { return wire.Item{Text: piece} })
}

func (r *requesterSink) Thinking(e core.Event, b core.Thinking) error {
	r.countFolded(e, wire.ExtensionProgress)
	if err := r.flush(); err != nil {
		return err
	}
	return r.sendText(b.Text, e.Foreign, func(piece *string) wire.Item { return wire.Item{Thinking: piece} })
}

func (r *requesterSink) SessionStarted(e core.Event, _ core.SessionStarted) error {
	return r.sendOrFold(e)
}
func (r *requesterSink) SessionLost(e core.Event, _ core.SessionLost) error { return r.sendOrFold(e) }
func (r *requesterSink) ToolCall(e core.Event, _ core.ToolCall) error       { return r.sendOrFold(e) }
func (r *requesterSink) ToolState(e core.Event, _ core.ToolState) error     { return r.sendOrFold(e) }
func (r *requesterSink) ToolResult(e core.Event, _ core.ToolResult) error   { return r.sendOrFold(e) }
func (r *requesterSink) ApprovalRequested(e core.Event, _ core.ApprovalRequested) error {
	return r.sendOrFold(e)
}
func (r *requesterSink) ApprovalDecided(e core.Event, _ core.ApprovalDecided) error {
	return r.sendOrFold(e)
}
func (r *requesterSink) QuestionAsked(e core.Event, _ core.QuestionAsked) error {
	return r.sendOrFold(e)
}
func (r *requesterSink) QuestionAnswered(e core.Event, _ core.QuestionAnswered) error {
	return r.sendOrFold(e)
}
func (r *requesterSink) InjectionAnswered(e core.Event, _ core.InjectionAnswered) error {
	return r.sendOrFold(e)
}
func (r *requesterSink) Usage(e core.Event, _ core.Usage) error               { return r.sendOrFold(e) }
func (r *requesterSink) Retrying(e core.Event, _ core.Retrying) error         { return r.sendOrFold(e) }
func (r *requesterSink) ForeignFrame(e core.Event, _ core.ForeignFrame) error { return r.sendOrFold(e) }
func (r *requesterSink) Injected(core.Event, core.Injected) error             { return nil }

// File has a member of its own in a result, where it is not folded.
func (r *requesterSink) File(e core.Event, _ core.File) error { return r.sendEvent(e) }

func (r *requesterSink) CancelRequested(e core.Event, _ core.CancelRequested) error {
	r.countFolded(e, "") // in the code of the task_error
	return nil
}
