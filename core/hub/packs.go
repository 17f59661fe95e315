package hub

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/pack"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// Provide offers the tools of a pack through the session until it closes, in place of those
// that it offered before: see [pack.Registry.Provide]. It returns an unreachable Fault when
// the session has ended or the hub is stopping.
func (s *Session) Provide(id string, tools []tool.Definition) error {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	return s.doFunc(core.Provide{Pack: id, Tools: names}, func() error { return s.provide(id, tools) })
}

func (s *Session) provide(id string, tools []tool.Definition) error {
	h := s.hub
	h.mu.Lock()
	var err error
	if h.end.reason != "" {
		err = h.stopping()
	}
	h.mu.Unlock()
	if err != nil {
		return err
	}
	changed, err := h.packs.Provide(s.peer(), id, tools)
	if s.Closed() { // maybe before the pack was there
		s.leavePacks(errEnded)
		return cmp.Or(s.Rejected(), errEnded)
	}
	if err != nil || !changed {
		return err
	}
	h.log.Info("pack provides tools", "pack", id, "dialect", s.identity.Dialect, "tools", len(tools))
	return nil
}

// Absent says why the pack of the session offers nothing: see [pack.Registry.Absent].
func (s *Session) Absent(id string, why *core.Fault) {
	s.hub.packs.Absent(s.peer(), id, why)
	if s.Closed() { // maybe before it was noted
		s.leavePacks(errEnded)
	}
}

// Missing returns why the pack of a tool is absent that the session would find in [Session.Tools]
// otherwise; nil for any other tool.
func (s *Session) Missing(tool string) *core.Fault {
	id, by, why := s.hub.packs.Missing(tool)
	if why == nil || !s.hub.mayCall(s.identity.Principal, id, by) {
		return nil
	}
	return why
}

// PackStatus describes a pack.
type PackStatus struct {
	ID string `json:"id"`
	// Dialect is that of its connection.
	Dialect string `json:"dialect"`
	// Hub is the name of the hub that it is connected to; "" for this one.
	Hub string `json:"hub,omitempty"`
	// Tools are the names of its tools.
	Tools []string `json:"tools"`
	// Child is the state of a pack of the settings; nil for one that connected by itself.
	Child *core.Child `json:"child,omitempty"`
}

// Packs returns the packs that are connected to any hub and that the principal may see, by id. The hub does not know the Child of a pack.
func (h *Hub) Packs(p core.Principal) []PackStatus {
	all := []PackStatus{}
	_ = h.list(p, core.ListPacks, func() error { // without the right the list is empty
		for _, s := range h.packs.List() {
			by := s.Peer.Provider()
			if !h.authorizer.May(p, core.RightSee, policy.Object{Target: policy.Target{Pack: s.ID}, Provider: by.Principal}) {
				continue
			}
			all = append(all, PackStatus{ID: s.ID, Dialect: by.Dialect, Hub: by.Hub, Tools: append([]string{}, s.Tools...)})
		}
		return nil
	})
	return all
}

// WatchTools makes Next return a batch with ToolsChanged when the tools of packs have changed: see
// [pack.Registry.Watch].
func (s *Session) WatchTools() {
	s.hub.packs.Watch(s.peer())
	if s.Closed() { // maybe before it was watching
		s.leavePacks(errEnded)
	}
}

// leavePacks ends what the session provides, calls and watches.
func (s *Session) leavePacks(reason *core.Fault) {
	if id := s.hub.packs.Leave(s.peer(), reason); id != "" {
		s.hub.log.Info("pack left", "pack", id, "reason", reason.Message)
	}
}

// AnswerTool answers an execution that the session was given: see [pack.Registry.Answer]. A
// late answer may still reach the agent as injected context.
func (s *Session) AnswerTool(execution string, result tool.Result) error {
	return s.hub.packs.Answer(s.peer(), execution, result)
}

// Provider returns the session that is to answer an execution, or nil when nobody waits for
// it: for dialects in which packs answer outside their connection.
func (h *Hub) Provider(execution string) *Session {
	p, _ := h.packs.Provider(execution).(*peer)
	return (*Session)(p)
}

func (s *Session) callPack(call, name string, input json.RawMessage) {
	c := pack.Call{
		Caller: s.peer(), ID: call, Tool: name, Input: input,
		From: s.identity.Principal, Agent: s.AgentID(), Capabilities: s.capabilities(), Tasks: s.callsFor(), Keep: s.identity.Keep, Waiting: &s.root().packCalls,
		Trace: s.trace.Carried(),
	}
	if s.hub.remote != nil {
		c.Hops = s.hopsAbove(c.Tasks)
	}
	s.hub.packs.Call(c)
}

