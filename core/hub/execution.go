package hub

import (
	"context"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/pack"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// What a pack may say and ask while it executes a call.

// CheckTool returns why [Session.Provide] would refuse a tool, whatever else is offered with
// it: see [pack.Registry.Check].
func (s *Session) CheckTool(t tool.Definition) error { return s.hub.packs.Check(s.peer(), t) }

// ProgressTool shows how far an execution is, as the state of the tool in those tasks of its
// caller that show the call, and to the caller itself if it watches. It returns the errors of [pack.Registry.Caller].
func (s *Session) ProgressTool(execution, detail string) error {
	return s.hub.progressTool(s.peer(), execution, detail)
}

func (h *Hub) progressTool(p pack.Peer, execution, detail string) error {
	call, err := h.packs.Caller(p, execution)
	if err != nil {
		return err
	}
	if o, ok := call.Caller.(*remoteCaller); ok {
		o.say(callWord{Execution: call.ID, Progress: &detail})
		return nil
	}
	caller := (*Session)(call.Caller.(*peer))
	for _, t := range caller.root().working() {
		t.ProgressTool(call.ID, detail)
	}
	caller.inbox.push(Batch{Progress: &tool.Progress{Call: call.ID, Detail: detail}})
	return nil
}

// WatchProgress makes Next return the progress of the calls of packs that the session makes from now on.
// Of what it has not read yet the latest counts, and comes before the result.
func (s *Session) WatchProgress() {
	s.inbox.mu.Lock()
	defer s.inbox.mu.Unlock()
	s.inbox.watchesProgress = true
}

// AskCaller puts a question of an execution to the people of the tasks that it belongs to, or to the caller
// itself: see [Session.WatchOwnQuestions]. It waits for what they say, as [Session.AskPeople] does. It returns
// the errors of [pack.Registry.Caller], those of AskPeople, and an unsupported Fault where the caller neither
// works on a task nor can be asked, or works on several of which none shows the call.
func (s *Session) AskCaller(ctx context.Context, execution string, q question.Question) (question.Outcome, error) {
	h := s.hub
	call, err := h.packs.Caller(s.peer(), execution)
	if err != nil {
		return question.Outcome{}, err
	}
	if o, ok := call.Caller.(*remoteCaller); ok {
		return o.ask(ctx, call, q)
	}
	a := &asking{settled: make(chan settled, 1)}
	if err := h.askFor(s.peer(), execution, q, a); err != nil {
		return question.Outcome{}, err
	}
	defer h.questions.Leave(a)
	return a.wait(ctx)
}

// HopsOf returns how many tasks stand above what an execution asks elsewhere, for a pack that is
// another hub (promise P10): as above a task that its caller opens.
func (s *Session) HopsOf(execution string) int {
	call, err := s.hub.packs.Caller(s.peer(), execution)
	if err != nil {
		return 0 // nobody waits for it
	}
	if caller, ok := call.Caller.(*peer); ok {
		return (*Session)(caller).hopsAbove(call.Tasks)
	}
	return call.Hops
}

// hopsAbove returns how many tasks stand above what is asked for a call that belongs to one of the
// tasks.
func (s *Session) hopsAbove(tasks []core.TaskID) int {
	hops := s.floor
	for _, id := range tasks {
		if t := s.hub.tasks.Get(id); t != nil {
			hops = max(hops, t.Hops()+1)
		}
	}
	return hops
}

// Below says that at least so many tasks stand above what a child asks from now on, by the word of
// another hub: see [OpenOptions.MinHops]. It is called before the child asks anything.
func (s *Session) Below(hops int) { s.floor = hops }

// withdrawCalls answers the calls of packs that belong to a task that is cancelled or has
// ended, so that their packs stop: those that the task shows, and those that cannot belong to
// another.
func (h *Hub) withdrawCalls(t *task.Task) {
	worker, ok := t.Worker().(*peer)
	if !ok || worker == nil {
		return
	}
	agent := (*Session)(worker)
	if agent.packCalls.Load() == 0 { // as for most tasks
		return
	}
	agent.mu.Lock()
	callers := []*Session{agent}
	for child := range agent.children {
		callers = append(callers, child)
	}
	agent.mu.Unlock()
	for _, s := range callers {
		var ids []string
		for _, call := range h.packs.Waiting(s.peer()) {
			if agent.calledOnlyFor(t, call) {
				ids = append(ids, call.ID)
			}
		}
		if len(ids) > 0 {
			h.packs.Withdraw(s.peer(), ids, core.NewFault(core.CodeCancelled, "task %s was cancelled or has ended", t.ID()))
		}
	}
}

// calledOnlyFor reports whether a call of the agent belongs to the task: the task shows it, or
// none that does, or that the agent had when it called, is left beside it.
func (s *Session) calledOnlyFor(t *task.Task, c pack.Call) bool {
	if t.HasToolCall(c.ID) { // ids of models are not always unique
		return !slices.ContainsFunc(s.working(), func(other *task.Task) bool {
			return other != t && !other.IsCancelling() && other.HasToolCall(c.ID)
		})
	}
	return slices.Contains(c.Tasks, t.ID()) && !slices.ContainsFunc(s.working(), func(other *task.Task) bool {
		return other != t && !other.IsCancelling() && (other.HasToolCall(c.ID) || slices.Contains(c.Tasks, other.ID()))
	})
}
