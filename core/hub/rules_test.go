package hub_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/policy"
)

// notAsking returns rules by which everybody may do everything, but for principals that may not ask
// an agent: they are given in pairs.
func notAsking(t *testing.T, pairs ...string) policy.Authorizer {
	t.Helper()
	var rules []policy.Rule
	for pair := range slices.Chunk(pairs, 2) {
		rules = append(rules, policy.Rule{Who: pair[:1], May: []core.Right{core.RightAsk}, To: pair[1:], Deny: true})
	}
	table, err := policy.Compile(append(rules, policy.Rule{Who: []string{"*"}, May: policy.Rights()}))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestAPrincipalAsksOnlyPermittedAgents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &testHub{t, coretest.NewHub(t, hub.Options{Authorizer: notAsking(t, "r", "a", "mute", "*")})}
		x := func(c *core.Card) { c.Capabilities = []string{"x"} }
		a, b := g.agent("a", able, x), g.agent("b", able, x)
		asker, mute, other := g.connect("r"), g.connect("mute"), g.connect("other")

		task, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{})
		g.wantFault("an agent that it may not ask", err, core.CodeNotAuthorized)
		g.wantKinds("the log of what was denied", task.Events(), "opened", "failed")
		for _, to := range []string{"b", "capability:x", "*"} {
			allowed := g.ask(asker, to)
			if got := allowed.Agent(); got != "b" {
				t.Errorf("to %s: got %q, want b", to, got)
			}
			g.report(b, allowed, core.Done{})
		}
		_, err = mute.Open(core.Request{To: core.ToAny(), Content: "go"}, hub.OpenOptions{})
		g.wantFault("a principal that may ask no agent", err, core.CodeNotAuthorized)
		g.report(a, g.ask(other, "a"), core.Done{})
		g.wantKinds("agent a read", g.events(a), "assigned", "done")
	})
}

func TestARetryGoesOnlyToAPermittedAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &testHub{t, coretest.NewHub(t, hub.Options{Authorizer: notAsking(t, "r", "b")})}
		a, asker := g.agent("a", able), g.connect("r")
		g.agent("b", able)
		task := g.ask(asker, "*")
		g.report(a, task, notNow)
		g.wantKinds("the requester read", g.events(asker), "opened", "assigned", "retrying", "failed")
	})
}

func TestTheNumberOfHopsIsLimitedAsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &testHub{t, coretest.NewHub(t, hub.Options{Limits: hub.Limits{Hops: 1}})}
		a, b := g.agent("a", able), g.agent("b", able)
		g.agent("c", able)
		g.ask(g.connect("r"), "a")
		g.ask(a, "b")
		_, err := b.Open(core.Request{To: core.ToAgent("c"), Content: "go"}, hub.OpenOptions{})
		g.wantFault("a second hop", err, core.CodeLoop)
	})
}

func TestAnOperatorSteersEveryTask(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		operator := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: "o", Operator: true}})
		defer operator.Close(nil)
		task := g.ask(asker, "a")
		if err := operator.Inject(hub.NoWait, task.ID(), core.Injected{Content: "hurry"}); err != nil {
			t.Errorf("injecting: got %v, want no error", err)
		}
		if err := operator.Cancel(task.ID(), "too slow"); err != nil {
			t.Errorf("cancelling: got %v, want no error", err)
		}
		g.wantKinds("the agent read", g.events(agent), "assigned", "injected", "cancel_requested")
		g.report(agent, task, core.Cancelled{})
		for i, e := range task.Events() {
			if c, ok := e.Body.(core.CancelRequested); ok && c.By != "o" {
				t.Errorf("event %d: got a cancel by %q, want the operator", i+1, c.By)
			}
		}
	})
}

func TestAnInvalidRequestIsRefusedBeforeAnythingElse(t *testing.T) {
	withHub(t, hub.Limits{RequestBytes: 4096}, func(g *testHub) {
		a, asker := g.agent("a", able|core.FeatureNotices), g.connect("r")
		to := core.ToAgent("a")
		for name, c := range map[string]struct {
			req  core.Request
			want core.Code
		}{
			"no address":              {core.Request{Content: "go"}, core.CodeInvalid},
			"the hub":                 {core.Request{To: core.ToHub(), Content: "go"}, core.CodeUnsupported},
			"nothing asked":           {core.Request{To: to}, core.CodeInvalid},
			"a notice without one":    {core.Request{To: to, Intent: core.IntentNotify}, core.CodeInvalid},
			"a notice without topic":  {core.Request{To: to, Intent: core.IntentNotify, Notice: &core.Notice{Topic: " "}}, core.CodeInvalid},
			"data that is no JSON":    {core.Request{To: to, Data: []byte(`{"n":`)}, core.CodeInvalid},
			"context that is no JSON": {core.Request{To: to, Content: "go", Context: []byte(`nope`)}, core.CodeInvalid},
			"a deadline in the past":  {core.Request{To: to, Content: "go", Deadline: time.Now().Add(-time.Second)}, core.CodeTimeout},
			"more than fits":          {core.Request{To: to, Data: fmt.Appendf(nil, "%05000d", 1)}, core.CodeTooLarge},
		} {
			task, err := asker.Open(c.req, hub.OpenOptions{})
			g.wantFault(name, err, c.want)
			if task != nil {
				t.Errorf("%s: got a task with the fault, want none", name)
			}
			if n := g.hub.Counters()["refused."+string(c.want)]; n == 0 {
				t.Errorf("%s: got no counter, want %s counted", name, c.want)
			}
		}
		if got := g.batches(a); len(got) != 0 {
			t.Errorf("the agent: got %d batches, want none", len(got))
		}
		for name, req := range map[string]core.Request{
			"data alone":       {To: to, Data: []byte(`{"n":1}`)},
			"a file alone":     {To: to, Attachments: []core.File{{Name: "x"}}},
			"a frame verbatim": {To: to, Foreign: &core.Foreign{Dialect: "test", JSON: []byte(`{}`)}},
		} {
			task, err := asker.Open(req, hub.OpenOptions{})
			if err != nil {
				t.Errorf("%s: got %v, want no error", name, err)
				continue
			}
			g.report(a, task, core.Done{})
		}
	})
}

func TestAnAgentGetsTheTurnsThatTheRequesterMayRead(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent := g.agent("a", able)
		operator := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: "root", Authenticated: true, Operator: true}, Dialect: "test"})
		defer operator.Close(nil)
		for _, c := range []struct {
			asker *hub.Session
			says  string
			turns int
		}{
			{g.as("alice"), "the code is 42", 0},
			{g.as("bob"), "what is the code?", 0},
			{g.as("alice"), "what was the code?", 2},
			{operator, "what did they say?", 6},
			{g.connect("local"), "on an open hub all are one principal", 8},
		} {
			task, err := c.asker.Open(core.Request{To: core.ToAgent("a"), Thread: "t", Content: c.says}, hub.OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := task.Request().History; len(got) != c.turns {
				t.Errorf("%s: got %d turns before, want %d", c.says, len(got), c.turns)
			}
			g.report(agent, task, core.Text{Text: "yes"}, core.Done{})
		}
	})
}
