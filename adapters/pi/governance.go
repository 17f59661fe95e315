package pi

import (
	"context"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
)

// governance is what a server holds commands against beside their own rules, and
// what it counts for [getMetrics].
type governance struct {
	agents  *command.AgentCircuits
	bash    *command.Circuit // of all sessions together
	expired int64            // sessions that outlived their time
	// bashTimeouts are the commands that took too long.
	bashTimeouts int64
	recent       []recentEvent
}

func newGovernance(o Options) governance {
	return governance{
		agents: command.NewAgentCircuits(o.Breakers.Agent), bash: command.NewCircuit("bash_global", o.Breakers.BashAll),
	}
}

// upkeep is what governance knows of a session.
type upkeep struct {
	touched time.Time        // by the last command for it
	expiry  *time.Timer      // nil of one that lives for ever
	bash    *bashRun         // nil when none runs
	circuit *command.Circuit // of its bash; nil before the first
	untold  untoldBash
}

// Drain waits until every command has its response, so that the connections can
// end; call it once the hub is closed. When ctx ends before, it stops what still
// runs beside the hub, which is then answered as such, and does not wait for that.
func (s *Server) Drain(ctx context.Context) {
	select {
	case <-s.engine.Idle():
		return
	case <-ctx.Done():
	}
	s.quit()
	s.engine.Lock()
	defer s.engine.Unlock()
	for _, ss := range s.sessions {
		ss.bash.kill()
	}
}
