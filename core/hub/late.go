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
		t.mu.Lock()
		if t.state == Running && slices.Contains(t.openTools(), c.call) {
			t.append(core.ToolState{ID: c.call, State: core.ToolTimeout, Detail: "the hub gave up waiting"}, nil)
		}
		t.mu.Unlock()
	}
}

// tasksOf returns the tasks that a call of the agent may be of: those that show it,
// else the only one that it works on. Of several that show nothing of it none is
// told: they may be of different people.
func (s *Session) tasksOf(call string) []core.TaskID {
	var shown, all []core.TaskID
	for _, t := range s.working() {
		all = append(all, t.id)
		t.mu.Lock()
		for e := range t.log.all() {
			if c, ok := e.Body.(core.ToolCall); ok && c.ID == call {
				shown = append(shown, t.id)
				break
			}
		}
		t.mu.Unlock()
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
		if slices.Contains(c.tasks, t.id) && t.injectFor(c.caller, in) {
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
		tasks = append(tasks, w.task)
	}
	slices.SortFunc(tasks, func(a, b *Task) int { return cmp.Compare(a.id, b.id) }) // ids are in the order of time
	return tasks
}

// injectFor pushes context in the name of the hub, if the agent works on the task
// and takes any.
func (t *Task) injectFor(s *Session, in core.Injected) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != Running || t.worker != s || !s.features().Has(core.FeatureInjection) || t.takes(in) != nil {
		return false
	}
	t.append(in, nil)
	return true
}

// openTools returns the tool calls that have come to nothing yet, in order, by their
// ids. Callers hold mu.
func (t *Task) openTools() []string {
	var ids []string
	open := map[string]bool{}
	is := func(id string, now bool) {
		if _, known := open[id]; !known {
			ids = append(ids, id)
		}
		open[id] = now
	}
	for e := range t.log.all() {
		switch b := e.Body.(type) {
		case core.ToolCall:
			is(b.ID, true)
		case core.ApprovalRequested:
			is(b.ID, true)
		case core.ToolState:
			is(b.ID, b.State <= core.ToolRunning)
		case core.ToolResult:
			is(b.ID, false)
		}
	}
	return slices.DeleteFunc(ids, func(id string) bool { return !open[id] })
}

// timeOutTools says that the time of every open tool call is over, because that of
// the task is: it is the hub that decides so. Callers hold mu.
func (t *Task) timeOutTools() {
	for _, id := range t.openTools() {
		t.append(core.ToolState{ID: id, State: core.ToolTimeout, Detail: "the deadline of the task passed"}, nil)
	}
}
