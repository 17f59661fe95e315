package coretest

import (
	"context"

	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/host"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// Serve gives the agent the tasks of a session, which has joined, until ctx ends or the session
// does. It returns the cause of ctx or the reason of the session: see [host.Start].
func Serve(ctx context.Context, s *hub.Session, a agent.Agent, lost func(error)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := host.Start(ctx, s, a, lost, cancel)
	<-ctx.Done()
	err := context.Cause(ctx)
	stop()
	return err
}
