package hub_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// as connects an authenticated principal, which may register every agent.
func (g *testHub) as(principal string) *hub.Session {
	s := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: principal, Authenticated: true, Credential: &core.Credential{Agents: []string{"*"}}}, Dialect: "test"})
	g.t.Cleanup(func() { s.Close(nil) })
	return s
}

func TestATakeoverDependsOnThePrincipalsOfTheConnections(t *testing.T) {
	answers := func(context.Context) error { return nil }
	silent := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for _, c := range []struct {
		name          string
		first, second string // principals; "" is not authenticated
		probe         func(context.Context) error
		newer         bool
		after         time.Duration
	}{
		{"the same principal", "alice", "alice", answers, true, 0},
		{"another principal", "alice", "bob", silent, false, 0},
		{"unauthenticated after alice", "alice", "", silent, false, 0},
		{"alice after unauthenticated", "", "alice", silent, false, 0},
		{"unauthenticated, the first answers", "", "", answers, false, 0},
		{"unauthenticated, the first is silent", "", "", silent, true, 2 * time.Second},
		{"unauthenticated, the first cannot be pinged", "", "", nil, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			withHub(t, hub.Limits{}, func(g *testHub) {
				who := func(principal string) *hub.Session {
					if principal == "" {
						return g.connect("local")
					}
					return g.as(principal)
				}
				first, second := who(c.first), who(c.second)
				if err := first.Join(core.Card{ID: "a"}, hub.JoinOptions{Probe: c.probe}); err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				err := second.Take(g.t.Context(), core.Card{ID: "a", Name: "newer"}, hub.JoinOptions{})
				if took := time.Since(start); took != c.after {
					t.Errorf("it took %v, want %v", took, c.after)
				}
				a, _ := g.hub.Agent(core.Principal{Operator: true}, "a")
				if !c.newer {
					g.wantFault("the newer one", err, core.CodeConflict)
					if a.Name != "a" {
						t.Errorf("got %q, want the older one kept", a.Name)
					}
					return
				}
				if err != nil || a.Name != "newer" {
					t.Fatalf("got %v and %q, want the newer one accepted", err, a.Name)
				}
				if _, err := first.Next(g.t.Context()); err == nil || core.AsFault(err).Code != core.CodeConflict || !strings.Contains(err.Error(), "newer connection") {
					t.Errorf("the older one got %v, want that a newer connection replaced it", err)
				}
			})
		})
	}
}

func TestTheTasksOfAReplacedConnectionAreReassigned(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		first, asker := g.as("alice"), g.connect("r")
		able := core.Card{ID: "a", Capabilities: []string{"x"}}
		if err := first.Join(able, hub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
		task := g.ask(asker, "capability:x")
		other := g.agent("b", 0, func(c *core.Card) { c.Capabilities = []string{"x"} })
		second := g.as("alice")
		if err := second.Take(g.t.Context(), able, hub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := task.Agent(); got != "b" {
			t.Fatalf("got the task assigned to %q, want b", got)
		}
		g.wantFault("a late answer by the replaced agent", first.Report(task.ID(), core.Done{}, nil), core.CodeNotAuthorized)
		g.report(other, task, core.Text{Text: "done"}, core.Done{})
		g.wantKinds("the requester read", g.events(asker), "opened", "assigned", "retrying", "assigned", "text", "done")
		g.report(second, g.ask(asker, "a"), core.Done{})
	})
}

