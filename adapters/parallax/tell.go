package parallax

import (
	"strings"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// pieceBytes bounds the text of one task_progress: escaped, at worst six times
// as long, it still fits into a message.
const pieceBytes = 32 << 10

// requesterSink turns the events of one task into frames to the agent that asked
// for it: a task_progress each where it declared that extension, and the end.
// Text that follows text goes out together.
type requesterSink struct {
	s    *session
	task *hub.Task
	ask  *asking
	text strings.Builder
	out  []outgoing
}

func (r *requesterSink) put(frame []byte, err error) error {
	r.out = append(r.out, outgoing{frame: frame})
	return err
}

func (r *requesterSink) about() about {
	a := about{RequestID: r.ask.request, TaskID: string(r.task.ID())}
	if r.ask.attempt > 0 {
		a.ExecutionID = executionOf(r.task.ID(), r.ask.attempt)
	}
	return a
}

// say sends one item, or says that it does not fit.
func (r *requesterSink) say(i item, f *core.Foreign) error {
	if !r.s.extensions[extProgress] {
		return nil // the end tells it: see result
	}
	r.ask.seq++
	frame, err := r.s.frame(typeTaskProgress, "", restore(progress{about: r.about(), Seq: r.ask.seq, item: i}, f))
	if err != nil {
		return err
	}
	if len(frame) > r.s.opts.MaxMessageBytes {
		r.s.hub.Count("parallax.refused.progress")
		note := omitted{Kind: i.name(), Bytes: len(frame), Reason: "it does not fit into a message"}
		if frame, err = r.s.frame(typeTaskProgress, "", progress{about: r.about(), Seq: r.ask.seq, item: item{Omitted: &note}}); err != nil {
			return err
		}
	}
	return r.put(frame, nil)
}

// tell sends what has an item of its own.
func (r *requesterSink) tell(e core.Event) error {
	if err := r.flush(); err != nil {
		return err
	}
	i, ok := itemOf(e.Body)
	if !ok {
		return nil
	}
	return r.say(i, e.Foreign)
}

// flush sends the text that was gathered.
func (r *requesterSink) flush() error {
	text := r.text.String()
	r.text.Reset()
	return pieces(text, func(piece string) error { return r.say(item{Text: &piece}, nil) })
}

// pieces cuts text, between characters, into what fits into a message.
func pieces(text string, each func(string) error) error {
	for len(text) > 0 {
		n := min(len(text), pieceBytes)
		for n < len(text) && n > pieceBytes-utf8.UTFMax && !utf8.RuneStart(text[n]) {
			n--
		}
		if err := each(text[:n]); err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}

func (r *requesterSink) Opened(core.Event, core.Opened) error { return nil }

func (r *requesterSink) Assigned(_ core.Event, b core.Assigned) error {
	r.ask.attempt = b.Attempt
	return nil
}

func (r *requesterSink) Accepted(e core.Event, b core.Accepted) error {
	if !r.s.extensions[extAccepted] {
		return nil
	}
	if err := r.flush(); err != nil {
		return err
	}
	p := taskAccepted{r.about(), count(b.Estimate.Milliseconds())}
	return r.put(r.s.frame(typeTaskAccepted, "", restore(p, e.Foreign)))
}

func (r *requesterSink) Text(e core.Event, b core.Text) error {
	r.ask.streamed = true
	if e.Foreign != nil && len(b.Text) <= pieceBytes {
		return r.tell(e)
	}
	r.text.WriteString(b.Text)
	return nil
}

func (r *requesterSink) Thinking(e core.Event, b core.Thinking) error {
	if e.Foreign != nil && len(b.Text) <= pieceBytes {
		return r.tell(e)
	}
	if err := r.flush(); err != nil {
		return err
	}
	return pieces(b.Text, func(piece string) error { return r.say(item{Thinking: &piece}, nil) })
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
func (r *requesterSink) File(e core.Event, _ core.File) error                   { return r.tell(e) }
func (r *requesterSink) Usage(e core.Event, _ core.Usage) error                 { return r.tell(e) }
func (r *requesterSink) Retrying(e core.Event, _ core.Retrying) error           { return r.tell(e) }
func (r *requesterSink) Injected(core.Event, core.Injected) error               { return nil }
func (r *requesterSink) CancelRequested(core.Event, core.CancelRequested) error { return nil }

func (r *requesterSink) ForeignFrame(e core.Event, b core.ForeignFrame) error {
	if b.Dialect != Dialect {
		return r.tell(e)
	}
	if err := r.flush(); err != nil {
		return err
	}
	return r.say(item{}, e.Foreign) // verbatim, to a peer of the same dialect
}

func (r *requesterSink) Done(e core.Event, _ core.Done) error {
	if err := r.flush(); err != nil {
		return err
	}
	p, err := r.result()
	if err != nil {
		return err
	}
	frame, err := r.s.frame(typeTaskResult, "", restore(p, e.Foreign))
	if err != nil {
		return err
	}
	if len(frame) > r.s.opts.MaxMessageBytes && len(p.Metadata.Progress) > 0 {
		r.s.hub.Count("parallax.refused.progress")
		p.Metadata.Progress, p.Metadata.ProgressOmitted = nil, len(p.Metadata.Progress)
		if frame, err = r.s.frame(typeTaskResult, "", restore(p, e.Foreign)); err != nil {
			return err
		}
	}
	if len(frame) > r.s.opts.MaxMessageBytes {
		r.s.hub.Count("parallax.refused.result")
		return r.failed(core.NewFault(core.CodeTooLarge, "the answer makes a message of %d bytes, the limit is %d: declare task_progress to get it in parts, or ask for less", len(frame), r.s.opts.MaxMessageBytes), nil)
	}
	r.s.forget(r.ask)
	return r.put(frame, nil)
}

// result is the task put together. What went out as progress is not repeated;
// without that extension what was said on the way stands in the metadata.
func (r *requesterSink) result() (taskResult, error) {
	whole := r.task.Answer()
	a := answer{Text: whole.Text, Data: whole.Data, Files: whole.Files}
	streams := r.s.extensions[extProgress]
	if streams {
		a.Files = nil
		if r.ask.streamed {
			a.Text = ""
		}
	}
	p, err := resultOf(r.about(), a, whole.TokensUsed, whole.Truncated)
	if err != nil || streams {
		return p, err
	}
	for _, e := range r.task.Events() {
		switch e.Body.Kind() {
		case core.KindText, core.KindFile:
			continue
		}
		if i, ok := itemOf(e.Body); ok {
			p.Metadata.Progress = append(p.Metadata.Progress, i)
		}
	}
	return p, nil
}

func (r *requesterSink) Failed(e core.Event, b core.Failed) error {
	if err := r.flush(); err != nil {
		return err
	}
	return r.failed(b.Fault, e.Foreign)
}

func (r *requesterSink) Cancelled(e core.Event, b core.Cancelled) error {
	if err := r.flush(); err != nil {
		return err
	}
	return r.failed(core.NewFault(core.CodeCancelled, "%s", orText(b.Reason, "cancelled")), e.Foreign)
}

func (r *requesterSink) failed(f *core.Fault, foreign *core.Foreign) error {
	r.s.forget(r.ask)
	return r.put(r.s.frame(typeTaskError, "", restore(taskErrorOf(r.about(), f, foreign), foreign)))
}
