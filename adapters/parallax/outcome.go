package parallax

import (
	"cmp"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// remainder returns what the end has to carry: the part of the answer that was not sent as
// progress and, without that extension, all other events.
func (r *requesterSink) remainder() (core.Answer, wire.ResultMetadata) {
	a := r.task.Answer()
	m := wire.ResultMetadata{TokensUsed: wire.Count(a.TokensUsed), Truncated: a.Truncated}
	if r.s.extensions[wire.ExtensionProgress] {
		a.Files = nil
		if r.request.streamed {
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

// Done ends the request with a task_result.
func (r *requesterSink) Done(e core.Event, _ core.Done) error {
	if err := r.flush(); err != nil {
		return err
	}
	a, m := r.remainder()
	p, err := wire.ResultOf(r.ref(), a)
	if err != nil {
		return err
	}
	p.Metadata = m
	limit := r.s.opts.MaxMessageBytes
	frame, dropped, err := wire.Fit(limit, &p.Metadata, func() ([]byte, error) { return r.s.frame(wire.TypeTaskResult, "", p, e.Foreign) })
	if err != nil {
		return err
	}
	if dropped {
		r.s.hub.Count("parallax.refused.progress")
	}
	if len(frame) > limit {
		r.s.agent.Refused()
		r.s.hub.Count("parallax.refused.result")
		return r.fail(core.NewFault(core.CodeTooLarge, "the answer makes a message of %d bytes, the limit is %d: declare task_progress to get it in parts, or ask for less", len(frame), limit), nil)
	}
	r.s.forget(r.request)
	r.add(wire.TypeTaskResult, frame)
	return nil
}

// Failed ends the request with a task_error.
func (r *requesterSink) Failed(e core.Event, b core.Failed) error { return r.fail(b.Fault, e.Foreign) }

// Cancelled ends the request with a task_error.
func (r *requesterSink) Cancelled(e core.Event, b core.Cancelled) error {
	return r.fail(core.NewFault(core.CodeCancelled, "%s", cmp.Or(b.Reason, "cancelled")), e.Foreign)
}

func (r *requesterSink) fail(f *core.Fault, foreign *core.Foreign) error {
	if err := r.flush(); err != nil {
		return err
	}
	p := wire.TaskErrorOf(r.ref(), f, foreign)
	if !r.s.extensions[wire.ExtensionProgress] {
		if err := p.SetPartial(r.remainder()); err != nil {
			return err
		}
	}
	frame, dropped, err := p.Fit(r.s.opts.MaxMessageBytes, func() ([]byte, error) { return r.s.frame(wire.TypeTaskError, "", p, foreign) })
	for _, what := range dropped {
		r.s.hub.Count("parallax.refused." + what)
	}
	r.s.forget(r.request)
	r.add(wire.TypeTaskError, frame)
	return err
}
