package command

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/supervisor"
	coreagent "github.com/dragoman-hub/dragoman/core/agent"
)

// stopTimeoutFlag declares the flag for how long an agent that is interrupted finishes its tasks.
func stopTimeoutFlag(fs *pflag.FlagSet) *time.Duration {
	const usual = 30 * time.Second // as the setting of the hub
	return timeFlag(fs, "stop-timeout", usual, "`time` that running tasks get to finish when the agent is interrupted")
}

// soon is how long sending what is left takes without being told.
const soon = time.Second

// untilLeft returns a context for an agent. After the first interrupt it ends once the agent has finished its
// tasks and has sent what it said, at the latest after patience; a second one ends it at once, with the processes that guard watches.
// stop is to be called.
func untilLeft(ctx context.Context, guard *supervisor.Guard, patience time.Duration, log *slog.Logger) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	leave := coreagent.NewLeave(cancel)
	after := func(d time.Duration, do func()) { // unless the agent has left
		timer := time.AfterFunc(d, do)
		context.AfterFunc(ctx, func() { timer.Stop() })
	}
	ignore := onInterrupt(func(nth int) {
		if nth > 1 {
			cancel()
			guard.Close()
			return
		}
		stopTimeout := slog.String("stop_timeout", config.FormatTime(patience))
		switch tasks := leave.Ask(); tasks {
		case 0:
			after(soon, func() { log.Info("sending what is left: interrupt again to leave", stopTimeout) })
		case 1:
			log.Info("finishing 1 task: interrupt again to leave", stopTimeout)
		default:
			log.Info(fmt.Sprintf("finishing %d tasks: interrupt again to leave", tasks), stopTimeout)
		}
		after(patience, func() {
			log.Warn("not all is done and sent in time: leaving", stopTimeout)
			cancel()
		})
	})
	return coreagent.WithLeave(ctx, leave), func() {
		ignore()
		cancel()
	}
}
