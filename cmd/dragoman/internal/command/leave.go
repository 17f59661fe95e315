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

// untilLeft returns a context for an agent. After the first interrupt it ends once the agent has finished its
// tasks and has sent what it said, at the latest after patience; a second one ends it at once, with the processes that guard watches.
// stop is to be called.
func untilLeft(ctx context.Context, guard *supervisor.Guard, patience time.Duration, log *slog.Logger) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	leave := coreagent.NewLeave(cancel)
	late := func() bool { return false }
	ignore := onInterrupt(func(nth int) {
		if nth > 1 {
			cancel()
			guard.Close()
			return
		}
		tasks := leave.Ask()
		switch tasks {
		case 0:
		case 1:
			log.Info("finishing 1 task: interrupt again to leave", "stop_timeout", config.FormatTime(patience))
		default:
			log.Info(fmt.Sprintf("finishing %d tasks: interrupt again to leave", tasks), "stop_timeout", config.FormatTime(patience))
		}
		late = time.AfterFunc(patience, func() {
			log.Warn("not all is done and sent in time: leaving", "stop_timeout", config.FormatTime(patience))
			cancel()
		}).Stop
	})
	return coreagent.WithLeave(ctx, leave), func() {
		ignore()
		late()
		cancel()
	}
}