// Provider implements [pack.Peer].
func (p *peer) Provider() pack.Provider {
	return pack.Provider{Principal: p.identity.Principal, Dialect: p.identity.Dialect}
}

// Execute implements [pack.Peer].
func (p *peer) Execute(e *pack.Execution) { p.inbox.push(Batch{Execute: e}) }

// Withdraw implements [pack.Peer].
func (p *peer) Withdraw(execution string) { p.inbox.push(Batch{Withdrawn: execution}) }

// Returned implements [pack.Peer].
func (p *peer) Returned(r *tool.Result) { p.inbox.push(Batch{Tool: r}) }

// ToolsChanged implements [pack.Peer].
func (p *peer) ToolsChanged() { p.inbox.push(Batch{ToolsChanged: true}) }

// Late implements [pack.Peer].
func (p *peer) Late(c pack.Call) pack.Late {
	caller := (*Session)(p).root()
	if tasks, _ := caller.tasksOf(c.ID, c.Tasks); len(tasks) > 0 {
		return lateCall{caller, c.ID, idsOf(tasks)}
	}
	return nil
}

// lateCall is a call of an agent that timed out, with the tasks that it may belong to.
type lateCall struct {
	caller *Session
	call   string
	tasks  []core.TaskID
}

// tasksOf returns the task that a call of the agent belongs to, or none: the only one that
// shows it, else the only one that is left of those that it had when it called. It returns an unsupported Fault
// rather than choose one of several: they may belong to different people.
func (s *Session) tasksOf(call string, began []core.TaskID) ([]*task.Task, error) {
	var shown, left []*task.Task
	for _, t := range s.working() {
		if t.HasToolCall(call) {
			shown = append(shown, t)
		}
		if slices.Contains(began, t.ID()) {
			left = append(left, t)
		}
	}
	switch {
	case len(shown) > 1:
		return nil, core.NewFault(core.CodeUnsupported, "agent %s works on %d tasks that show a call of this id: it is unknown which one it belongs to", s.AgentID(), len(shown))
	case len(shown) == 1:
		return shown, nil
	case len(left) > 1:
		return nil, core.NewFault(core.CodeUnsupported, "agent %s works on %d tasks and none shows this call: it is unknown which one it belongs to", s.AgentID(), len(left))
	}
	return left, nil
}

// callsFor returns the tasks that a call which begins now may belong to.
func (s *Session) callsFor() []core.TaskID {
	tasks := s.root().working()
	if s.thread != "" {
		tasks = slices.DeleteFunc(tasks, func(t *task.Task) bool { return t.Thread() != s.thread })
	}
	return idsOf(tasks)
}

func idsOf(tasks []*task.Task) []core.TaskID {
	var ids []core.TaskID
	for _, t := range tasks {
		ids = append(ids, t.ID())
	}
	return ids
}

// TimedOut implements [pack.Late]: tasks that show the call get an event.
func (c lateCall) TimedOut() {
	for _, t := range c.caller.working() {
		t.TimeOutTool(c.call)
	}
}

// Answer implements [pack.Late]: it injects the answer into the task that the call belongs
// to, if the agent still works on that and accepts injections.
func (c lateCall) Answer(toolName string, r *tool.Result) bool {
	text := string(r.Output)
	if r.Fault != nil {
		text = r.Fault.Error()
	}
	source := "pack:" + r.Pack
	in := core.Injected{
		ID: core.NewID(), Priority: core.InjectionNormal, Source: source,
		Content: "Tool result from " + source + ", of the call " + r.Call + " of " + toolName + " that was answered as timed out - " + text,
	}
	for _, t := range c.caller.working() {
		if slices.Contains(c.tasks, t.ID()) && t.InjectFor(c.caller.peer(), in) {
			return true
		}
	}
	return false
}

// working returns the tasks of the agent, oldest first.
func (s *Session) working() []*task.Task {
	s.mu.Lock()
	defer s.mu.Unlock()
	var tasks []*task.Task
	for _, w := range s.work {
		tasks = append(tasks, w.job.Task)
	}
	slices.SortFunc(tasks, func(a, b *task.Task) int { return cmp.Compare(a.ID(), b.ID()) }) // ids are ordered by time
	return tasks
}
