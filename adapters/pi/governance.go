package pi

import (
	"context"
	"time"
)

// governance is what a server holds commands against beside their own rules, and
// what it counts for [getMetrics]. Server.mu guards it.
type governance struct {
	rates    rates
	agents   circuits
	bash     *circuit // of all sessions together
	executed int64    // commands that have their outcome
	expired  int64    // sessions that outlived their time
	// bashTimeouts are the commands that took too long.
	bashTimeouts int64
	recent       []recentEvent
	// written and unwritten are the records that the journal took and did not.
	written, unwritten int64

	stopped bool          // the hub has stopped
	idle    chan struct{} // closed once it has and no command is in flight
}

func newGovernance(o Options) governance {
	return governance{
		rates: newRates(o.Rates), agents: newCircuits(o.Breakers.Agent), bash: newCircuit("bash_global", o.Breakers.BashAll),
		idle: make(chan struct{}),
	}
}

// upkeep is what governance knows of a session.
type upkeep struct {
	touched time.Time   // by the last command for it
	expiry  *time.Timer // nil of one that lives for ever
	bash    *bashRun    // nil when none runs
	circuit *circuit    // of its bash; nil before the first
	untold  untoldBash
}

// rest notes that the hub has stopped: what is in flight may still end.
func (s *Server) rest() {
	s.draining, s.stopped = true, true
	s.checkIdle()
}

// settled notes that a command has its outcome.
func (s *Server) settled() {
	s.executed++
	s.checkIdle()
}

func (s *Server) checkIdle() {
	if s.stopped && len(s.flying) == 0 {
		select {
		case <-s.idle:
		default:
			close(s.idle)
		}
	}
}

// Drain waits until every command has its response, so that the connections can
// end; call it once the hub is closed. When ctx ends before, it stops what still
// runs beside the hub, which is then answered as such, and does not wait for that.
func (s *Server) Drain(ctx context.Context) {
	select {
	case <-s.idle:
		return
	case <-ctx.Done():
	}
	s.quit()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ss := range s.sessions {
		ss.stopBash()
	}
}
