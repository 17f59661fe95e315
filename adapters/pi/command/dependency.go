package command

import (
	"fmt"
	"slices"
	"time"
)

// await goes through what a command depends on, in the order of its list (section
// 9). It reports that the command has to wait, or why it fails.
func (x *Execution) await() (waits bool, problem string) {
	e := x.engine
	for ; x.dependenciesMet < len(x.depends); x.dependenciesMet++ {
		d := x.depends[x.dependenciesMet]
		k := e.memory.ids[idName{x.client.Namespace, d, ""}]
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
		case e.waitsFor(k.x, x):
			return false, "Dependency '" + d + "' waits for this command and cannot be awaited from it"
		}
		x.awaited = k
		k.dependents = append(k.dependents, x)
		x.waiting = time.AfterFunc(e.opts.DependencyTimeout, func() { x.abandon(k) })
		return true, ""
	}
	return false, ""
}

// waitsFor reports whether y cannot go on before x has come to an end: because it stands
// behind x in its lane, or what it depends on does, and so forth (section 9.2).
func (e *Engine) waitsFor(y, x *Execution) bool {
	for range len(e.inFlight) {
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
func (x *Execution) abandon(k *known) {
	e := x.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if x.awaited != k || x.settled {
		return
	}
	x.giveUpWaiting()
	x.Settle(Failed(TimedOut("dependsOn:"+x.depends[x.dependenciesMet], e.opts.DependencyTimeout)))
}

// giveUpWaiting takes a command from those that wait for another.
func (x *Execution) giveUpWaiting() {
	if k := x.awaited; k != nil {
		k.dependents = slices.DeleteFunc(k.dependents, func(other *Execution) bool { return other == x })
		x.awaited = nil
	}
}

// wake lets those go on that waited for a command. One chain of dependents after the
// other is followed, however long, without going deeper into the stack.
func (e *Engine) wake(k *known, dependents []*Execution) {
	for _, x := range dependents {
		if x.awaited == k {
			x.awaited = nil
			x.waiting.Stop()
			e.woken = append(e.woken, x)
		}
	}
	if e.waking {
		return
	}
	e.waking = true
	for len(e.woken) > 0 {
		x := e.woken[0]
		e.woken = e.woken[1:]
		if !x.settled {
			x.proceed()
		}
	}
	e.waking, e.woken = false, nil
}

// TimedOut says that a command took too long, as the reference does.
func TimedOut(what string, after time.Duration) string {
	return fmt.Sprintf("Command '%s' timed out after %dms", what, after.Milliseconds())
}
