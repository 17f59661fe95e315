package command

import "time"

// timeout returns how long a command may take from its admission; 0 is no limit.
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

// startTimer limits the time of a command unless that is disabled. The time in which the
// command waited counts.
func (x *Execution) startTimer() {
	e := x.engine
	if x.noTimeout {
		return
	}
	if limit := e.timeout(x.Command); limit > 0 {
		x.timer = time.AfterFunc(time.Until(x.admitted.Add(limit)), func() { x.expire() })
	}
}

// expire ends a command whose time is over, wherever it is (section 11). Its handler is
// aborted; the lane continues once that has ended, so that no two commands of a lane ever
// work at once.
func (x *Execution) expire() {
	e := x.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if x.settled || x.noTimeout {
		return
	}
	x.expired = true // which decides the outcome, also when abort settles the command
	if x.lane != nil {
		x.lane.withdraw(x)
	}
	x.stopWaiting()
	x.stopTimers()
	if x.working && x.abort != nil {
		x.abort()
	}
	x.Settle(Outcome{})
}

// stopTimers stops the timers of a command.
func (x *Execution) stopTimers() {
	for _, timer := range []*time.Timer{x.timer, x.dependencyTimer} {
		if timer != nil {
			timer.Stop()
		}
	}
}
