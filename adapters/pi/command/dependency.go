package command

import (
	"fmt"
	"slices"
	"time"
)

// awaitDependencies checks what a command depends on, in the order of its list (section
// 9). It reports whether the command has to wait, or why it fails.
func (x *Execution) awaitDependencies() (waits bool, problem string) {
	e := x.engine
	for ; x.dependenciesMet < len(x.dependsOn); x.dependenciesMet++ {
		d := x.dependsOn[x.dependenciesMet]
		k := e.replay.ids[scopedID{x.client.Namespace, d, ""}]
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
			// The dependency is behind x: what was before x has finished.
			return false, "Dependency '" + d + "' is queued in the same lane and cannot be awaited from this command"
		case e.waitsFor(k.x, x):
			return false, "Dependency '" + d + "' waits for this command and cannot be awaited from it"
		}
		x.awaiting = k
		k.dependents = append(k.dependents, x)
		x.dependencyTimer = time.AfterFunc(e.opts.DependencyTimeout, func() { x.dependencyTimedOut(k) })
		return true, ""
	}
	return false, ""
}

// waitsFor reports whether y cannot go on before x has ended: because it is behind x in
// its lane, or depends on a command that waits for x (section 9.2).
func (e *Engine) waitsFor(y, x *Execution) bool {
	for range len(e.inFlight) {
		switch {
		case y == x:
			return true
		case y.awaiting != nil:
			y = y.awaiting.x
		case y.lane != nil && y.lane.running.x != y:
			y = y.lane.running.x
		default:
			return false
		}
		if y == nil { // what y waited for has just ended, or is no command
			return false
		}
	}
	return false
}

// dependencyTimedOut fails a command that has waited too long for another.
func (x *Execution) dependencyTimedOut(k *tracked) {
	e := x.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if x.awaiting != k || x.settled {
		return
	}
	x.stopWaiting()
	x.Settle(Failed(TimedOut("dependsOn:"+x.dependsOn[x.dependenciesMet], e.opts.DependencyTimeout)))
}

// stopWaiting removes a command from those that wait for its dependency.
func (x *Execution) stopWaiting() {
	if k := x.awaiting; k != nil {
		k.dependents = slices.DeleteFunc(k.dependents, func(other *Execution) bool { return other == x })
		x.awaiting = nil
	}
}

// wake resumes the commands that depend on k. Chains of dependents of any length are
// followed in a queue, without recursion.
func (e *Engine) wake(k *tracked, dependents []*Execution) {
	for _, x := range dependents {
		if x.awaiting == k {
			x.awaiting = nil
			x.dependencyTimer.Stop()
			e.wakeQueue.Push(x)
		}
	}
	if e.waking {
		return
	}
	e.waking = true
	for x, ok := e.wakeQueue.Pop(); ok; x, ok = e.wakeQueue.Pop() {
		if !x.settled {
			x.proceed()
		}
	}
	e.waking = false
}

// TimedOut returns the error of a command that took too long, as in the reference.
func TimedOut(what string, after time.Duration) string {
	return fmt.Sprintf("Command '%s' timed out after %dms", what, after.Milliseconds())
}
