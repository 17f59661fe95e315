package parallax

import (
	"encoding/json"

	"github.com/dragoman-hub/dragoman/core"
)

// fitting returns a frame, without the progress in its metadata where that makes
// it larger than limit, and whether it is without.
func fitting(limit int, m *resultMetadata, frame func() ([]byte, error)) (b []byte, without bool, err error) {
	b, err = frame()
	if err != nil || len(b) <= limit || len(m.Progress) == 0 {
		return b, false, err
	}
	m.ProgressOmitted += len(m.Progress)
	m.Progress = nil
	b, err = frame()
	return b, true, err
}

// fitting is the same for a task_error, which goes without its partial result too
// before it does not go at all.
func (e *taskError) fitting(limit int, frame func() ([]byte, error)) (b []byte, without []string, err error) {
	b, dropped, err := fitting(limit, &e.Metadata, frame)
	if dropped {
		without = append(without, "progress")
	}
	if err != nil || len(b) <= limit || len(e.PartialResult) == 0 {
		return b, without, err
	}
	e.Omitted = &omitted{Kind: "partialResult", Bytes: len(e.PartialResult), Reason: "it does not fit into a message"}
	e.PartialResult = nil
	b, err = frame()
	return b, append(without, "partial_result"), err
}

// partly adds to a task_error the answer as far as it went.
func (e *taskError) partly(a answer, m resultMetadata) (err error) {
	a.Data, e.Metadata = nil, m
	if a.Text != "" || len(a.Files) > 0 {
		e.PartialResult, err = a.value()
	}
	return err
}

// untold is what the end has to tell of the task: the answer as far as it did not
// go out as progress and, without that extension, what was said on the way.
func (r *requesterSink) untold() (answer, resultMetadata) {
	whole := r.task.Answer()
	a := answer{Text: whole.Text, Data: whole.Data, Files: whole.Files}
	m := resultMetadata{TokensUsed: count(whole.TokensUsed), Truncated: whole.Truncated}
	if r.s.extensions[extProgress] {
		a.Files = nil
		if r.ask.streamed {
			a.Text = ""
		}
		return a, m
	}
	for _, e := range r.task.Events() {
		switch e.Body.Kind() {
		case core.KindText, core.KindFile:
			continue
		}
		if raw := asideOf(e); raw != nil {
			m.Progress = append(m.Progress, raw)
		}
	}
	return a, m
}

// asideOf is the item of an event as the metadata of an end has it; nil for none.
func asideOf(e core.Event) json.RawMessage {
	if _, has := itemOf(e.Body); !has {
		return nil
	}
	i, f := itemLike(e)
	raw, err := marshal(i)
	if err != nil {
		return nil // a tool's input was checked before: there is no such item
	}
	return overlay(raw, membersOf(f)["payload"])
}

// Done ends what was asked with a task_result.
func (r *requesterSink) Done(e core.Event, _ core.Done) error {
	if err := r.flush(); err != nil {
		return err
	}
	a, m := r.untold()
	p, err := resultOf(r.about(), a)
	if err != nil {
		return err
	}
	p.Metadata = m
	limit := r.s.opts.MaxMessageBytes
	frame, without, err := fitting(limit, &p.Metadata, func() ([]byte, error) { return r.s.frameLike(typeTaskResult, p, e.Foreign) })
	if err != nil {
		return err
	}
	if without {
		r.s.hub.Count("parallax.refused.progress")
	}
	if len(frame) > limit {
		r.s.hub.Count("parallax.refused.result")
		return r.failed(core.NewFault(core.CodeTooLarge, "the answer makes a message of %d bytes, the limit is %d: declare task_progress to get it in parts, or ask for less", len(frame), limit), nil)
	}
	r.s.forget(r.ask)
	r.put(typeTaskResult, frame)
	return nil
}

// Failed ends what was asked with a task_error.
func (r *requesterSink) Failed(e core.Event, b core.Failed) error {
	if err := r.flush(); err != nil {
		return err
	}
	return r.failed(b.Fault, e.Foreign)
}

// Cancelled ends what was asked with a task_error.
func (r *requesterSink) Cancelled(e core.Event, b core.Cancelled) error {
	if err := r.flush(); err != nil {
		return err
	}
	return r.failed(core.NewFault(core.CodeCancelled, "%s", orText(b.Reason, "cancelled")), e.Foreign)
}

func (r *requesterSink) failed(f *core.Fault, foreign *core.Foreign) error {
	p := taskErrorOf(r.about(), f, foreign)
	if !r.s.extensions[extProgress] {
		if err := p.partly(r.untold()); err != nil {
			return err
		}
	}
	frame, without, err := p.fitting(r.s.opts.MaxMessageBytes, func() ([]byte, error) { return r.s.frameLike(typeTaskError, p, foreign) })
	for _, what := range without {
		r.s.hub.Count("parallax.refused." + what)
	}
	r.s.forget(r.ask)
	r.put(typeTaskError, frame)
	return err
}
