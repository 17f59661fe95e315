package client

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// outcome gathers what a handler says of one query or delegate.
type outcome struct {
	w   *worker
	job *job
	// live says that what it says leaves at once, by progress.
	live  bool
	seq   uint64
	told  int // bytes of text that left
	text  strings.Builder
	files []core.File
	usage core.Usage
	end   core.Body
}

// answer has the handler work on a query or a delegate and sends the outcome. ctx is the
// task's, work that of all, in which something is still sent when the task was cancelled.
func (w *worker) answer(work, ctx context.Context, j *job, handle core.Handler) {
	w.mu.Lock()
	o := &outcome{w: w, job: j, live: w.progress}
	w.mu.Unlock()
	if !j.req.Deadline.IsZero() {
		var done context.CancelFunc
		ctx, done = context.WithDeadline(ctx, j.req.Deadline)
		defer done()
	}
	if j.e.Kind == wire.KindDelegate && j.req.ReportBack {
		_ = w.reply(work, j.e, wire.KindAck, wire.Ack{Accepted: true}) // when it cannot be sent, nor can the rest
	}
	err := context.Cause(ctx)
	if err == nil {
		err = handle(ctx, j.req, o.say(ctx))
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

	w.tasks.Release(j.e.ID) // no cancel comes any more, and there is room for the next
	if j.e.Kind == wire.KindDelegate && !j.req.ReportBack && o.end.Kind() == core.KindDone {
		// The ack is the end of it for the other side too: only now there is room again.
		_ = w.reply(work, j.e, wire.KindAck, wire.Ack{Accepted: true})
	} else {
		_ = w.send(work, last)
	}
	for _, c := range j.cancels {
		_ = w.reply(work, c, wire.KindAck, wire.Ack{Accepted: o.end.Kind() == core.KindCancelled})
	}
}

// say is what the handler speaks through.
func (o *outcome) say(ctx context.Context) func(core.Body) error {
	return func(b core.Body) error {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		switch b := b.(type) {
		case core.Done:
			if o.live && o.told == 0 && len(b.Text) > wire.MaxPieceBytes {
				if err := o.sayText(ctx, core.Text{Text: b.Text}); err != nil {
					return err
				}
				b.Text = ""
			}
			o.ends(b)
			return nil
		case core.Failed, core.Cancelled:
			o.ends(b)
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

// ends takes the first end that the handler says.
func (o *outcome) ends(b core.Body) {
	if o.end == nil {
		o.end = b
	}
}

// sayText says a piece of text.
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
		part, rest = wire.CutText(rest, wire.PieceBytes(o.w.opts.MaxEnvelopeBytes))
		if err := o.progress(ctx, core.Text{Text: part}); err != nil {
			return err
		}
		o.told += len(part)
	}
	return nil
}

func (o *outcome) progress(ctx context.Context, b core.Body) error {
	o.seq++
	e := o.w.envelope(wire.KindProgress, o.job.e.From, o.job.e.ID, nil)
	e.Payload = wire.ProgressOf(o.seq, b)
	raw := e.Encode()
	if len(raw) > o.w.opts.MaxEnvelopeBytes {
		return core.NewFault(core.CodeTooLarge, "%s has %d bytes as an envelope, the limit is %d", b.Kind(), len(raw), o.w.opts.MaxEnvelopeBytes)
	}
	return o.w.link.Send(ctx, raw, len(raw))
}

// envelope is the last one: the response, the result or the error.
func (o *outcome) envelope() wire.Envelope {
	answer := o.fold()
	e := o.w.envelope(wire.KindResponse, o.job.e.From, o.job.e.ID, nil)
	switch {
	case o.job.e.Kind == wire.KindDelegate:
		e.Kind, e.Payload = wire.KindResult, wire.Marshal(o.result(answer))
	case answer.Fault != nil && o.live:
		e.Kind, e.Payload = wire.KindError, wire.Marshal(wire.ErrorOf(answer.Fault))
	case answer.Fault != nil:
		e.Kind, e.Payload = wire.KindError, wire.Marshal(wire.FailureOf(answer))
	default:
		e.Payload = wire.Marshal(wire.ResponseOf(answer))
	}
	if size := len(e.Encode()); size > o.w.opts.MaxEnvelopeBytes {
		told := wire.Refusef(wire.CodeTooLarge, "the answer has %d bytes as an envelope, the limit is %d", size, o.w.opts.MaxEnvelopeBytes)
		if answer.Fault != nil {
			told = wire.ErrorOf(wire.WithoutContent(answer).Fault)
		}
		e.Kind, e.Payload = wire.KindError, wire.Marshal(told)
	}
	return e
}

// result is the end of a delegate, which it names.
func (o *outcome) result(answer core.Answer) wire.Result {
	r := wire.ResultOf(answer)
	r.TaskRef = wire.Brief(o.job.req)
	return r
}

// fold puts the answer together as the last envelope tells it.
func (o *outcome) fold() core.Answer {
	events := []core.Event{{Seq: 1, At: time.Time{}, Body: core.Text{Text: o.text.String()}}, {Seq: 2, Body: o.usage}}
	for _, f := range o.files {
		events = append(events, core.Event{Body: f})
	}
	answer := core.Fold(append(events, core.Event{Body: o.end}))
	if o.told > 0 {
		answer.Text = wire.Summary(answer.Text)
	}
	return answer
}
