package rest

import (
	"cmp"
	"net/http"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
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

// injection answers it.
type injection struct {
	Task core.TaskID `json:"task"`
	ID   string      `json:"id"`
}

// decideBody is the body of POST /v1/tasks/{id}/decisions.
type decideBody struct {
	ID       string `json:"id"`
	Approved *bool  `json:"approved"`
	All      bool   `json:"all"`
	Reason   string `json:"reason"`
}

// steer lets act do something to the task in the path. Of an ended task, which may
// have left the memory, it returns a conflict Fault.
func (a *api) steer(c call, act func(*hub.Session, *hub.Task) error) error {
	t, err := a.task(c)
	if err != nil {
		return err
	}
	if t.State() == hub.Ended {
		return core.NewFault(core.CodeConflict, "task %s has ended", t.ID())
	}
	s := a.connect(c)
	defer leave(s)
	return act(s, t)
}

func (a *api) postCancel(c call) error {
	var body cancelBody
	if err := a.readIfAny(c, &body); err != nil {
		return err
	}
	return a.steer(c, func(s *hub.Session, t *hub.Task) error {
		if err := s.Cancel(t.ID(), body.Reason); err != nil {
			return err
		}
		return a.reply(c.w, http.StatusAccepted, document(t))
	})
}

func (a *api) postInject(c call) error {
	var body injectBody
	if err := a.read(c, &body); err != nil {
		return err
	}
	switch {
	case body.Content == "":
		return core.NewFault(core.CodeInvalid, "content: missing; send what the agent should know")
	case len(body.ID) > core.MaxIDBytes:
		return core.NewFault(core.CodeInvalid, "id: want at most %d bytes, got %d", core.MaxIDBytes, len(body.ID))
	}
	id := cmp.Or(body.ID, core.NewID())
	return a.steer(c, func(s *hub.Session, t *hub.Task) error {
		err := s.Inject(t.ID(), core.Injected{ID: id, Content: body.Content, Priority: body.Priority, Source: body.Source})
		if err != nil {
			return err
		}
		return a.reply(c.w, http.StatusAccepted, injection{t.ID(), id})
	})
}

func (a *api) postDecision(c call) error {
	var body decideBody
	if err := a.read(c, &body); err != nil {
		return err
	}
	switch {
	case body.ID == "":
		return core.NewFault(core.CodeInvalid, "id: missing; send the id of the approval_requested event")
	case body.Approved == nil:
		return core.NewFault(core.CodeInvalid, "approved: missing; send true or false")
	}
	d := core.ApprovalDecided{ID: body.ID, Approved: *body.Approved, All: body.All, By: c.from.ID, Reason: body.Reason}
	return a.steer(c, func(s *hub.Session, t *hub.Task) error {
		if err := s.Decide(t.ID(), d); err != nil {
			return err
		}
		return a.reply(c.w, http.StatusOK, d)
	})
}
