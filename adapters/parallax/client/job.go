package client

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
)

// job is one task at the agent's end.
type job struct {
	about   wire.TaskRef
	message wire.Message
	task    wire.Task
	at      time.Time
	said    said
}

// cancelled is the cause of a handler's context when the hub cancelled the task.
type cancelled struct{ reason string }

func (cancelled) Error() string { return "the hub cancelled the task" }

// jobKey finds the job in the context of its handler.
type jobKey struct{}

// takeTask hands a task to the handlers, or refuses it as overloaded when they have more
// than enough to do: REJECTED would say that this agent is never the one to ask.
func (w *worker) takeTask(ctx context.Context, m wire.Message, p wire.Task) error {
	j := &job{about: wire.TaskRef{TaskID: p.TaskID, ExecutionID: p.ExecutionID}, message: m, task: p, at: time.Now()}
	if w.tasks.Add(p.TaskID, j) != agent.Full {
		return nil // one that came again is being worked on
	}
	f := core.NewFault(core.CodeOverloaded, "the agent works on %d tasks already", w.card.MaxConcurrent)
	return w.send(ctx, wire.TypeTaskError, wire.TaskErrorOf(j.about, f, nil))
}

func (w *worker) takeCancelled(p wire.TaskCancelled) error {
	j, found := w.tasks.Find(p.TaskID)
	if !found || (p.ExecutionID != "" && p.ExecutionID != j.about.ExecutionID) {
		return nil // it has ended meanwhile
	}
	w.tasks.Cancel(p.TaskID, cancelled{cmp.Or(p.Reason, "cancelled")}, nil)
	return nil
}

// run works on one task. base ends with the connection, ctx also when the task is
// cancelled.
func (w *worker) run(base, ctx context.Context, j *job) {
	ctx = context.WithValue(ctx, jobKey{}, j)
	err := w.answer(ctx, j)
	w.tasks.Release(j.about.TaskID)
	if sent := w.finish(base, j, j.outcome(ctx, err)); sent != nil && base.Err() == nil {
		w.opts.Log.Warn("the outcome of a task could not be sent", "task", j.about.TaskID, "error", sent)
	}
}

func (w *worker) answer(ctx context.Context, j *job) error {
	if ctx.Err() != nil {
		return context.Cause(ctx) // cancelled before it began
	}
	r, err := j.task.Request(j.at)
	if err != nil {
		return err
	}
	r.To, r.Foreign = core.ToAgent(w.id), j.message.Foreign(wire.TaskShape.Strip(j.message.Content()))
	if w.extensions[wire.ExtensionAccepted] {
		if err := w.send(ctx, wire.TypeTaskAccepted, wire.TaskAccepted{TaskRef: j.about}); err != nil {
			return err
		}
	}
	return w.handle(ctx, r, func(b core.Body) error { return w.say(ctx, j, b) })
}

// outcome is how the task ended: as its handler said, or as it returned.
func (j *job) outcome(ctx context.Context, err error) core.Body {
	var why cancelled
	switch end := j.said.ended(); {
	case end != nil:
		return end
	case err == nil:
		return core.Done{}
	case errors.As(context.Cause(ctx), &why):
		return core.Cancelled{Reason: why.reason}
	}
	return core.Failed{Fault: core.AsFault(err)}
}