func TestWaitingForAnIDEndsWithItsContext(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		first, second := g.connect("one"), g.connect("two")
		var gaveUp error
		probe := func(ctx context.Context) error {
			<-ctx.Done()
			gaveUp = ctx.Err()
			return gaveUp
		}
		if err := first.Join(core.Card{ID: "a"}, hub.JoinOptions{Probe: probe}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(g.t.Context())
		left := errors.New("it left")
		got := make(chan error, 1)
		go func() { got <- second.Take(ctx, core.Card{ID: "a"}, hub.JoinOptions{}) }()
		synctest.Wait()
		cancel(left)
		if err := <-got; !errors.Is(err, left) {
			t.Errorf("got %v, want %v", err, left)
		}
		if !errors.Is(gaveUp, context.DeadlineExceeded) { // a cancelled ping may end its connection
			t.Errorf("the probe ended with %v, want it to use its whole timeout", gaveUp)
		}
		if _, here := g.hub.Agent(core.Principal{Operator: true}, "a"); !here {
			t.Error("got no agent, want the first one kept")
		}
	})
}

func TestAJoinThatWasGivenUpTakesNoID(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		first, second := g.as("alice"), g.as("alice")
		if err := first.Join(core.Card{ID: "a"}, hub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(g.t.Context())
		left := errors.New("it left")
		cancel(left)
		if err := second.Take(ctx, core.Card{ID: "a"}, hub.JoinOptions{}); !errors.Is(err, left) {
			t.Errorf("got %v, want %v", err, left)
		}
		g.report(first, g.ask(g.connect("asker"), "a"), core.Done{})
	})
}

func TestAnAgentCannotTakeASecondID(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a := g.agent("a", 0)
		g.wantFault("a second id", a.Take(g.t.Context(), core.Card{ID: "b"}, hub.JoinOptions{}), core.CodeConflict)
		g.wantFault("its own id again", a.Take(g.t.Context(), core.Card{ID: "a"}, hub.JoinOptions{}), core.CodeConflict)
	})
}

func TestANewerConnectionGetsUnstartedTasksOfTheOlderOne(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		able := core.Card{ID: "a", Capabilities: []string{"sums"}, MaxConcurrent: 2}
		first, second, asker := g.as("alice"), g.as("alice"), g.connect("asker")
		if err := first.Join(able, hub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
		ask := func(to core.Address) *task.Task {
			task, err := asker.Open(core.Request{To: to, Content: "1+1"}, hub.OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return task
		}
		unanswered, begun, named, waits := ask(core.ToCapability("sums")), ask(core.ToCapability("sums")), ask(core.ToAgent("a")), ask(core.ToCapability("sums"))
		if err := first.Report(begun.ID(), core.Text{Text: "t"}, nil); err != nil {
			t.Fatal(err)
		}
		if err := second.Take(g.t.Context(), able, hub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]struct {
			task *task.Task
			want task.State
		}{
			"unanswered": {unanswered, task.Running}, "queued": {waits, task.Running},
			"begun": {begun, task.Ended}, "addressed by id": {named, task.Ended},
		} {
			if got := c.task.State(); got != c.want {
				t.Errorf("%s: got %s, want %s", name, got, c.want)
			}
		}
		for _, task := range []*task.Task{unanswered, waits} {
			if err := second.Report(task.ID(), core.Done{Text: "2"}, nil); err != nil {
				t.Errorf("the newer connection answers: got %v, want no error", err)
			}
		}
	})
}

func TestAFailedTaskIsNotRetriedOverANewConnectionOfItsAgent(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		able := core.Card{ID: "a", Capabilities: []string{"sums"}}
		first, second, busy, asker := g.as("alice"), g.as("alice"), g.connect("b"), g.connect("asker")
		if err := first.Join(able, hub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
		asked, err := asker.Open(core.Request{To: core.ToCapability("sums"), Content: "1+1"}, hub.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := busy.Join(core.Card{ID: "b", Capabilities: []string{"sums"}}, hub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := asker.Open(core.Request{To: core.ToAgent("b"), Content: "wait"}, hub.OpenOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := first.Report(asked.ID(), core.Failed{Fault: &core.Fault{Code: core.CodeOverloaded, Message: "not me", Retryable: true}}, nil); err != nil {
			t.Fatal(err)
		}
		if err := second.Take(g.t.Context(), able, hub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := asked.State(); got != task.Queued {
			t.Errorf("got %s, want it queued for the other agent", got)
		}
	})
}
