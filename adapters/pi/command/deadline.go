package command

import "time"

// timeout returns how long a command may take from its admission; zero sets no
// limit.
func (e *Engine) timeout(c Command) time.Duration {
	switch c.Spec.Limit {
	case Long:
		return e.opts.PromptTimeout
	case unlimited:
		return 0
	default:
		return e.opts.CommandTimeout
	}
}

// setClock limits a command that goes on and that nobody else watches over. The time in
// which it waited counts.
func (x *Execution) setClock() {
	e := x.engine
	if x.guarded {
		return
	}
	if limit := e.timeout(x.Command); limit > 0 {
		x.clock = time.AfterFunc(time.Until(x.admitted.Add(limit)), func() { x.expire() })
	}
}

// expire ends a command whose time is over, wherever it is (section 11). What it
// does is aborted; its lane goes on once that has come to an end, so that no two
// commands of a lane ever work at once.
func (x *Execution) expire() {
	e := x.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if x.settled || x.guarded {
		return
	}
	x.expired = true // which is its outcome, also when abort brings it to an end
	if x.lane != nil {
		x.lane.withdraw(x)
	}
	x.giveUpWaiting()
	x.stopClocks()
	if x.working && x.abort != nil {
		x.abort()
	}
	x.Settle(Outcome{})
}

// stopClocks stops what would ring for a command.
func (x *Execution) stopClocks() {
	for _, clock := range []*time.Timer{x.clock, x.waiting} {
		if clock != nil {
			clock.Stop()
		}
	}
}
