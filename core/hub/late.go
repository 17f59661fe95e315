package hub

import (
	"cmp"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/pack"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// Late implements [pack.Peer].
func (p packPeer) Late(call string) pack.Late {
	caller := p.session.root()
	if tasks := caller.tasksOf(call); len(tasks) > 0 {
		return lateCall{caller, call, tasks}
	}
	return nil
}

// lateCall is a call of an agent that timed out, with the tasks that it may be of.
type lateCall struct {
	caller *Session
	call   string
	tasks  []core.TaskID
}

// tasksOf returns the tasks that a call of the agent may be of: those that show it,
// else the only one that it works on. Of several that do not show it none is
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

// TimedOut implements [pack.Late]: a task that shows the call tells of it.
func (c lateCall) TimedOut() {
	for _, t := range c.caller.working() {
		t.TimeOutTool(c.call)
	}
}

// Answer implements [pack.Late]: the answer becomes context of the task that the call is
// of, if the agent still works on that and takes any.
func (c lateCall) Answer(toolName string, r *tool.Result) bool {
	said := string(r.Output)
	if r.Fault != nil {
		said = r.Fault.Error()
	}
	source := "pack:" + r.Pack
	in := core.Injected{
		ID: core.NewID(), Priority: core.InjectionNormal, Source: source,
		Content: "Tool result from " + source + ", of the call " + r.Call + " of " + toolName + " that was answered as timed out - " + said,
	}
	for _, t := range c.caller.working() {
		if slices.Contains(c.tasks, t.ID()) && t.InjectFor(c.caller.worker(), in) {
			return true
		}
	}
	return false
}

// working returns what the agent works on, the oldest first.
func (s *Session) working() []*task.Task {
	s.mu.Lock()
	defer s.mu.Unlock()
	var tasks []*task.Task
	for _, w := range s.work {
		tasks = append(tasks, w.job.Task)
	}
	slices.SortFunc(tasks, func(a, b *task.Task) int { return cmp.Compare(a.ID(), b.ID()) }) // ids are in the order of time
	return tasks
}
