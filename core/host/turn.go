package host

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/task"
)

// turn is a task at the agent of a session.
type turn struct {
	session *hub.Session
	task    *task.Task
	request core.Request
	ctx     context.Context
	cancel  context.CancelCauseFunc
	ended   atomic.Bool // the agent has reported the end

	mu        sync.Mutex
	queue     []core.Body // bounded by the hub: it bounds a task
	news      chan struct{}
	cancelled *core.CancelRequested // set once a cancel was requested
}

var _ agent.Turn = (*turn)(nil)

func (t *turn) Task() core.TaskID     { return t.task.ID() }
func (t *turn) Request() core.Request { return t.request }
func (t *turn) Delivered()            { t.session.Delivered(t.task.ID()) }

// Report implements [agent.Turn].
func (t *turn) Report(body core.Body, foreign *core.Foreign) error {
	err := t.session.Report(t.task.ID(), body, foreign)
	if body.Kind().Ends() {
		t.ended.Store(true)
	}
	return err
}

// push adds what the agent is told.
func (t *turn) push(body core.Body) {
	t.mu.Lock()
	t.queue = append(t.queue, body)
	if c, ok := body.(core.CancelRequested); ok {
		t.cancelled = &c
	}
	t.mu.Unlock()
	select {
	case t.news <- struct{}{}:
	default:
	}
}

// Next implements [agent.Turn].
func (t *turn) Next(ctx context.Context) (core.Body, error) {
	for {
		t.mu.Lock()
		if len(t.queue) > 0 {
			body := t.queue[0]
			t.queue = t.queue[1:]
			t.mu.Unlock()
			return body, nil
		}
		t.mu.Unlock()
		select {
		case <-t.news:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-t.ctx.Done():
			return nil, context.Cause(t.ctx)
		}
	}
}

// Ask implements [agent.Turn].
func (t *turn) Ask(ctx context.Context, q question.Question) (question.Outcome, error) {
	return t.session.AskPeople(ctx, t.task.ID(), q)
}

// CallTool implements [agent.Turn].
func (t *turn) CallTool(ctx context.Context, name string, input json.RawMessage) (json.RawMessage, error) {
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
	t.mu.Lock()
	asked := t.cancelled
	t.mu.Unlock()
	var end core.Body = core.Done{}
	switch {
	case err == nil:
	case asked != nil && (errors.Is(err, context.Canceled) || errors.Is(err, &core.Fault{Code: core.CodeCancelled})):
		end = core.Cancelled{Reason: asked.Reason}
	case errors.Is(err, context.Canceled):
		end = core.Failed{Fault: core.NewFault(core.CodeUnreachable, "the connection to the agent has ended")}
	default:
		end = core.Failed{Fault: core.AsFault(err)}
	}
	_ = t.session.Report(t.task.ID(), end, nil) // the task may have ended meanwhile
}
