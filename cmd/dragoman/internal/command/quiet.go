package command

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
)

// The time without an event after which noteJournal asks for the state of the journal. It
// doubles with each time until the next event.
const (
	minQuiet = time.Second
	maxQuiet = 30 * time.Second
)

// noteJournal prints a note if no event comes for a while and the hub's journal fails: the
// hub then holds back the end of a task. event must be called for each event, and stop at
// the end.
func noteJournal(ctx context.Context, hub *client.Client, note io.Writer) (event, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	events := make(chan struct{}, 1)
	var running sync.WaitGroup
	running.Go(func() {
		for quiet := minQuiet; ; quiet = min(2*quiet, maxQuiet) {
			select {
			case <-events:
				quiet = minQuiet / 2
			case <-time.After(quiet):
				if reason, err := hub.JournalFailure(ctx); err == nil && reason != "" {
					fmt.Fprintf(note, "[the hub cannot record tasks: %s; the end of this one is shown once it is recorded]\n", visible(reason))
					return
				}
			case <-ctx.Done():
				return
			}
		}
	})
	event = func() {
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
