package hub_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// wantState fails unless each task has the state.
func (g *testHub) wantState(what string, want task.State, tasks ...*task.Task) {
	g.t.Helper()
	for i, task := range tasks {
		if got := task.State(); got != want {
			g.t.Errorf("%s, task %d: got %s, want %s", what, i+1, got, want)
		}
	}
}

// wantLoad fails unless the agent has the load.
func (g *testHub) wantLoad(id core.AgentID, active, queued int, state core.LoadState) {
	g.t.Helper()
	a, ok := g.hub.Agent(core.Principal{Operator: true}, id)
	if got := a.Load; !ok || got.Active != active || got.Queued != queued || got.State != state {
		g.t.Errorf("agent %s: got %d active, %d queued, %s, want %d, %d, %s", id, got.Active, got.Queued, got.State, active, queued, state)
	}
}

func TestTheQueueIsOrderedByPriorityAndThenByArrival(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		running := g.ask(asker, "a")
		var want [4][]*task.Task
		for range 2 {
			for _, p := range []core.Priority{core.PriorityLow, 0, core.PriorityUrgent, core.PriorityNormal} {
				task := g.open(asker, core.Request{To: core.ToAgent("a"), Priority: p})
				if p == 0 {
					p = core.PriorityNormal
				}
				want[p] = append(want[p], task)
			}
		}
		for p := core.PriorityUrgent; p > 0; p-- {
			for i, next := range want[p] {
				g.report(agent, running, core.Done{})
				if got := next.State(); got != task.Running {
					t.Fatalf("%s task %d: got %s, want it next", p, i+1, got)
				}
				running = next
			}
		}
		g.report(agent, running, core.Done{})
		g.wantLoad("a", 0, 0, core.LoadIdle)
	})
}

func TestAFreeAgentTakesTheMostUrgentQueuedTask(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		able := func(id string) *hub.Session {
			return g.agent(id, able, func(c *core.Card) { c.Capabilities = []string{"x"} })
		}
		a, b, asker := able("a"), able("b"), g.connect("r")
		busy := map[*hub.Session]*task.Task{a: g.ask(asker, "a"), b: g.ask(asker, "b")}
		anybody := func(p core.Priority) *task.Task {
			return g.open(asker, core.Request{To: core.ToCapability("x"), Priority: p})
		}
		later, urgent, first := anybody(core.PriorityLow), anybody(core.PriorityUrgent), anybody(core.PriorityNormal)
		second := anybody(core.PriorityNormal)
		c := able("c")
		for i, want := range []*task.Task{urgent, first, second, later} {
			if got := want.State(); got != task.Running || want.Agent() != "c" {
				t.Fatalf("%d: got %s by %q, want it running by c", i, got, want.Agent())
			}
			g.report(c, want, core.Done{})
		}
		for s, task := range busy {
			g.report(s, task, core.Done{})
		}
	})
}

func TestACardWithMoreSlotsStartsQueuedTasks(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		first, second, third, fourth := g.ask(asker, "a"), g.ask(asker, "a"), g.ask(asker, "a"), g.ask(asker, "a")
		if err := agent.Update(core.Card{ID: "a", Features: able, MaxConcurrent: 3}); err != nil {
			t.Fatal(err)
		}
		g.wantState("with room for three", task.Running, first, second, third)
		g.wantState("with room for three", task.Queued, fourth)
		g.wantLoad("a", 3, 1, core.LoadOverloaded)

		if err := agent.Update(core.Card{ID: "a", Features: able, MaxConcurrent: 1}); err != nil {
			t.Fatal(err)
		}
		g.report(agent, first, core.Done{})
		g.report(agent, second, core.Done{})
		g.wantState("with room for one again", task.Queued, fourth)
		g.report(agent, third, core.Done{})
		g.wantState("when the last of three has ended", task.Running, fourth)
		g.report(agent, fourth, core.Done{})
	})
}

func TestAnOverloadedAgentIsSkippedUntilItRecovers(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, b, asker := g.agent("a", able), g.agent("b", able), g.connect("r")
		a.SetLoad(core.LoadOverloaded)
		g.wantLoad("a", 0, 0, core.LoadOverloaded)
		free, named := g.ask(asker, "*"), g.ask(asker, "a")
		if got := free.Agent(); got != "b" {
			t.Errorf("for any agent: got %q, want b", got)
		}
		g.wantState("by name", task.Queued, named)
		a.SetLoad(core.LoadIdle)
		g.wantState("by name, once it takes work", task.Running, named)
		g.report(a, named, core.Done{})
		g.report(b, free, core.Done{})
	})
}

func TestADrainingAgentFinishesItsTasksAndGetsNoMore(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		has := g.ask(asker, "a")
		agent.SetLoad(core.LoadDraining)
		_, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{})
		g.wantFault("by name", err, core.CodeUnreachable)
		if !core.AsFault(err).Retryable {
			t.Errorf("got %v, want it retryable", err)
		}
		_, err = asker.Open(core.Request{To: core.ToAny(), Content: "go"}, hub.OpenOptions{})
		g.wantFault("for any agent", err, core.CodeUnreachable)
		g.report(agent, has, core.Text{Text: "still here"}, core.Done{})
		if got := has.Answer().End; got != core.KindDone {
			t.Errorf("its earlier task: got %s, want done", got)
		}
	})
}

