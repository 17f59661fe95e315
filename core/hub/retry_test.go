package hub_test

import (
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

var notNow = core.Failed{Fault: core.NewFault(core.CodeOverloaded, "not now")}

// failing joins n agents and returns them by id.
func (g *testHub) failing(names ...string) map[core.AgentID]*hub.Session {
	g.t.Helper()
	out := map[core.AgentID]*hub.Session{}
	for _, n := range names {
		out[core.AgentID(n)] = g.agent(n, able)
	}
	return out
}

func TestATaskIsRetriedAtMostTwice(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agents, asker := g.failing("a", "b", "c", "d"), g.connect("r")
		task := g.ask(asker, "*")
		had := map[core.AgentID]bool{}
		for attempt := 1; attempt <= 3; attempt++ {
			id := task.Agent()
			if had[id] {
				t.Errorf("attempt %d: got agent %s again, want another one", attempt, id)
			}
			had[id] = true
			g.report(agents[id], task, notNow)
		}
		events := g.events(asker)
		g.wantKinds("the requester read", events,
			"opened", "assigned", "retrying", "assigned", "retrying", "assigned", "failed")
		for i, attempt := range map[int]int{1: 1, 3: 2, 5: 3} {
			if got := events[i].Body.(core.Assigned).Attempt; got != attempt {
				t.Errorf("event %d: got attempt %d, want %d", i+1, got, attempt)
			}
		}
		if b := events[2].Body.(core.Retrying); b.Attempt != 1 || !had[b.Agent] || b.Fault.Code != core.CodeOverloaded {
			t.Errorf("got %+v, want attempt 1 of the first agent with its fault", b)
		}
	})
}

func TestTheNumberOfRetriesIsSettable(t *testing.T) {
	for retries, want := range map[int][]string{
		-1: {"opened", "assigned", "failed"},
		1:  {"opened", "assigned", "retrying", "assigned", "failed"},
	} {
		withHub(t, hub.Limits{Retries: retries}, func(g *testHub) {
			agents, asker := g.failing("a", "b", "c"), g.connect("r")
			asked := g.ask(asker, "*")
			for asked.State() != task.Ended {
				g.report(agents[asked.Agent()], asked, notNow)
			}
			g.wantKinds("the requester read", g.events(asker), want...)
		})
	}
}

func TestATaskWithoutAnotherAgentFailsWithTheFirstReason(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "*")
		g.report(a, task, notNow)
		if got := task.Answer().Fault; got != notNow.Fault {
			t.Errorf("got %v, want %v", got, notNow.Fault)
		}
		g.wantLoad("a", 0, 0, core.LoadIdle)
	})
}

func TestFailuresThatAreNotRetried(t *testing.T) {
	final := core.Failed{Fault: core.NewFault(core.CodeInvalid, "I cannot read this")}
	for name, c := range map[string]struct {
		to      string
		before  func(*testHub, *hub.Session, *hub.Session, *task.Task)
		failure core.Body
	}{
		"a failure that a try does not help": {"*", nil, final},
		"a request to one agent":             {"a", nil, notNow},
		"a task that is to be cancelled": {"*", func(g *testHub, asker, _ *hub.Session, task *task.Task) {
			if err := asker.Cancel(task.ID(), "stop"); err != nil {
				g.t.Fatal(err)
			}
		}, notNow},
		"a task with a file":      {"*", reported(core.File{Name: "x"}), notNow},
		"a task with a thought":   {"*", reported(core.Thinking{Text: "hm"}), notNow},
		"a task with a tool call": {"*", reported(core.ToolCall{ID: "1", Name: "ls"}), notNow},
		"a task with something unknown": {"*", func(g *testHub, _, agent *hub.Session, task *task.Task) {
			if err := agent.Report(task.ID(), core.ForeignFrame{Dialect: "test", Name: "dance"}, nil); err != nil {
				g.t.Fatal(err)
			}
		}, notNow},
	} {
		t.Run(name, func(t *testing.T) {
			withHub(t, hub.Limits{}, func(g *testHub) {
				a, asker := g.agent("a", able), g.connect("r")
				task := g.ask(asker, c.to)
				g.agent("b", able)
				if c.before != nil {
					c.before(g, asker, a, task)
				}
				g.report(a, task, c.failure)
				if got := task.Answer().End; got != core.KindFailed {
					t.Errorf("got %s with agent %s, want it failed", task.State(), task.Agent())
				}
			})
		})
	}
}

func reported(body core.Body) func(*testHub, *hub.Session, *hub.Session, *task.Task) {
	return func(g *testHub, _, agent *hub.Session, task *task.Task) { g.report(agent, task, body) }
}

func TestUsageBeforeARetryCountsAndDoesNotPreventIt(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, b, asker := g.agent("a", able), g.agent("b", able), g.connect("r")
		task := g.ask(asker, "*")
		g.report(a, task, core.SessionStarted{Session: "s"}, core.Usage{Input: 3}, notNow)
		g.report(b, task, core.Usage{Input: 4}, core.Done{})
		if got := task.Answer().Usage.Input; got != 7 {
			t.Errorf("got %d tokens, want 7", got)
		}
		for by, want := range map[string]int64{"a": 3, "b": 4} {
			all, _, err := g.hub.Usage(t.Context(), operator, "agent")
			if err != nil {
				t.Fatal(err)
			}
			for _, total := range all {
				if total.Key == by && total.Tokens.Input != want {
					t.Errorf("agent %s: got %d tokens, want %d", by, total.Tokens.Input, want)
				}
			}
		}
	})
}
