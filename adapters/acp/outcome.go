package acp

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/core"
)

// summaryBytes bounds the summary of an answer whose text was sent in pieces: the
// draft calls it a one-liner.
const summaryBytes = 200

// outcome gathers what a handler says of one query or delegate.
type outcome struct {
	a    *agentEnd
	task *assigned
	// live says that what it says leaves at once, by progress.
	live  bool
	seq   uint64
	told  int // bytes of text that left
	text  strings.Builder
	files []core.File
	usage core.Usage
	end   core.Body
}

// answer has the handler work on a query or a delegate and sends what comes of it.
func (a *agentEnd) answer(work context.Context, t *assigned, handle core.Handler) {
	a.mu.Lock()
	o := &outcome{a: a, task: t, live: a.progress}
	a.mu.Unlock()
	ctx := t.ctx
	if !t.req.Deadline.IsZero() {
		var done context.CancelFunc
		ctx, done = context.WithDeadline(ctx, t.req.Deadline)
		defer done()
	}
	if t.e.Kind == KindDelegate && t.req.ReportBack {
		_ = a.reply(work, t.e, KindAck, Ack{Accepted: true}) // when it cannot be sent, nor can the rest
	}
	err := context.Cause(ctx)
	if err == nil {
		err = handle(ctx, t.req, o.say(ctx))
	}
	switch {
	case o.end != nil:
	case err == nil:
		o.end = core.Done{}
	default:
		if cause := context.Cause(ctx); cause != nil && errors.Is(err, ctx.Err()) {
			err = cause
		}
		o.end = end(core.AsFault(err))
	}
	last := o.envelope()

	a.mu.Lock()
	delete(a.running, t.e.ID)
	cancels := t.cancels
	a.mu.Unlock()
	t.cancel(nil)
	if t.e.Kind == KindDelegate && !t.req.ReportBack && o.end.Kind() == core.KindDone {
		// The ack is the end of it for the other side too: only now there is room again.
		_ = a.reply(work, t.e, KindAck, Ack{Accepted: true})
	} else {
		_ = a.send(work, last)
	}
	for _, c := range cancels {
		_ = a.reply(work, c, KindAck, Ack{Accepted: o.end.Kind() == core.KindCancelled})
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
			if o.live && o.told == 0 && len(b.Text) > pieceMost {
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
		if !o.live || pieces[b.Kind()] == nil {
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
	if o.text.Len() < 4*summaryBytes {
		o.text.WriteString(b.Text) // for the summary
	}
	for rest := b.Text; rest != ""; {
		var part string
		part, rest = cutText(rest, pieceBytes(o.a.opts.MaxEnvelopeBytes))
		if err := o.progress(ctx, core.Text{Text: part}); err != nil {
			return err
		}
		o.told += len(part)
	}
	return nil
}

func (o *outcome) progress(ctx context.Context, b core.Body) error {
	o.seq++
	e := o.a.envelope(KindProgress, o.task.e.From, o.task.e.ID, nil)
	e.Payload = progressOf(o.seq, b)
	raw := e.Encode()
	if len(raw) > o.a.opts.MaxEnvelopeBytes {
		return core.NewFault(core.CodeTooLarge, "%s has %d bytes as an envelope, the limit is %d", b.Kind(), len(raw), o.a.opts.MaxEnvelopeBytes)
	}
	return o.a.link.Send(ctx, raw, len(raw))
}

// envelope is the last one: the response, the result or the error.
func (o *outcome) envelope() Envelope {
	answer := o.fold()
	e := o.a.envelope(KindResponse, o.task.e.From, o.task.e.ID, nil)
	switch {
	case o.task.e.Kind == KindDelegate:
		e.Kind, e.Payload = KindResult, encode(o.result(answer))
	case answer.Fault != nil && o.live:
		e.Kind, e.Payload = KindError, encode(errorOf(answer.Fault))
	case answer.Fault != nil:
		e.Kind, e.Payload = KindError, encode(failureOf(answer))
	default:
		e.Payload = encode(responseOf(answer))
	}
	if size := len(e.Encode()); size > o.a.opts.MaxEnvelopeBytes {
		told := refusef(CodeTooLarge, "the answer has %d bytes as an envelope, the limit is %d", size, o.a.opts.MaxEnvelopeBytes)
		if answer.Fault != nil {
			told = errorOf(leftOut(answer).Fault)
		}
		e.Kind, e.Payload = KindError, encode(told)
	}
	return e
}

// result is the end of a delegate, which it names.
func (o *outcome) result(answer core.Answer) Result {
	r := resultOf(answer)
	r.TaskRef = brief(o.task.req)
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
		answer.Text = summary(answer.Text)
	}
	return answer
}

// brief is what a result calls the task.
func brief(r core.Request) string { return summary(question(r)) }

// summary is the beginning of an answer on one line.
func summary(text string) string {
	line, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	if len(line) <= summaryBytes {
		if more {
			line += " ..."
		}
		return line
	}
	n := summaryBytes
	for n > 0 && !utf8.RuneStart(line[n]) {
		n--
	}
	return line[:n] + " ..."
}
