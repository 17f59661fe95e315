package pi

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// await goes through what a command depends on, in the order of its list (section
// 9). It reports that the command has to wait, or why it fails.
func (s *Server) await(x *execution) (waits bool, problem string) {
	for ; x.met < len(x.depends); x.met++ {
		d := x.depends[x.met]
		k := s.memory.ids[idName{x.client.space, d, ""}]
		switch {
		case d == x.id:
			return false, "Command '" + d + "' cannot depend on itself"
		case k == nil:
			return false, "Dependency '" + d + "' is unknown"
		case k.x == nil && k.response.err != "":
			return false, "Dependency '" + d + "' failed: " + k.response.err
		case k.x == nil:
			continue
		case x.lane != nil && k.x.lane == x.lane:
			// It stands behind: what stood before has finished.
			return false, "Dependency '" + d + "' is queued in the same lane and cannot be awaited from this command"
		case s.waitsFor(k.x, x):
			return false, "Dependency '" + d + "' waits for this command and cannot be awaited from it"
		}
		x.awaited = k
		k.dependents = append(k.dependents, x)
		x.waiting = time.AfterFunc(s.opts.DependencyTimeout, func() { s.abandon(x, k) })
		return true, ""
	}
	return false, ""
}

// waitsFor reports whether y cannot go on before x has come to an end: because it stands
// behind x in its lane, or what it depends on does, and so forth (section 9.2).
func (s *Server) waitsFor(y, x *execution) bool {
	for range len(s.flying) {
		switch {
		case y == x:
			return true
		case y.awaited != nil:
			y = y.awaited.x
		case y.lane != nil && y.lane.running.x != y:
			y = y.lane.running.x
		default:
			return false
		}
		if y == nil { // what it waited for has just ended, or is no command
			return false
		}
	}
	return false
}

// abandon fails a command that has waited long enough for another.
func (s *Server) abandon(x *execution, k *known) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.awaited != k || x.settled {
		return
	}
	x.giveUpWaiting()
	s.settle(x, failed(timedOut("dependsOn:"+x.depends[x.met], s.opts.DependencyTimeout)))
}

// giveUpWaiting takes a command from those that wait for another.
func (x *execution) giveUpWaiting() {
	if k := x.awaited; k != nil {
		k.dependents = slices.DeleteFunc(k.dependents, func(other *execution) bool { return other == x })
		x.awaited = nil
	}
}

// wake lets those go on that waited for a command. One chain of dependents after the
// other is followed, however long, without going deeper into the stack.
func (s *Server) wake(k *known, dependents []*execution) {
	for _, x := range dependents {
		if x.awaited == k {
			x.awaited = nil
			x.waiting.Stop()
			s.woken = append(s.woken, x)
		}
	}
	if s.waking {
		return
	}
	s.waking = true
	for len(s.woken) > 0 {
		x := s.woken[0]
		s.woken = s.woken[1:]
		if !x.settled {
			s.proceed(x)
		}
	}
	s.waking, s.woken = false, nil
}

// texts reads a list of strings that was validated.
func texts(items []json.RawMessage) []string {
	list := make([]string, len(items))
	for i, raw := range items {
		_ = json.Unmarshal(raw, &list[i])
	}
	return list
}

func timedOut(what string, after time.Duration) string {
	return fmt.Sprintf("Command '%s' timed out after %dms", what, after.Milliseconds())
}
