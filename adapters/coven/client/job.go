package client

import (
	"context"
	"errors"
	"sync"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// job is one request that a handler answers.
type job struct {
	worker  *worker
	message *pb.SendMessage

	mu      sync.Mutex
	ended   bool // its end was sent
	hasText bool // text was sent
}

func (j *job) id() string { return j.message.GetRequestId() }

// cancelled returns why the hub cancelled the request of a handler's context, or nil.
func cancelled(ctx context.Context) *core.Fault {
	var why *core.Fault
	if errors.As(context.Cause(ctx), &why) {
		return why
	}
	return nil
}

// run runs the handler of one request and sends the end if the handler has not.
func (w *worker) run(ctx context.Context, _ string, j *job) {
	ctx = context.WithValue(ctx, jobKey{}, j)
	var err error
	begun := cancelled(ctx) == nil
	if begun {
		r := wire.RequestOf(j.message)
		r.To = core.ToAgent(w.card.ID)
		err = w.handle(ctx, r, func(b core.Body) error { return w.report(ctx, j, b, nil) })
	}
	var end core.Body = core.Done{}
	switch why := cancelled(ctx); {
	case why != nil && (!begun || err != nil):
		end = core.Cancelled{Reason: why.Message}
	case err != nil:
		end = core.Failed{Fault: core.AsFault(err)}
	}
	// When the connection is lost the hub has ended the task already.
	_ = w.report(ctx, j, end, nil)
	w.tasks.Release(j.id())
	if w.leaving.Load() {
		w.leave()
	}
}

// report reports an event of a job to the hub. It returns a conflict Fault after the end,
// an unsupported one for a kind that agents do not report, a too_large one for a body that
// does not fit, the cause of ctx, or the reason for which the connection ended. foreign is what the agent's
// own dialect said with a [core.ForeignFrame].
func (w *worker) report(ctx context.Context, j *job, b core.Body, foreign *core.Foreign) error {
	ends := b.Kind().Ends()
	j.mu.Lock()
	ended, hasText := j.ended, j.hasText
	j.ended = ended || ends
	if text, ok := b.(core.Text); ok && text.Text != "" {
		j.hasText = true
	}
	j.mu.Unlock()
	switch {
	case ended:
		return core.NewFault(core.CodeConflict, "the request has ended: %s comes too late", b.Kind())
	case ctx.Err() != nil && !ends:
		return context.Cause(ctx)
	}
	if ends {
		ctx = context.WithoutCancel(ctx) // the end of a cancelled request is still due
	}
	if b.Kind() == core.KindForeign {
		m, err := wire.ResponseOf(j.id(), b, foreign)
		if err != nil {
			return err
		}
		return w.respond(ctx, m)
	}
	return w.sendBody(ctx, j.id(), b, hasText)
}
