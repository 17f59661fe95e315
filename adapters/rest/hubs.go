package rest

import (
	"context"
	"net/http"

	"github.com/dragoman-hub/dragoman/core"
)

// postDrain drains the hub, and answers once it is empty. A client that leaves does not undo it.
func (a *api) postDrain(c call) error {
	if err := a.hub.Drain(c.from); err != nil {
		return err
	}
	select {
	case <-a.hub.Drained():
	case <-c.r.Context().Done():
		return context.Cause(c.r.Context())
	}
	return a.reply(c.w, http.StatusOK, map[string]string{"id": a.hub.ID()})
}

// postForget says that a hub of the cluster is gone for good.
func (a *api) postForget(c call) error {
	name := c.id()
	if err := a.hub.Forget(c.r.Context(), c.from, core.Forget{Hub: name}); err != nil {
		return err
	}
	return a.reply(c.w, http.StatusOK, map[string]string{"name": name})
}
