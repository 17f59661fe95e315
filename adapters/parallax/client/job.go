package client

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// job is one task at the agent's end.
type job struct {
	about   wire.About
	message wire.Message
	task    wire.Task
	at      time.Time
	said    said

	mu     sync.Mutex
	cancel context.CancelCauseFunc // set once somebody works on it
	why    string                  // the hub cancelled it
}

// errCancelled is the cause of a handler's context when the hub cancelled.
var errCancelled = errors.New("the hub cancelled the task")

// jobKey finds the job in the context of its handler.
type jobKey struct{}

// takeTask hands a task to the handlers, or refuses it as overloaded when they have more
// than enough to do: REJECTED would say that this agent is never the one to ask.
func (w *worker) takeTask(ctx context.Context, m wire.Message, p wire.Task) error {
	j := &job{about: wire.About{TaskID: p.TaskID, ExecutionID: p.ExecutionID}, message: m, task: p, at: time.Now()}
	w.mu.Lock()
	_, twice := w.jobs[p.TaskID]
	if !twice {
		w.jobs[p.TaskID] = j
	}
	w.mu.Unlock()
	if twice {
		return nil // a repetition: it is being worked on
	}
	select {
	case w.tasks <- j:
		return nil
	default:
		w.drop(j)
		f := core.NewFault(core.CodeOverloaded, "the agent works on %d tasks already", w.card.MaxConcurrent)
		return w.send(ctx, wire.TypeTaskError, wire.TaskErrorOf(j.about, f, nil))
	}
}

func (w *worker) takeCancelled(p wire.TaskCancelled) error {
	w.mu.Lock()
	j := w.jobs[p.TaskID]
	w.mu.Unlock()
	if j == nil || (p.ExecutionID != "" && p.ExecutionID != j.about.ExecutionID) {
		return nil // it has ended meanwhile
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.why = wire.Or(p.Reason, "cancelled")
	if j.cancel != nil {
		j.cancel(errCancelled)
	}
	return nil
}

func (w *worker) drop(j *job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.jobs, j.about.TaskID)
}

// run works on one task. base ends with the connection.
func (w *worker) run(base context.Context, j *job) {
	w.active.Add(1)
	defer w.active.Add(-1)
	ctx, cancel := context.WithCancelCause(context.WithValue(base, jobKey{}, j))
	defer cancel(nil)
	j.mu.Lock()
	j.cancel = cancel
	if j.why != "" {
		cancel(errCancelled)
	}
	j.mu.Unlock()

	err := w.answer(ctx, j)
	w.drop(j)
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
		if err := w.send(ctx, wire.TypeTaskAccepted, wire.TaskAccepted{About: j.about}); err != nil {
			return err
		}
	}
	return w.handle(ctx, r, func(b core.Body) error { return w.say(ctx, j, b) })
}

// outcome is how the task ended: as its handler said, or as it returned.
func (j *job) outcome(ctx context.Context, err error) core.Body {
	end := j.said.ended()
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case end != nil:
		return end
	case err == nil:
		return core.Done{}
	case errors.Is(context.Cause(ctx), errCancelled):
		return core.Cancelled{Reason: j.why}
	}
	return core.Failed{Fault: core.AsFault(err)}
}
