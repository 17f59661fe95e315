package rest

import (
	"cmp"
	"context"
	"net/http"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// cancelBody is the body of POST /v1/tasks/{id}/cancel.
type cancelBody struct {
	Reason string `json:"reason"`
}

// injectBody is the body of POST /v1/tasks/{id}/inject.
type injectBody struct {
	ID       string                 `json:"id"`
	Content  string                 `json:"content"`
	Priority core.InjectionPriority `json:"priority"`
	Source   string                 `json:"source"`
}

// injection is the answer to an injection.
type injection struct {
	Task core.TaskID `json:"task"`
	ID   string      `json:"id"`
	// Accepted and Reason are the agent's answer, if the client waited and there was one.
	Accepted *bool  `json:"accepted,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// steer gives a command on the task in the path. The command says which right it
// needs: to decide or to inject is not to read. For an ended task, which may no longer be in
// memory, steer returns a conflict Fault to those who may read it, and for no task at all an
// unknown_task Fault that does not say that it might have run.
func (a *api) steer(c call, cmd core.Command) error {
	err := a.hub.Do(c.r.Context(), a.identity(c), cmd)
	if err == nil {
		return nil
	}
	switch t, unread := a.task(c); {
	case unread == nil && t.State() == task.Ended:
		return core.NewFault(core.CodeConflict, "task %s has ended", cmd.Object())
	case unread != nil && core.AsFault(unread).Code == core.CodeUnknownTask:
		return unread
	}
	return err
}

func (a *api) postCancel(c call) error {
	var body cancelBody
	if err := a.readIfAny(c, &body); err != nil {
		return err
	}
	t, err := a.task(c) // which the answer shows
	if err == nil {
		err = a.steer(c, core.Cancel{Task: t.ID(), Reason: body.Reason})
	}
	if err != nil {
		return err
	}
	return a.reply(c.w, http.StatusAccepted, document(t))
}

func (a *api) postInject(c call) error {
	var body injectBody
	if err := a.read(c, &body); err != nil {
		return err
	}
	switch {
	case body.Content == "":
		return core.NewFault(core.CodeInvalid, "content: missing; send the context for the agent")
	case len(body.ID) > core.MaxIDBytes:
		return core.NewFault(core.CodeInvalid, "id: want at most %d bytes, got %d", core.MaxIDBytes, len(body.ID))
	}
	wait, err := flag(c.r, "wait", false)
	if err != nil {
		return err
	}
	in := core.Injected{ID: cmp.Or(body.ID, core.NewID()), Content: body.Content, Priority: body.Priority, Source: body.Source, Trace: core.TraceOf(c.r.Header)}
	cmd := core.Inject{Task: core.TaskID(c.id()), Context: in}
	out := injection{Task: cmd.Task, ID: in.ID}
	if !wait {
		if err := a.steer(c, cmd); err != nil {
			return err
		}
		return a.reply(c.w, http.StatusAccepted, out)
	}
	t, err := a.task(c)
	if err != nil {
		return err
	}
	s, events := a.connect(c), t.Events()
	defer leave(s)
	if f := s.Rejected(); f != nil {
		return f
	}
	if err := a.steer(c, cmd); err != nil {
		return err
	}
	if err := s.Watch(t, events[len(events)-1].Cursor(), nil); err != nil {
		return err
	}
	if err := out.await(c.r.Context(), s); err != nil {
		return err
	}
	return a.reply(c.w, http.StatusOK, out)
}

// await waits for the agent's answer to an injection. A task may end without one.
func (i *injection) await(ctx context.Context, s *hub.Session) error {
	for {
		b, err := s.Next(ctx)
		if err != nil {
			return err
		}
		for _, e := range b.Events {
			if a, ok := e.Body.(core.InjectionAnswered); ok && a.ID == i.ID {
				i.Accepted, i.Reason = &a.Accepted, a.Reason
				return nil
			}
			if e.Body.Kind().Ends() {
				i.Reason = "the task ended before the agent answered"
				return nil
			}
		}
	}
}
