package client

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// maxItemBytes bounds the items that a plain agent sends with its result.
const maxItemBytes = 256 << 10

// said is what a handler has said of its task.
type said struct {
	mu    sync.Mutex
	seq   wire.Count
	told  bool // text went out as progress
	spent core.Usage
	end   core.Body

	// Of a plain agent, which says all at the end.
	text  strings.Builder
	files []core.File
	items []json.RawMessage // what is neither text nor a file
	bytes int               // of items
	lost  int               // how many did not fit there
}

func (t *said) ended() core.Body {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.end
}

// say tells the hub what the handler says: at once by task_progress, or at the
// end. It returns the cause of ctx once there is no use in saying more, and a
// Fault for what cannot be said in this dialect.
func (w *worker) say(ctx context.Context, j *job, body core.Body) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	t := &j.said
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.end != nil {
		return core.NewFault(core.CodeConflict, "the task was ended before: say nothing behind its end")
	}
	kind := body.Kind()
	switch b := body.(type) {
	case core.Done, core.Failed, core.Cancelled:
		t.end = b
		return nil
	case core.Accepted:
		if !w.extensions[wire.ExtensionAccepted] {
			return nil // the result implies it
		}
		return w.send(ctx, wire.TypeTaskAccepted, wire.TaskAccepted{TaskRef: j.about, EstimatedMs: wire.Count(b.Estimate.Milliseconds())})
	case core.Usage:
		t.spent = t.spent.Add(b)
	}
	if !wire.AgentMaySend(kind) {
		return core.NewFault(core.CodeUnsupported, "a Parallax agent cannot say %s", kind)
	}
	if w.extensions[wire.ExtensionProgress] {
		return w.stream(ctx, j, body)
	}
	t.gather(body)
	return nil
}

// stream sends what was said as task_progress.
func (w *worker) stream(ctx context.Context, j *job, body core.Body) error {
	switch b := body.(type) {
	case core.Text:
		j.said.told = j.said.told || b.Text != ""
		return wire.Pieces(b.Text, func(piece string) error { return w.progress(ctx, j, wire.Item{Text: &piece}) })
	case core.Thinking:
		return wire.Pieces(b.Text, func(piece string) error { return w.progress(ctx, j, wire.Item{Thinking: &piece}) })
	}
	i, _ := wire.ItemOf(body)
	return w.progress(ctx, j, i)
}

func (w *worker) progress(ctx context.Context, j *job, i wire.Item) error {
	frame, err := w.frame(wire.TypeTaskProgress, "", wire.Progress{TaskRef: j.about, Seq: j.said.seq + 1, Item: i})
	if err != nil {
		return err
	}
	if len(frame) > w.opts.MaxMessageBytes {
		return core.NewFault(core.CodeTooLarge, "%s makes a message of %d bytes, the limit is %d", i.Name(), len(frame), w.opts.MaxMessageBytes)
	}
	if err := w.link.Send(ctx, frame, len(frame)); err != nil {
		return err
	}
	j.said.seq++
	return nil
}

// gather keeps what was said for the result.
func (t *said) gather(body core.Body) {
	switch b := body.(type) {
	case core.Text:
		t.text.WriteString(b.Text)
		return
	case core.File:
		t.files = append(t.files, b)
		return
	}
	i, _ := wire.ItemOf(body)
	raw, err := wire.Marshal(i)
	if err != nil || t.bytes+len(raw) > maxItemBytes {
		t.lost++
		return
	}
	t.items, t.bytes = append(t.items, raw), t.bytes+len(raw)
}

// untold is what the end has to tell: what a plain agent has gathered. Where no
// text was said, it is whole.
func (t *said) untold(whole string) (core.Answer, wire.ResultMetadata) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := core.Answer{Text: t.text.String(), Files: t.files}
	if a.Text == "" && !t.told {
		a.Text = whole
	}
	return a, wire.ResultMetadata{TokensUsed: wire.Count(t.spent.Total()), Progress: t.items, ProgressOmitted: t.lost}
}

// finish sends the end of a task.
func (w *worker) finish(ctx context.Context, j *job, end core.Body) error {
	switch b := end.(type) {
	case core.Failed:
		return w.sendError(ctx, j, core.AsFault(b.Fault))
	case core.Cancelled:
		return w.sendError(ctx, j, core.NewFault(core.CodeCancelled, "%s", cmp.Or(b.Reason, "cancelled")))
	case core.Done:
		return w.sendResult(ctx, j, b)
	}
	return nil
}

func (w *worker) sendResult(ctx context.Context, j *job, b core.Done) error {
	a, m := j.said.untold(b.Text)
	a.Data = b.Data
	p, err := wire.ResultOf(j.about, a)
	if err != nil {
		return w.finish(ctx, j, core.Failed{Fault: core.NewFault(core.CodeInvalid, "the data of the answer is not JSON").Because(err)})
	}
	m.TokensUsed, m.Truncated = cmp.Or(wire.Count(b.TokensUsed), m.TokensUsed), b.Truncated
	p.Duration, p.Metadata = max(1, wire.MillisecondsOf(time.Since(j.at))), m
	frame, _, err := wire.Fit(w.opts.MaxMessageBytes, &p.Metadata, func() ([]byte, error) { return w.frame(wire.TypeTaskResult, "", p) })
	if err != nil {
		return err
	}
	if len(frame) > w.opts.MaxMessageBytes {
		return w.finish(ctx, j, core.Failed{Fault: core.NewFault(core.CodeTooLarge, "the answer makes a message of %d bytes, the limit is %d", len(frame), w.opts.MaxMessageBytes)})
	}
	return w.link.Send(ctx, frame, len(frame))
}

// sendError sends why there is no answer, with what a plain agent has of one.
func (w *worker) sendError(ctx context.Context, j *job, f *core.Fault) error {
	p := wire.TaskErrorOf(j.about, f, nil)
	if !w.extensions[wire.ExtensionProgress] {
		if err := p.SetPartial(j.said.untold("")); err != nil {
			return err
		}
	}
	frame, _, err := p.Fit(w.opts.MaxMessageBytes, func() ([]byte, error) { return w.frame(wire.TypeTaskError, "", p) })
	if err != nil {
		return err
	}
	return w.link.Send(ctx, frame, len(frame))
}
