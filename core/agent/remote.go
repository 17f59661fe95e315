package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/question"
)

// cancelGrace is how long an agent that was told to cancel may take to report the end.
const cancelGrace = 10 * time.Second

// RemoteTask is what the client end of a dialect knows of a task, and what its dialect can do for
// the agent. What the dialect does not say is zero.
type RemoteTask struct {
	ID      core.TaskID
	Request core.Request
	From    core.Principal
	Hops    int
	Trace   core.Trace
	// Say sends an event to the hub; ctx outlives a cancel. It is called for one event at a time.
	Say func(ctx context.Context, body core.Body, foreign *core.Foreign) error
	// Ask and CallTool are those of the [Turn]. Nil where the dialect has no word for it.
	Ask      func(context.Context, question.Question) (question.Outcome, error)
	CallTool func(ctx context.Context, name string, input json.RawMessage) (json.RawMessage, error)
	// Undecided says why the dialect brings no decisions on tool calls: each is denied then. "" if
	// it does.
	Undecided string
}

// Remote is the [Turn] of an agent whose hub is at the other end of a connection. It is safe for
// concurrent use.
type Remote struct {
	task   RemoteTask
	ctx    context.Context          //nolint:containedctx // of the task, beyond a cancel
	mail   *fifo.Mailbox[core.Body] // the hub bounds what a task says
	saying sync.Mutex
}

var _ Turn = (*Remote)(nil)

// NewRemote returns the turn of a task.
func NewRemote(t RemoteTask) *Remote {
	return &Remote{task: t, mail: fifo.NewMailbox[core.Body](0, nil)}
}

// Work calls work with the turn, once, and returns its error. ctx ends when the hub cancels the task,
// with a Fault that says why, when its deadline has passed, or when the connection is lost. The agent is
// told of the first two, and has a grace of 10 s to report what is left.
func (r *Remote) Work(ctx context.Context, work func(context.Context, Turn) error) error {
	base, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	r.ctx = base
	stop := context.AfterFunc(ctx, func() {
		why := cancelOf(ctx)
		if why == nil { // the connection is lost
			cancel(context.Cause(ctx))
			return
		}
		r.Tell(core.CancelRequested{By: "hub", Reason: why.Message})
		timer := time.AfterFunc(cancelGrace, func() { cancel(why) })
		context.AfterFunc(base, func() { timer.Stop() })
	})
	defer stop()
	return work(base, r)
}

// cancelOf returns why a task was cancelled whose context has ended; nil if its connection was lost.
func cancelOf(ctx context.Context) *core.Fault {
	var why *core.Fault
	switch cause := context.Cause(ctx); {
	case errors.As(cause, &why):
	case errors.Is(cause, context.DeadlineExceeded):
		why = core.NewFault(core.CodeTimeout, "the deadline of the task has passed")
	}
	return why
}

// Tell tells the agent something. It never waits.
func (r *Remote) Tell(b core.Body) { r.mail.Put(b) }

// Task implements [Turn].
func (r *Remote) Task() core.TaskID { return r.task.ID }

// Request implements [Turn].
func (r *Remote) Request() core.Request { return r.task.Request }

// From implements [Turn].
func (r *Remote) From() core.Principal { return r.task.From }

// Hops implements [Turn].
func (r *Remote) Hops() int { return r.task.Hops }

// Trace implements [Turn].
func (r *Remote) Trace() core.Trace { return r.task.Trace }

// Delivered implements [Turn]. The hub knows it already: its own transport took the task.
func (r *Remote) Delivered() {}

// Report implements [Turn].
func (r *Remote) Report(b core.Body, foreign *core.Foreign) error {
	r.saying.Lock()
	defer r.saying.Unlock()
	asked, isAsked := b.(core.ApprovalRequested)
	if isAsked && r.task.Undecided != "" {
		return r.deny(asked, r.task.Undecided)
	}
	err := r.task.Say(r.ctx, b, foreign)
	if foreign != nil && isTooLarge(err) {
		err = r.task.Say(r.ctx, b, nil)
	}
	if !isTooLarge(err) {
		return err
	}
	if isAsked {
		return r.deny(asked, "it is too large to be shown to anybody")
	}
	if less := withoutContent(b); less != nil {
		return r.task.Say(r.ctx, less, nil)
	}
	return err
}

func isTooLarge(err error) bool { return errors.Is(err, &core.Fault{Code: core.CodeTooLarge}) }

// deny denies what nobody can decide on.
func (r *Remote) deny(asked core.ApprovalRequested, why string) error {
	r.Tell(core.ApprovalDecided{ID: asked.ID, By: "hub", Reason: why})
	return r.task.Say(r.ctx, core.ToolState{ID: asked.ID, State: core.ToolDenied, Detail: why}, nil)
}

// withoutContent returns what is told in place of an event that no message of the dialect holds; nil for one
// without which the answer would not be whole.
func withoutContent(b core.Body) core.Body {
	const leftOut = `{"left_out_bytes":%d}`
	switch b := b.(type) {
	case core.ToolCall:
		return core.ToolCall{ID: b.ID, Name: b.Name, Input: fmt.Sprintf(leftOut, len(b.Input)), Parent: b.Parent}
	case core.ToolState:
		return core.ToolState{ID: b.ID, State: b.State, Detail: fmt.Sprintf(leftOut, len(b.Detail))}
	case core.ToolResult:
		return core.ToolResult{ID: b.ID, Output: fmt.Sprintf(leftOut, len(b.Output)), IsError: b.IsError}
	}
	return nil
}

// Next implements [Turn].
func (r *Remote) Next(ctx context.Context) (core.Body, error) { return r.mail.Take(ctx, r.ctx) }

// Ask implements [Turn].
func (r *Remote) Ask(ctx context.Context, q question.Question) (question.Outcome, error) {
	if r.task.Ask == nil {
		return question.Outcome{}, core.NewFault(core.CodeUnsupported, "the dialect by which the agent has joined has no questions to people")
	}
	return r.task.Ask(ctx, q)
}

// CallTool implements [Turn].
func (r *Remote) CallTool(ctx context.Context, name string, input json.RawMessage) (json.RawMessage, error) {
	if r.task.CallTool == nil {
		return nil, core.NewFault(core.CodeUnsupported, "the dialect by which the agent has joined has no calls of tools")
	}
	return r.task.CallTool(ctx, name, input)
}
