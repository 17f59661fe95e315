package command

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
)

// The time without an event after which noteQuiet asks the hub why. It doubles with each time until the next event.
const (
	minQuiet = time.Second
	maxQuiet = 30 * time.Second
)

// noteQuiet prints a note if no event of a task comes for a while because it waits for an agent at the
// address, or because the hub's journal fails: the hub then holds back the end of a task. event must be
// called for each event, and stop at the end.
func noteQuiet(ctx context.Context, hub *client.Client, to string, note func(text string)) (event func(client.Line), stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	events := make(chan struct{}, 1)
	var queued atomic.Bool // no agent has it, and that was not said
	var running sync.WaitGroup
	running.Go(func() {
		for quiet := minQuiet; ; quiet = min(2*quiet, maxQuiet) {
			select {
			case <-events:
				quiet = minQuiet / 2
			case <-time.After(quiet):
				if queued.Load() {
					if why := whyQueued(ctx, hub, to); why != "" {
						note("[queued: " + visible(why) + "]")
						queued.Store(false)
					}
				}
				if reason, err := hub.JournalFailure(ctx); err == nil && reason != "" {
					note("[the hub cannot record tasks: " + visible(reason) + "; the end of this one is shown once it is recorded]")
					return
				}
			case <-ctx.Done():
				return
			}
		}
	})
	event = func(l client.Line) {
		switch l.Body.(type) {
		case core.Opened, core.Retrying:
			queued.Store(true)
		default:
			queued.Store(false)
		}
		select {
		case events <- struct{}{}:
		default:
		}
	}
	stop = func() {
		cancel()
		running.Wait()
	}
	return event, stop
}
