package agent

import (
	"context"

	"github.com/dragoman-hub/dragoman/core"
)

// FromHandler returns an Agent that is always ready and answers with the handler. The context
// of the handler ends when its task is cancelled.
func FromHandler(h core.Handler, p Profile) Agent { return handler{h, p} }

type handler struct {
	handle  core.Handler
	profile Profile
}

// Run implements [Agent].
func (h handler) Run(ctx context.Context, ready func(Profile)) error {
	ready(h.profile)
	<-ctx.Done()
	return context.Cause(ctx)
}

// Work implements [Agent].
func (h handler) Work(ctx context.Context, t Turn) error {
	ctx, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for {
			b, err := t.Next(ctx)
			if err != nil {
				return
			}
			if c, ok := b.(core.CancelRequested); ok {
				cancel(core.NewFault(core.CodeCancelled, "%s", c.Reason))
			}
		}
	}()
	t.Delivered()
	err := h.handle(ctx, t.Request(), func(b core.Body) error { return t.Report(b, nil) })
	cancel(nil)
	<-watched
	return err
}
