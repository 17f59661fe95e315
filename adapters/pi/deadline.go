package pi

import "time"

// class says how long a type of command may take (facts, section 3.3). The zero
// class is short: what only looks, and what stops something.
type class uint8

// The other classes.
const (
	_ class = iota
	// long is for what agents and programs do. It is aborted when its time is over.
	long
	// endless is for what must not be left half done.
	endless
)

var classes = map[string]class{
	"prompt": long, "steer": long, "follow_up": long, "compact": long, "bash": long,
	"new_session": long, "switch_session_file": long, "fork": long,
	"create_session": endless, "delete_session": endless, "load_session": endless,
	"set_model": endless, "cycle_model": endless, "set_thinking_level": endless, "cycle_thinking_level": endless,
	"set_auto_compaction": endless, "set_auto_retry": endless, "set_session_name": endless,
	"export_html": endless, "navigate_tree": endless,
}

// timeout returns how long a command may take from its admission; zero sets no
// limit.
func (s *Server) timeout(c command) time.Duration {
	switch classes[c.kind] {
	case long:
		return s.opts.PromptTimeout
	case endless:
		return 0
	default:
		return s.opts.CommandTimeout
	}
}

// setClock limits a command that goes on and that nobody else watches over. The time in
// which it waited counts.
func (s *Server) setClock(x *execution) {
	if x.guarded {
		return
	}
	if limit := s.timeout(x.command); limit > 0 {
		x.clock = time.AfterFunc(time.Until(x.admitted.Add(limit)), func() { s.expire(x) })
	}
}

// expire ends a command whose time is over, wherever it is (section 11). What it
// does is aborted; its lane goes on once that has come to an end, so that no two
// commands of a lane ever work at once.
func (s *Server) expire(x *execution) {
	s.mu.Lock()
	defer s.mu.Unlock()
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
	s.settle(x, outcome{})
}

// stopClocks stops what would ring for a command.
func (x *execution) stopClocks() {
	for _, clock := range []*time.Timer{x.clock, x.waiting} {
		if clock != nil {
			clock.Stop()
		}
	}
}
