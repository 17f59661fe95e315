package host

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/task"
)

// turn is a task at the agent of a session.
type turn struct {
	host    *host
	session *hub.Session
	task    *task.Task
	request core.Request
	ctx     context.Context //nolint:containedctx // of the work
	cancel  context.CancelCauseFunc
	mail    *fifo.Mailbox[core.Body] // the hub bounds what a task says

	ended     atomic.Bool                          // the agent has reported the end
	cancelled atomic.Pointer[core.CancelRequested] // nil until a cancel was requested
}

var _ agent.Turn = (*turn)(nil)

func (t *turn) Task() core.TaskID     { return t.task.ID() }
func (t *turn) Request() core.Request { return t.request }
func (t *turn) From() core.Principal  { return t.task.From() }
func (t *turn) Hops() int             { return t.task.Hops() }
func (t *turn) Trace() core.Trace     { return t.task.Trace() }

// Delivered implements [agent.Turn].
func (t *turn) Delivered() {
	t.host.heard()
	t.session.Delivered(t.task.ID())
}

// Report implements [agent.Turn]. The answer to a notice is dropped.
func (t *turn) Report(body core.Body, foreign *core.Foreign) error {
	t.host.heard()
	err := t.session.Report(t.task.ID(), body, foreign)
	if body.Kind().Ends() {
		t.ended.Store(true)
	}
	if t.task.IsNotice() && errors.Is(err, &core.Fault{Code: core.CodeConflict}) {
		return nil
	}
	return err
}

// tell adds what the agent is told.
func (t *turn) tell(body core.Body) {
	if c, ok := body.(core.CancelRequested); ok {
		t.cancelled.Store(&c)
	}
	t.mail.Put(body)
}

// Next implements [agent.Turn].
func (t *turn) Next(ctx context.Context) (core.Body, error) { return t.mail.Take(ctx, t.ctx) }

// Ask implements [agent.Turn].
func (t *turn) Ask(ctx context.Context, q question.Question) (question.Outcome, error) {
	t.host.heard()
	return t.session.AskPeople(ctx, t.task.ID(), q)
}

// CallTool implements [agent.Turn].
func (t *turn) CallTool(ctx context.Context, name string, input json.RawMessage) (json.RawMessage, error) {
	t.host.heard()
	r, err := t.session.Call(ctx, name, input)
	if err != nil {
		return nil, err
	}
	if r.Fault != nil {
		return r.Output, r.Fault
	}
	return r.Output, nil
}

// finish reports the end of a task from which the agent returned without one.
func (t *turn) finish(err error) {
	if t.ended.Load() {
		return
	}
	asked := t.cancelled.Load()
	var end core.Body = core.Done{}
	switch {
	case err == nil:
		t.host.heard()
	case asked != nil && (errors.Is(err, context.Canceled) || errors.Is(err, &core.Fault{Code: core.CodeCancelled})):
		end = core.Cancelled{Reason: asked.Reason}
	case errors.Is(err, context.Canceled):
		end = core.Failed{Fault: core.NewFault(core.CodeUnreachable, "the connection to the agent has ended")}
	default:
		end = core.Failed{Fault: core.AsFault(err)}
	}
	_ = t.session.Report(t.task.ID(), end, nil) // the task may have ended meanwhile
}
