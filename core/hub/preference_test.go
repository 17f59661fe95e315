package hub_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/task"
)

// wantAgent checks which agent has a task.
func (g *testHub) wantAgent(when string, t *task.Task, want core.AgentID) {
	g.t.Helper()
	if got := t.Agent(); got != want {
		g.t.Errorf("%s: got the task with agent %q, want %q", when, got, want)
	}
}

// refusing fails a task as an agent that says when to come again.
func refusing(code core.Code, again time.Duration) core.Failed {
	f := core.NewFault(code, "not now")
	f.RetryAfter = core.Seconds(again)
	return core.Failed{Fault: f}
}

func TestOfAgentsInOrderOfPreferenceTheFirstThatCanIsAsked(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		asker := g.connect("r")
		g.agent("c", able)
		g.wantAgent("while only the last one is here", g.ask(asker, "a,b,c"), "c")
		g.agent("b", able)
		g.agent("a", able)
		g.wantAgent("while all are free", g.ask(asker, "a,b,c"), "a")
		g.wantAgent("while the first one is at its limit", g.ask(asker, "a,b,c"), "b")
		g.wantAgent("while all are at their limits", g.ask(asker, "a,b,c"), "")
	})
}

func TestATaskThatWaitsForAPreferredAgentGoesToTheFirstThatIsFree(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		asker := g.connect("r")
		_, b := g.agent("a", able), g.agent("b", able)
		_, second := g.ask(asker, "a"), g.ask(asker, "b")
		waiting := g.ask(asker, "a,b")
		g.report(b, second, core.Done{})
		g.wantAgent("once the second one is free", waiting, "b")
	})
}

func TestEachPreferredAgentIsAskedOnce(t *testing.T) {
	withHub(t, hub.Limits{Retries: 1}, func(g *testHub) {
		agents, asker := g.failing("a", "b", "c", "d"), g.connect("r")
		asked := g.ask(asker, "a,b,c,d")
		for _, f := range []core.Failed{
			notNow, {Fault: core.NewFault(core.CodeUnauthenticated, "log in first")}, {Fault: core.NewFault(core.CodeBudget, "the plan is used up")}, notNow,
		} {
			g.report(agents[asked.Agent()], asked, f)
		}
		events := g.events(asker)
		g.wantKinds("the requester read", events, "opened", "assigned", "retrying", "assigned", "retrying", "assigned", "retrying", "assigned", "retrying", "failed")
		for i, want := range map[int]core.AgentID{2: "a", 4: "b", 6: "c"} {
			if got := events[i].Body.(core.Retrying).Agent; got != want {
				t.Errorf("event %d: got that agent %s did not answer, want %s", i+1, got, want)
			}
		}
	})
}

func TestAPreferredAgentThatHasBegunToAnswerIsTheLast(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, asker := g.agent("a", able), g.connect("r")
		g.agent("b", able)
		asked := g.ask(asker, "a,b")
		g.report(a, asked, core.Text{Text: "well"}, notNow)
		if got := asked.Answer(); got.End != core.KindFailed {
			t.Errorf("got %s with agent %s, want it failed", asked.State(), asked.Agent())
		}
	})
}

func TestAPreferredAgentIsPassedOverUntilItSaidToComeAgain(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, asker := g.agent("a", able, func(c *core.Card) { c.MaxConcurrent = 2 }), g.connect("r")
		g.agent("b", able, many)
		first := g.ask(asker, "a,b")
		g.report(a, first, refusing(core.CodeRateLimited, time.Minute))
		g.wantAgent("after the refusal", first, "b")
		g.wantAgent("within the minute", g.ask(asker, "a,b"), "b")
		g.wantAgent("within the minute, by its id", g.ask(asker, "a"), "a")
		time.Sleep(time.Minute)
		g.wantAgent("after the minute", g.ask(asker, "a,b"), "a")
	})
}

func TestARequestForAnAgentFallsBackAsItsCardSays(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a := g.agent("a", able, func(c *core.Card) { c.Fallback = []core.AgentID{"gone", "b"} })
		g.agent("b", able)
		asker := g.connect("r")
		asked := g.ask(asker, "a")
		g.report(a, asked, notNow)
		g.wantAgent("after it refused", asked, "b")
		if got, want := asked.To().String(), "a,gone,b"; got != want {
			t.Errorf("got the address %s, want %s", got, want)
		}
	})
}

func TestAgentsThatARequesterMayNotAskArePassedOverAsIfTheyWereNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &testHub{t, coretest.NewHub(t, hub.Options{Authorizer: notAsking(t, "r", "a")})}
		g.agent("a", able)
		g.agent("c", able)
		asker := g.connect("r")
		g.wantAgent("with one that may be asked", g.ask(asker, "a,c"), "c")
		_, err := asker.Open(core.Request{To: core.ToPreference("a", "b"), Content: "go"}, hub.OpenOptions{})
		if !errors.Is(err, &core.Fault{Code: core.CodeUnknownAgent}) {
			t.Errorf("with none that may be asked: got %v, want %s", err, core.CodeUnknownAgent)
		}
	})
}

func TestAFallbackNamesNoAgentThatTheRequesterMayNotFind(t *testing.T) {
	table, err := policy.Compile([]policy.Rule{
		{Who: []string{"r"}, May: []core.Right{core.RightSee}, To: []string{"hidden"}, Deny: true},
		{Who: []string{"*"}, May: policy.Rights()},
	})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		g := &testHub{t, coretest.NewHub(t, hub.Options{Authorizer: table})}
		fallback := func(ids ...core.AgentID) func(*core.Card) { return func(c *core.Card) { c.Fallback = ids } }
		g.agent("a", able, fallback("hidden", "b"))
		g.agent("hidden", able, fallback("b"))
		g.agent("b", able)
		asker := g.connect("r")
		if got, want := g.ask(asker, "a").To().String(), "a,b"; got != want {
			t.Errorf("got the address %s, want %s", got, want)
		}
		if a, _ := g.hub.Agent(core.Principal{ID: "r"}, "a"); !slices.Equal(a.Fallback, []core.AgentID{"b"}) {
			t.Errorf("got %q in the fallback that is shown, want b", a.Fallback)
		}
		_, err := asker.Open(core.Request{To: core.ToAgent("hidden"), Content: "go"}, hub.OpenOptions{})
		g.wantFault("an agent that it may not find", err, core.CodeUnknownAgent)
	})
}

func TestANoticeDoesNotFallBack(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		g.agent("a", 0, func(c *core.Card) { c.Fallback = []core.AgentID{"b"} })
		g.agent("b", able|core.FeatureNotices)
		_, err := g.connect("r").Open(core.Request{Intent: core.IntentNotify, To: core.ToAgent("a"), Notice: &core.Notice{Topic: "t"}}, hub.OpenOptions{})
		g.wantFault("a notice for an agent that takes none", err, core.CodeUnsupported)
	})
}
