package hub_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// child joins an agent that the hub runs itself and that is still starting.
func (g *testHub) child(id string) *hub.Session {
	g.t.Helper()
	s := g.connect(id)
	card := core.Card{ID: core.AgentID(id), Dialect: "test", Capabilities: []string{"work"}, Features: able}
	if err := s.Join(card, hub.JoinOptions{Starting: true}); err != nil {
		g.t.Fatal(err)
	}
	return s
}

func TestTasksOfAChildWaitUntilItIsReady(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		child, user := g.child("c"), g.connect("user")
		asked := g.ask(user, "c")
		synctest.Wait()
		if got := asked.Agent(); got != "" {
			t.Fatalf("the task was assigned to %s, want it in the queue", got)
		}
		if a, _ := g.hub.Agent(core.Principal{Operator: true}, "c"); a.Child == nil || a.Child.State != core.ChildStarting || a.Load.Queued != 1 {
			t.Errorf("the agent is listed as %+v with %d queued, want starting with 1", a.Child, a.Load.Queued)
		}
		child.SetChild(core.Child{State: core.ChildReady, PID: 7})
		if got := asked.Agent(); got != "c" {
			t.Errorf("once it is ready the task is with %q, want c", got)
		}
		if err := child.Report(asked.ID(), core.Done{}, nil); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAChildIsLastSeenWhenItWasReadyAgain(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		child := g.child("c")
		for _, state := range []core.ChildState{core.ChildReady, core.ChildRestarting, core.ChildReady} {
			g.sleep(time.Minute)
			child.SetChild(core.Child{State: state})
			a, _ := g.hub.Agent(core.Principal{Operator: true}, "c")
			if got, want := time.Since(a.Load.LastSeen) == 0, state == core.ChildReady; got != want {
				t.Errorf("%s: last seen %s ago, want now: %t", state, time.Since(a.Load.LastSeen), want)
			}
		}
	})
}

func TestAnAgentThatIsReadyIsPreferredToAChildThatStarts(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		g.child("c")
		other := g.agent("o", able, func(c *core.Card) { c.Capabilities = []string{"work"} })
		asked := g.ask(g.connect("user"), "capability:work")
		if got := asked.Agent(); got != "o" {
			t.Errorf("the task is with %q, want o", got)
		}
		if err := other.Report(asked.ID(), core.Done{}, nil); err != nil {
			t.Fatal(err)
		}
	})
}

func TestTasksOfAChildThatFailedAreUnreachable(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		child, user := g.child("c"), g.connect("user")
		waits := g.ask(user, "c")
		child.SetChild(core.Child{State: core.ChildFailed, LastError: "no such program"})
		synctest.Wait()
		if f := waits.Answer().Fault; !errors.Is(f, &core.Fault{Code: core.CodeUnreachable}) || !strings.Contains(f.Message, "no such program") {
			t.Errorf("the task that waited: got %v, want unreachable with the reason", f)
		}
		for _, to := range []core.Address{core.ToAgent("c"), core.ToCapability("work")} {
			_, err := user.Open(core.Request{To: to, Content: "go"}, hub.OpenOptions{})
			if !errors.Is(err, &core.Fault{Code: core.CodeUnreachable}) || !strings.Contains(err.Error(), "no such program") {
				t.Errorf("a new task to %s: got %v, want unreachable with the reason", to, err)
			}
		}
		child.SetChild(core.Child{State: core.ChildReady, Restarts: 1})
		asked := g.ask(user, "c")
		if got := asked.Agent(); got != "c" {
			t.Errorf("after a restart the task is with %q, want c", got)
		}
		if err := child.Report(asked.ID(), core.Done{}, nil); err != nil {
			t.Fatal(err)
		}
	})
}

func TestATaskByCapabilityLeavesAChildThatFailed(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		child, user := g.child("c"), g.connect("user")
		waits := g.ask(user, "capability:work")
		other := g.agent("o", able, func(c *core.Card) { c.Capabilities = []string{"work"}; c.MaxConcurrent = 1 })
		if got := waits.Agent(); got != "o" { // it came idle and took what waits
			t.Fatalf("the task is with %q, want o", got)
		}
		second := g.ask(user, "capability:work")
		child.SetChild(core.Child{State: core.ChildFailed, LastError: "gone"})
		for _, asked := range []core.TaskID{waits.ID(), second.ID()} {
			if err := other.Report(asked, core.Done{}, nil); err != nil {
				t.Errorf("task %s: got %v, want it with the other agent", asked, err)
			}
		}
	})
}

func TestOnlyOperatorsSeeHowTheHubRunsAnAgent(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		child := core.Child{State: core.ChildFailed, Restarts: 1, LastError: "secret path", RetryMS: 30_000}
		g.child("c").SetChild(child)
		for p, want := range map[core.Principal]core.Child{
			{ID: "chief", Operator: true}: child,
			{ID: "user"}:                  {State: core.ChildFailed, RetryMS: 30_000},
		} {
			page, _ := g.hub.AgentPage(p, "", 10, func(core.Card) bool { return true })
			if got := *g.hub.Agents(p)[0].Child; got != want || *page[0].Child != want {
				t.Errorf("%s: got %+v and %+v, want %+v", p.ID, got, *page[0].Child, want)
			}
		}
	})
}

func TestHowAnAgentIsRunIsShownToWhoMayOperateIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := coretest.Rules(t, "* see", "ann operate c", "ben operate other", "cid read")
		g := &testHub{t, coretest.NewHub(t, hub.Options{Authorizer: rules})}
		g.child("c").SetChild(core.Child{State: core.ChildRestarting, PID: 7, LastError: "it ended"})
		for who, want := range map[core.Principal]bool{
			{ID: "ann", Authenticated: true}: true, {ID: "ben", Authenticated: true}: false, {ID: "cid", Authenticated: true}: false,
			{ID: "root", Authenticated: true, Operator: true}: true,
		} {
			a, here := g.hub.Agent(who, "c")
			if !here || a.Child.State != core.ChildRestarting || (a.Child.PID != 0) != want || (a.Child.LastError != "") != want {
				t.Errorf("%s: got %+v, want the state, and the rest of it %v", who.ID, a.Child, want)
			}
		}
	})
}
