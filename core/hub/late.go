package hub

import (
	"cmp"
	"encoding/json"
	"slices"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
)

// lateCalls are the calls of packs' tools that were answered as timed out, the latest
// of them: what comes of them all the same may still be of use (Fold enhancements,
// section 3). The zero lateCalls are empty.
type lateCalls struct {
	mu    sync.Mutex
	calls []lateCall
}

// lateCall is one of them.
type lateCall struct {
	execution        string
	provider, caller *Session
	pack, tool, call string
	tasks            []core.TaskID // of which it may be: see tasksOf
}

// lateMost bounds the calls that are remembered.
const lateMost = 256

// add remembers a call that the hub is about to give up, so that no answer falls
// between.
func (l *lateCalls) add(c *packCall) lateCall {
	late := lateCall{execution: c.ID, provider: c.pack.session, caller: c.caller.root(), pack: c.pack.id, tool: c.Tool, call: c.call}
	late.tasks = late.caller.tasksOf(c.call)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(late.tasks) > 0 {
		l.calls = append(l.calls[max(0, len(l.calls)-lateMost+1):], late)
	}
	return late
}

// forget drops a call that was answered in the last moment.
func (l *lateCalls) forget(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = slices.DeleteFunc(l.calls, func(c lateCall) bool { return c.execution == id })
}

// tell says that the hub gave up where a task shows the call.
func (c lateCall) tell() {
	for _, t := range c.caller.working() {
		t.TimeOutTool(c.call)
	}
}

// tasksOf returns the tasks that a call of the agent may be of: those that show it,
// else the only one that it works on. Of several that show nothing of it none is
// told: they may be of different people.
func (s *Session) tasksOf(call string) []core.TaskID {
	var shown, all []core.TaskID
	for _, t := range s.working() {
		all = append(all, t.ID())
		if t.HasToolCall(call) {
			shown = append(shown, t.ID())
		}
	}
	if len(shown) == 0 && len(all) == 1 {
		return all
	}
	return shown
}

// provider returns the session that may still answer, or nil.
func (l *lateCalls) provider(id string) *Session {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls {
		if c.execution == id {
			return c.provider
		}
	}
	return nil
}

// answer hands a result of the provider to the agent that called: as context of the
// task that the call is of, if the agent still works on that and takes any. It
// reports false when the result went nowhere.
func (l *lateCalls) answer(provider *Session, id string, output json.RawMessage, fault *core.Fault) bool {
	l.mu.Lock()
	i := slices.IndexFunc(l.calls, func(c lateCall) bool { return c.execution == id && c.provider == provider })
	if i < 0 {
		l.mu.Unlock()
		return false
	}
	c := l.calls[i]
	l.calls = slices.Delete(l.calls, i, i+1)
	l.mu.Unlock()
	result := string(output)
	if fault != nil {
		result = fault.Error()
	}
	source := "pack:" + c.pack
	in := core.Injected{
		ID: core.NewID(), Priority: core.InjectionNormal, Source: source,
		Content: "Tool result from " + source + ", of the call " + c.call + " of " + c.tool + " that was answered as timed out - " + result,
	}
	for _, t := range c.caller.working() {
		if slices.Contains(c.tasks, t.ID()) && t.InjectFor(c.caller.worker(), in) {
			return true
		}
	}
	return false
}

// working returns what the agent works on, the oldest first.
func (s *Session) working() []*Task {
	s.mu.Lock()
	defer s.mu.Unlock()
	var tasks []*Task
	for _, w := range s.work {
		tasks = append(tasks, w.job.Task)
	}
	slices.SortFunc(tasks, func(a, b *Task) int { return cmp.Compare(a.ID(), b.ID()) }) // ids are in the order of time
	return tasks
}
