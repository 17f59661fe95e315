package pi

import (
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/core"
)

// Lifecycle selects the commands of others for which a connection gets command_accepted,
// command_started and command_finished. It always gets those of its own commands, and never
// those of another principal. The zero Lifecycle is LifecycleAll.
type Lifecycle uint8

// The lifecycle events that a connection may ask for.
const (
	_ Lifecycle = iota
	// LifecycleAll selects all commands, as the specification has it (section 6.2).
	LifecycleAll
	// LifecycleSession selects the commands for sessions that the client has subscribed to.
	LifecycleSession
	// LifecycleOwn selects none.
	LifecycleOwn
)

// ParseLifecycle reads the parameter ?lifecycle= of a client's URL: all, session, own, or
// nothing. It returns an invalid Fault for anything else.
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

// gatherBytes bounds the lifecycle events of others' commands that wait for
// [Options.GatherTime]: beyond it they are sent at once.
const gatherBytes = 16 << 10

// observes reports whether the connection gets the lifecycle events of another's command.
func (c *connection) observes(x *request) bool {
	if c.Scope != x.client.Scope {
		return false
	}
	switch c.lifecycle {
	case LifecycleOwn:
		return false
	case LifecycleSession:
		return slices.Contains(x.subscribers, c)
	default:
		return true
	}
}

// Announce sends a lifecycle event of a command: to its own client at once, to others in a
// batch. All of them get the same frame.
func (s engineHost) Announce(command *command.Execution, frame []byte) {
	x := requestOf(command)
	for _, c := range s.clients {
		switch {
		case c == x.client || s.opts.GatherTime < 0 && c.observes(x):
			c.push(item{frame: frame})
		case c.observes(x):
			c.pushLater(item{frame: frame})
			s.scheduleFlush()
		}
	}
}

// Respond sends the response of a command.
func (s engineHost) Respond(command *command.Execution, frame []byte) {
	x := requestOf(command)
	it := item{frame: frame}
	if x.client.delivery != nil && x.task != "" {
		it.answers = x
	}
	x.client.push(it)
}

// scheduleFlush sends what waits in outboxes after GatherTime.
func (s *Server) scheduleFlush() {
	switch {
	case s.flushPending:
		return
	case s.flushTimer == nil:
		s.flushTimer = time.AfterFunc(s.opts.GatherTime, s.flushGathered)
	default:
		s.flushTimer.Reset(s.opts.GatherTime)
	}
	s.flushPending = true
}

// flushGathered sends every client what waits in its outbox.
func (s *Server) flushGathered() {
	s.engine.Lock()
	defer s.engine.Unlock()
	s.flushPending = false
	for _, c := range s.clients {
		c.out.wake()
	}
}

// broadcast sends a frame to every client of the scope.
func (s *Server) broadcast(scope string, frame []byte) {
	for _, c := range s.clients {
		if c.Scope == scope {
			c.push(item{frame: frame})
		}
	}
}
