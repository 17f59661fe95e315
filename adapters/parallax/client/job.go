package client

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// job is a task of the agent.
type job struct {
	worker  *worker
	ref     wire.TaskRef
	message wire.Message
	task    wire.Task
	start   time.Time
	output  output
}

// jobKey is the key of the job in the context of its handler.
type jobKey struct{}

// onTask passes a task to the handlers, or refuses it for now. REJECTED would mean that the agent
// never takes it.
func (w *worker) onTask(ctx context.Context, m wire.Message, p wire.Task) error {
	j := &job{worker: w, ref: wire.TaskRef{TaskID: p.TaskID, ExecutionID: p.ExecutionID}, message: m, task: p, start: time.Now()}
	if refused := w.tasks.Add(p.TaskID, j); refused != nil {
		return w.send(ctx, wire.TypeTaskError, "", wire.TaskErrorOf(j.ref, refused, nil))
	}
	return nil
}

func (w *worker) onCancelled(p wire.TaskCancelled) error {
	j, found := w.tasks.Find(p.TaskID)
	if !found || (p.ExecutionID != "" && p.ExecutionID != j.ref.ExecutionID) {
		return nil // it has ended meanwhile
	}
	w.tasks.Cancel(p.TaskID, core.NewFault(core.CodeCancelled, "%s", cmp.Or(p.Reason, "cancelled")), nil)
	return nil
}

// run handles a task. base ends with the connection, ctx also if the task is cancelled.
func (w *worker) run(base, ctx context.Context, j *job) {
	ctx = context.WithValue(ctx, jobKey{}, j)
	err := w.handleJob(ctx, j)
	w.tasks.Release(j.ref.TaskID)
	if err := w.finish(base, j, j.outcome(ctx, err)); err != nil && base.Err() == nil {
		w.opts.Log.Warn("the outcome of a task could not be sent", "task", j.ref.TaskID, "error", err)
	}
}

func (w *worker) handleJob(ctx context.Context, j *job) error {
	if ctx.Err() != nil {
		return context.Cause(ctx) // cancelled before it began
	}
	r, err := j.task.Request(j.start)
	if err != nil {
		return err
	}
	r.To, r.Foreign = core.ToAgent(w.id), j.message.Foreign(wire.TaskShape.Strip(j.message.Content()))
	if w.extensions[wire.ExtensionAccepted] {
		if err := w.send(ctx, wire.TypeTaskAccepted, "", wire.TaskAccepted{TaskRef: j.ref}); err != nil {
			return err
		}
	}
	return w.handle(ctx, r, func(b core.Body) error { return w.report(ctx, j, b) })
}

// outcome returns the end that the handler reported, else the one for its error.
func (j *job) outcome(ctx context.Context, err error) core.Body {
	var why *core.Fault // of a cancel
	switch end := j.output.reportedEnd(); {
	case end != nil:
		return end
	case err == nil:
		return core.Done{}
	case errors.As(context.Cause(ctx), &why):
		return core.Cancelled{Reason: why.Message}
	}
	return core.Failed{Fault: core.AsFault(err)}
}
