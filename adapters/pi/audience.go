package pi

import (
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/core"
)

// Lifecycle says of whose commands a connection is told command_accepted,
// command_started and command_finished. It is always told of its own, and never of
// those of another principal. The zero Lifecycle is LifecycleAll.
type Lifecycle uint8

// The lifecycle events that a connection may ask for.
const (
	_ Lifecycle = iota
	// LifecycleAll is told of all commands, as the specification has it (section 6.2).
	LifecycleAll
	// LifecycleSession is told of commands for the sessions that it has subscribed to.
	LifecycleSession
	// LifecycleOwn is told of its own commands alone.
	LifecycleOwn
)

// ParseLifecycle reads what a client asks for with ?lifecycle= in its address: all,
// session, own, or nothing. It returns an invalid Fault for anything else.
func ParseLifecycle(text string) (Lifecycle, error) {
	switch text {
	case "", "all":
		return LifecycleAll, nil
	case "session":
		return LifecycleSession, nil
	case "own":
		return LifecycleOwn, nil
	}
	return 0, core.NewFault(core.CodeInvalid, "lifecycle=%q is not known: ask for all, session or own", text)
}

// gatherBytes is from how many bytes on lifecycle events of others' commands wait no
// longer for [Options.GatherTime].
const gatherBytes = 16 << 10

// hears reports whether the connection is told of a command of another one.
func (c *connection) hears(x *request) bool {
	if c.Scope != x.client.Scope {
		return false
	}
	switch c.lifecycle {
	case LifecycleOwn:
		return false
	case LifecycleSession:
		return slices.Contains(x.readers, c)
	default:
		return true
	}
}

// Announce tells a lifecycle event of a command: its own client at once, the others
// soon. All of them are sent the same frame.
func (s engineHost) Announce(command *command.Execution, frame []byte) {
	x := requestOf(command)
	for _, c := range s.clients {
		switch {
		case c == x.client || s.opts.GatherTime < 0 && c.hears(x):
			c.push(item{frame: frame})
		case c.hears(x):
			c.pushLater(item{frame: frame})
			s.sendSoon()
		}
	}
}

// sendSoon has what waits in outboxes sent soon.
func (s *Server) sendSoon() {
	switch {
	case s.gathering:
		return
	case s.gathered == nil:
		s.gathered = time.AfterFunc(s.opts.GatherTime, s.sendGathered)
	default:
		s.gathered.Reset(s.opts.GatherTime)
	}
	s.gathering = true
}

// sendGathered has every client sent what was gathered for it.
func (s *Server) sendGathered() {
	s.engine.Lock()
	defer s.engine.Unlock()
	s.gathering = false
	for _, c := range s.clients {
		c.out.wake()
	}
}

// broadcast tells every client of the scope.
func (s *Server) broadcast(scope string, frame []byte) {
	for _, c := range s.clients {
		if c.Scope == scope {
			c.push(item{frame: frame})
		}
	}
}
