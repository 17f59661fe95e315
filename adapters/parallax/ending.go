package parallax

import (
	"cmp"
	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// untold is what the end has to tell of the task: the answer as far as it did not
// go out as progress and, without that extension, what was said on the way.
func (r *requesterSink) untold() (core.Answer, wire.ResultMetadata) {
	whole := r.task.Answer()
	a := core.Answer{Text: whole.Text, Data: whole.Data, Files: whole.Files}
	m := wire.ResultMetadata{TokensUsed: wire.Count(whole.TokensUsed), Truncated: whole.Truncated}
	if r.s.extensions[wire.ExtensionProgress] {
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
		if raw := wire.MetadataItem(e); raw != nil {
			m.Progress = append(m.Progress, raw)
		}
	}
	return a, m
}

// Done ends what was asked with a task_result.
func (r *requesterSink) Done(e core.Event, _ core.Done) error {
	if err := r.flush(); err != nil {
		return err
	}
	a, m := r.untold()
	p, err := wire.ResultOf(r.about(), a)
	if err != nil {
		return err
	}
	p.Metadata = m
	limit := r.s.opts.MaxMessageBytes
	frame, without, err := wire.Fit(limit, &p.Metadata, func() ([]byte, error) { return r.s.frameLike(wire.TypeTaskResult, p, e.Foreign) })
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
	r.put(wire.TypeTaskResult, frame)
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
	return r.failed(core.NewFault(core.CodeCancelled, "%s", cmp.Or(b.Reason, "cancelled")), e.Foreign)
}

func (r *requesterSink) failed(f *core.Fault, foreign *core.Foreign) error {
	p := wire.TaskErrorOf(r.about(), f, foreign)
	if !r.s.extensions[wire.ExtensionProgress] {
		if err := p.SetPartial(r.untold()); err != nil {
			return err
		}
	}
	frame, without, err := p.Fit(r.s.opts.MaxMessageBytes, func() ([]byte, error) { return r.s.frameLike(wire.TypeTaskError, p, foreign) })
	for _, what := range without {
		r.s.hub.Count("parallax.refused." + what)
	}
	r.s.forget(r.ask)
	r.put(wire.TypeTaskError, frame)
	return err
}