func TestABusyAgentStillTakesWorkUpToItsLimit(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		agent.SetLoad(core.LoadBusy)
		g.wantLoad("a", 0, 0, core.LoadBusy)
		asked := g.ask(asker, "a")
		g.wantState("its first task", task.Running, asked)
		g.report(agent, asked, core.Done{})
	})
}

func TestAQueuedTaskOfALostAgentMovesIfItsAddressAllows(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		x := func(c *core.Card) { c.Capabilities = []string{"x"} }
		a, asker := g.agent("a", able, x), g.connect("r")
		first, waits, named := g.ask(asker, "a"), g.ask(asker, "capability:x"), g.ask(asker, "a")
		b := g.agent("b", able, x)
		a.Close(core.NewFault(core.CodeUnreachable, "the plug was pulled"))
		for what, task := range map[string]*task.Task{"ran": first, "waited": named} {
			f := task.Answer().Fault
			if f == nil || f.Code != core.CodeUnreachable || !f.Retryable {
				t.Errorf("addressed by name, %s: got %v, want a retryable unreachable fault", what, f)
			}
		}
		if got := waits.Agent(); got != "b" {
			t.Fatalf("queued by capability: got %q, want b", got)
		}
		g.report(b, waits, core.Done{})
		if got := waits.Answer().End; got != core.KindDone {
			t.Errorf("got %s, want done", got)
		}
	})
}

func TestAQueuedTaskEndsAtItsDeadline(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		running := g.open(asker, core.Request{To: core.ToAgent("a"), Deadline: time.Now().Add(time.Hour)})
		waits := g.open(asker, core.Request{To: core.ToAgent("a"), Deadline: time.Now().Add(time.Minute)})
		g.sleep(time.Minute)
		if f := waits.Answer().Fault; f == nil || f.Code != core.CodeTimeout || waits.Receipt().Stage != core.StageExpired {
			t.Errorf("got %v and %s, want timeout and expired", f, waits.Receipt().Stage)
		}
		g.wantKinds("its log", waits.Events(), "opened", "failed")
		g.wantLoad("a", 1, 0, core.LoadBusy)
		g.report(agent, running, core.Done{})
		g.wantKinds("the agent read", g.events(agent), "assigned", "done")
	})
}

func TestATaskThatLeavesAQueueMakesRoom(t *testing.T) {
	withHub(t, hub.Limits{QueueLength: 1}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		first, second := g.ask(asker, "a"), g.ask(asker, "a")
		for i := range 3 {
			_, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: fmt.Sprint(i)}, hub.OpenOptions{})
			g.wantFault("a full queue", err, core.CodeOverloaded)
			if f := core.AsFault(err); !f.Retryable {
				t.Errorf("got %+v, want it retryable", f)
			}
		}
		if got := g.hub.Counters()["refused.overloaded"]; got != 3 {
			t.Errorf("got %d counted, want 3", got)
		}
		g.report(agent, first, core.Done{})
		third := g.ask(asker, "a")
		g.wantState("after it", task.Queued, third)
		g.report(agent, second, core.Done{})
		g.report(agent, third, core.Done{})
	})
}

func TestAQueuedTaskGoesToAnotherAgentThatBecomesFree(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		x := func(c *core.Card) { c.Capabilities = []string{"x"} }
		a, asker := g.agent("a", able, x), g.connect("r")
		first, waits, named := g.ask(asker, "capability:x"), g.ask(asker, "capability:x"), g.ask(asker, "a")
		b := g.agent("b", able, x)
		if got := waits.Agent(); got != "b" {
			t.Errorf("when b joins: got the queued task with %q, want b", got)
		}
		if got := named.State(); got != task.Queued {
			t.Errorf("addressed to a by name: got %s, want queued", got)
		}
		g.report(b, waits, core.Done{})
		g.report(a, first, core.Done{})
		g.report(a, named, core.Done{})
	})
}

// blocking is an observer that blocks at the first event of a kind until it is released.
type blocking struct {
	kind             core.Kind
	once             sync.Once
	reached, proceed chan struct{}
}

func (b *blocking) Joined(core.Card)             {}
func (b *blocking) Left(core.AgentID, bool)      {}
func (b *blocking) Recorded(core.TaskID, uint64) {}
func (b *blocking) Appended(_ core.TaskID, e core.Event) {
	if e.Body.Kind() == b.kind {
		b.once.Do(func() {
			close(b.reached)
			<-b.proceed
		})
	}
}

// Promise P8: an agent runs as many tasks as it declared, even after one that it never got.
func TestATaskThatEndsWhileItIsAssignedFreesItsSlot(t *testing.T) {
	cancelled := &blocking{kind: core.KindCancelled, reached: make(chan struct{}), proceed: make(chan struct{})}
	g := &testHub{t, coretest.NewHub(t, hub.Options{Observer: cancelled})}
	a, asker := g.agent("a", able), g.connect("r")
	a.SetLoad(core.LoadOverloaded)
	waiting := g.ask(asker, "a")
	var steps sync.WaitGroup
	steps.Go(func() { _ = asker.Cancel(waiting.ID(), "enough") })
	<-cancelled.reached // the task is about to end, and locked
	steps.Go(func() { a.SetLoad(core.LoadIdle) })
	for {
		if got, _ := g.hub.Agent(core.Principal{Operator: true}, "a"); got.Load.Active == 1 {
			break // it is being assigned
		}
		runtime.Gosched()
	}
	close(cancelled.proceed)
	steps.Wait()
	g.wantLoad("a", 0, 0, core.LoadIdle)
	g.wantState("the next task", task.Running, g.ask(asker, "a"))
}
