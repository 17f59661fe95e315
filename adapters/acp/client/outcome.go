package client

import (
	"context"
	"errors"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// outcome collects what a handler says for one query or delegate.
type outcome struct {
	w     *worker
	task  *task
	live  bool // what the handler says is sent at once, as progress
	seq   uint64
	sent  int // bytes of text that were sent
	text  strings.Builder
	files []core.File
	usage core.Usage
	end   core.Body
}

// outcomeKey is the key of the outcome in the context of its handler.
type outcomeKey struct{}

// answer calls the handler for a query or a delegate and sends the outcome. ctx is the
// task's, all the worker's, in which the outcome of a cancelled task is sent.
func (w *worker) answer(all, ctx context.Context, t *task, handle core.Handler) {
	w.mu.Lock()
	o := &outcome{w: w, task: t, live: w.progress}
	w.mu.Unlock()
	if !t.req.Deadline.IsZero() {
		var done context.CancelFunc
		ctx, done = context.WithDeadline(ctx, t.req.Deadline)
		defer done()
	}
	err := context.Cause(ctx)
	acked := err == nil && t.e.Kind == wire.KindDelegate
	if acked && !t.req.ReportBack {
		w.tasks.Release(t.e.ID) // for the hub the ack is its end: it may send the next, which waits
	}
	if acked {
		_ = w.reply(all, t.e, wire.KindAck, wire.Ack{Accepted: true}) // if it cannot be sent, nor can the rest
	}
	if err == nil {
		err = handle(context.WithValue(ctx, outcomeKey{}, o), t.req, o.say(ctx))
	}
	switch {
	case o.end != nil:
	case err == nil:
		o.end = core.Done{}
	default:
		if cause := context.Cause(ctx); cause != nil && errors.Is(err, ctx.Err()) {
			err = cause
		}
		o.end = wire.EndOf(core.AsFault(err))
	}
	last := o.envelope()

	w.tasks.Release(t.e.ID)         // from here on no cancel is added, and there is room for the next
	if !acked || t.req.ReportBack { // else nothing follows the ack
		_ = w.send(all, last)
	}
	for _, c := range t.cancels {
		_ = w.reply(all, c, wire.KindAck, wire.Ack{Accepted: o.end.Kind() == core.KindCancelled})
	}
}

// say returns the function through which the handler answers.
func (o *outcome) say(ctx context.Context) func(core.Body) error {
	return func(b core.Body) error {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		switch b := b.(type) {
		case core.Done:
			if o.live && o.sent == 0 && len(b.Text) > wire.MaxPieceBytes {
				if err := o.sayText(ctx, core.Text{Text: b.Text}); err != nil {
					return err
				}
				b.Text = ""
			}
			o.endWith(b)
			return nil
		case core.Failed, core.Cancelled:
			o.endWith(b)
			return nil
		case core.Text:
			return o.sayText(ctx, b)
		case core.ApprovalRequested:
			return core.NewFault(core.CodeUnsupported, "an ACP agent cannot ask for an approval: it has no way to hear the decision")
		case core.Usage:
			o.usage = o.usage.Add(b)
		case core.File:
			if !o.live {
				o.files = append(o.files, b)
			}
		}
		if !o.live || !wire.CanProgress(b.Kind()) {
			return nil
		}
		return o.progress(ctx, b)
	}
}

// endWith sets the end of the task unless it is set already.
func (o *outcome) endWith(b core.Body) {
	if o.end == nil {
		o.end = b
	}
}

// sayText sends a piece of text, or collects it.
func (o *outcome) sayText(ctx context.Context, b core.Text) error {
	if !o.live {
		o.text.WriteString(b.Text)
		return nil
	}
	if o.text.Len() < 4*wire.SummaryBytes {
		o.text.WriteString(b.Text) // for the summary
	}
	for rest := b.Text; rest != ""; {
		var part string
		part, rest = wire.CutText(rest, wire.PieceBytes(wire.DefaultMaxEnvelopeBytes))
		if err := o.progress(ctx, core.Text{Text: part}); err != nil {
			return err
		}
		o.sent += len(part)
	}
	return nil
}

func (o *outcome) progress(ctx context.Context, b core.Body) error {
	o.seq++
	e := o.w.envelope(wire.KindProgress, o.task.e.From, o.task.e.ID, nil)
	e.Payload = wire.ProgressOf(o.seq, b)
	raw := e.Encode()
	if len(raw) > wire.DefaultMaxEnvelopeBytes {
		return core.NewFault(core.CodeTooLarge, "%s has %d bytes as an envelope, the limit is %d", b.Kind(), len(raw), wire.DefaultMaxEnvelopeBytes)
	}
	return o.w.link.Send(ctx, raw, len(raw))
}

// envelope returns the last envelope: the response, the result or the error.
func (o *outcome) envelope() wire.Envelope {
	answer := o.fold()
	if o.live && answer.Fault != nil && o.task.e.Kind == wire.KindQuery {
		answer = core.Answer{Fault: answer.Fault} // the rest was sent as progress
	}
	e := o.w.envelope(o.task.e.Kind, o.task.e.From, o.task.e.ID, nil)
	e.Kind, e.Payload = wire.LastOf(o.task.e.Kind, o.task.req, answer)
	if size := len(e.Encode()); size > wire.DefaultMaxEnvelopeBytes {
		told := wire.Refusef(wire.CodeTooLarge, "the answer has %d bytes as an envelope, the limit is %d", size, wire.DefaultMaxEnvelopeBytes)
		if answer.Fault != nil {
			told = wire.ErrorOf(wire.WithoutContent(answer).Fault)
		}
		e.Kind, e.Payload = wire.KindError, wire.Marshal(told)
	}
	return e
}

// fold returns the answer that the last envelope gives.
func (o *outcome) fold() core.Answer {
	events := []core.Event{{Body: core.Text{Text: o.text.String()}}, {Body: o.usage}}
	for _, f := range o.files {
		events = append(events, core.Event{Body: f})
	}
	answer := core.Fold(append(events, core.Event{Body: o.end}))
	if o.sent > 0 {
		answer.Text = wire.Summary(answer.Text)
	}
	return answer
}
