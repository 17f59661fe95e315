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
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// maxItemBytes bounds the items that a plain agent sends with its result.
const maxItemBytes = 256 << 10

// output is what a handler has reported about its task.
type output struct {
	mu       sync.Mutex
	seq      wire.Count
	streamed bool // text was sent as progress
	usage    core.Usage
	end      core.Body

	// Of a plain agent, which sends all at the end.
	text      strings.Builder
	files     []core.File
	items     []json.RawMessage // everything but text and files
	itemBytes int
	omitted   int // items beyond maxItemBytes
}

func (o *output) reportedEnd() core.Body {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.end
}

// report handles an event of the handler: it sends task_progress, or keeps the event for
// the end. The error is the cause of ctx, or a Fault for an event that the dialect does
// not have.
func (w *worker) report(ctx context.Context, j *job, body core.Body) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	o := &j.output
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.end != nil {
		return core.NewFault(core.CodeConflict, "the task has ended: nothing may follow its end")
	}
	switch b := body.(type) {
	case core.Done, core.Failed, core.Cancelled:
		o.end = b
		return nil
	case core.Accepted:
		if !w.extensions[wire.ExtensionAccepted] {
			return nil // the result implies it
		}
		return w.send(ctx, wire.TypeTaskAccepted, "", wire.TaskAccepted{TaskRef: j.ref, EstimatedMs: wire.Count(b.Estimate.Milliseconds())})
	case core.Usage:
		o.usage = o.usage.Add(b)
	}
	if kind := body.Kind(); !wire.AgentMaySend(kind) {
		return core.NewFault(core.CodeUnsupported, "a Parallax agent cannot send %s", kind)
	}
	if w.extensions[wire.ExtensionProgress] {
		return w.stream(ctx, j, body)
	}
	o.keep(body)
	return nil
}

// stream sends an event as task_progress.
func (w *worker) stream(ctx context.Context, j *job, body core.Body) error {
	switch b := body.(type) {
	case core.Text:
		j.output.streamed = j.output.streamed || b.Text != ""
		return wire.Pieces(b.Text, func(piece string) error { return w.sendItem(ctx, j, wire.Item{Text: &piece}) })
	case core.Thinking:
		return wire.Pieces(b.Text, func(piece string) error { return w.sendItem(ctx, j, wire.Item{Thinking: &piece}) })
	}
	i, _ := wire.ItemOf(body)
	return w.sendItem(ctx, j, i)
}

func (w *worker) sendItem(ctx context.Context, j *job, i wire.Item) error {
	frame, err := w.frame(wire.TypeTaskProgress, "", wire.Progress{TaskRef: j.ref, Seq: j.output.seq + 1, Item: i})
	if err != nil {
		return err
	}
	if len(frame) > wire.DefaultMaxMessageBytes {
		return core.NewFault(core.CodeTooLarge, "%s makes a message of %d bytes, the limit is %d", i.Name(), len(frame), wire.DefaultMaxMessageBytes)
	}
	if err := w.link.Send(ctx, frame, len(frame)); err != nil {
		return err
	}
	j.output.seq++
	return nil
}

// keep keeps an event for the result.
func (o *output) keep(body core.Body) {
	switch b := body.(type) {
	case core.Text:
		o.text.WriteString(b.Text)
		return
	case core.File:
		o.files = append(o.files, b)
		return
	}
	i, _ := wire.ItemOf(body)
	raw, err := strictjson.Marshal(i)
	if err != nil || o.itemBytes+len(raw) > maxItemBytes {
		o.omitted++
		return
	}
	o.items, o.itemBytes = append(o.items, raw), o.itemBytes+len(raw)
}

// remainder returns what was not sent as progress. whole is the text unless the handler
// reported text before.
func (o *output) remainder(whole string) (core.Answer, wire.ResultMetadata) {
	o.mu.Lock()
	defer o.mu.Unlock()
	a := core.Answer{Text: o.text.String(), Files: o.files}
	if a.Text == "" && !o.streamed {
		a.Text = whole
	}
	return a, wire.ResultMetadata{TokensUsed: wire.Count(o.usage.Total()), Progress: o.items, ProgressOmitted: o.omitted}
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
	a, m := j.output.remainder(b.Text)
	a.Data = b.Data
	p, err := wire.ResultOf(j.ref, a)
	if err != nil {
		return w.sendError(ctx, j, core.NewFault(core.CodeInvalid, "the data of the answer is not JSON").Because(err))
	}
	m.TokensUsed, m.Truncated = cmp.Or(wire.Count(b.TokensUsed), m.TokensUsed), b.Truncated
	p.Duration, p.Metadata = max(1, wire.MillisecondsOf(time.Since(j.start))), m
	frame, _, err := wire.Fit(wire.DefaultMaxMessageBytes, &p.Metadata, func() ([]byte, error) { return w.frame(wire.TypeTaskResult, "", p) })
	if err != nil {
		return err
	}
	if len(frame) > wire.DefaultMaxMessageBytes {
		return w.sendError(ctx, j, core.NewFault(core.CodeTooLarge, "the answer makes a message of %d bytes, the limit is %d", len(frame), wire.DefaultMaxMessageBytes))
	}
	return w.link.Send(ctx, frame, len(frame))
}

// sendError sends a task_error. That of a plain agent has the answer so far.
func (w *worker) sendError(ctx context.Context, j *job, f *core.Fault) error {
	p := wire.TaskErrorOf(j.ref, f, nil)
	if !w.extensions[wire.ExtensionProgress] {
		if err := p.SetPartial(j.output.remainder("")); err != nil {
			return err
		}
	}
	frame, _, err := p.Fit(wire.DefaultMaxMessageBytes, func() ([]byte, error) { return w.frame(wire.TypeTaskError, "", p) })
	if err != nil {
		return err
	}
	return w.link.Send(ctx, frame, len(frame))
}
