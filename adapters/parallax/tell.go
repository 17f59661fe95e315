package parallax

import (
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// requesterSink turns the events of one task into frames to the agent that asked
// for it: a task_progress each where it declared that extension, and the end,
// which otherwise tells it all (ending.go). Text that follows text goes out
// together.
type requesterSink struct {
	s    *session
	task *task.Task
	ask  *asking
	text strings.Builder
	out  []outgoing
}

func (r *requesterSink) put(kind string, frame []byte) {
	r.out = append(r.out, outgoing{kind: kind, frame: frame})
}

func (r *requesterSink) about() wire.TaskRef {
	a := wire.TaskRef{RequestID: r.ask.request, TaskID: string(r.task.ID())}
	if r.ask.attempt > 0 {
		a.ExecutionID = executionOf(r.task.ID(), r.ask.attempt)
	}
	return a
}

// say sends one item, or says that it does not fit.
func (r *requesterSink) say(i wire.Item, f *core.Foreign) error {
	if !r.s.extensions[wire.ExtensionProgress] {
		return nil
	}
	r.ask.seq++
	frame, err := r.s.frameLike(wire.TypeTaskProgress, wire.Progress{TaskRef: r.about(), Seq: r.ask.seq, Item: i}, f)
	if err != nil {
		return err
	}
	if len(frame) > r.s.opts.MaxMessageBytes {
		r.s.hub.Count("parallax.refused.progress")
		note := wire.Omitted{Kind: i.Name(), Bytes: len(frame), Reason: "it does not fit into a message"}
		if frame, err = r.s.frame(wire.TypeTaskProgress, "", wire.Progress{TaskRef: r.about(), Seq: r.ask.seq, Item: wire.Item{Omitted: &note}}); err != nil {
			return err
		}
	}
	r.put(wire.TypeTaskProgress, frame)
	return nil
}

// tell sends what has an item of its own.
func (r *requesterSink) tell(e core.Event) error {
	r.folds(e, wire.ExtensionProgress)
	if err := r.flush(); err != nil {
		return err
	}
	i, f := wire.ItemOfEvent(e)
	return r.say(i, f)
}

// folds counts what the end has to tell of, to one without the extension.
func (r *requesterSink) folds(e core.Event, extension string) {
	if !r.s.extensions[extension] {
		r.count("folded", e.Body)
	}
}

func (r *requesterSink) count(how string, b core.Body) {
	r.s.hub.Count("parallax." + how + "." + b.Kind().String())
}

// flush sends the text that was gathered.
func (r *requesterSink) flush() error {
	text := r.text.String()
	r.text.Reset()
	return wire.Pieces(text, func(piece string) error { return r.say(wire.Item{Text: &piece}, nil) })
}

// sayLong sends text in pieces. The first has with it what was said beside.
func (r *requesterSink) sayLong(text string, f *core.Foreign, of func(piece *string) wire.Item) error {
	if len(text) <= wire.PieceBytes {
		return r.say(of(&text), f)
	}
	return wire.Pieces(text, func(piece string) error {
		beside := f
		f = nil
		return r.say(of(&piece), beside)
	})
}

func (r *requesterSink) Opened(core.Event, core.Opened) error { return nil }

func (r *requesterSink) Assigned(_ core.Event, b core.Assigned) error {
	r.ask.attempt = b.Attempt
	r.count("folded", b)
	return nil
}

func (r *requesterSink) Accepted(e core.Event, b core.Accepted) error {
	r.folds(e, wire.ExtensionAccepted)
	if !r.s.extensions[wire.ExtensionAccepted] {
		return nil
	}
	if err := r.flush(); err != nil {
		return err
	}
	p := wire.TaskAccepted{TaskRef: r.about(), EstimatedMs: wire.Count(b.Estimate.Milliseconds())}
	frame, err := r.s.frameLike(wire.TypeTaskAccepted, p, e.Foreign)
	r.put(wire.TypeTaskAccepted, frame)
	return err
}

func (r *requesterSink) Text(e core.Event, b core.Text) error {
	r.ask.streamed = true
	if wire.MembersOf(e.Foreign) == nil {
		r.text.WriteString(b.Text)
		return nil
	}
	if err := r.flush(); err != nil {
		return err
	}
	return r.sayLong(b.Text, e.Foreign, func(piece *string) wire.Item { return wire.Item{Text: piece} })
}

func (r *requesterSink) Thinking(e core.Event, b core.Thinking) error {
	r.folds(e, wire.ExtensionProgress)
	if err := r.flush(); err != nil {
		return err
	}
	return r.sayLong(b.Text, e.Foreign, func(piece *string) wire.Item { return wire.Item{Thinking: piece} })
}

func (r *requesterSink) SessionStarted(e core.Event, _ core.SessionStarted) error { return r.tell(e) }
func (r *requesterSink) SessionLost(e core.Event, _ core.SessionLost) error       { return r.tell(e) }
func (r *requesterSink) ToolCall(e core.Event, _ core.ToolCall) error             { return r.tell(e) }
func (r *requesterSink) ToolState(e core.Event, _ core.ToolState) error           { return r.tell(e) }
func (r *requesterSink) ToolResult(e core.Event, _ core.ToolResult) error         { return r.tell(e) }
func (r *requesterSink) ApprovalRequested(e core.Event, _ core.ApprovalRequested) error {
	return r.tell(e)
}
func (r *requesterSink) ApprovalDecided(e core.Event, _ core.ApprovalDecided) error {
	return r.tell(e)
}
func (r *requesterSink) InjectionAnswered(e core.Event, _ core.InjectionAnswered) error {
	return r.tell(e)
}
func (r *requesterSink) Usage(e core.Event, _ core.Usage) error               { return r.tell(e) }
func (r *requesterSink) Retrying(e core.Event, _ core.Retrying) error         { return r.tell(e) }
func (r *requesterSink) ForeignFrame(e core.Event, _ core.ForeignFrame) error { return r.tell(e) }
func (r *requesterSink) Injected(core.Event, core.Injected) error             { return nil }

// File tells a file, which has a place of its own in a result.
func (r *requesterSink) File(e core.Event, _ core.File) error {
	if err := r.flush(); err != nil {
		return err
	}
	i, f := wire.ItemOfEvent(e)
	return r.say(i, f)
}

func (r *requesterSink) CancelRequested(_ core.Event, b core.CancelRequested) error {
	r.count("folded", b) // the code of the task_error says it
	return nil
}
