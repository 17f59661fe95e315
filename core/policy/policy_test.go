package policy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheChainOfATaskExtendsTheChainsOfItsCauses(t *testing.T) {
	ids := func(all ...core.AgentID) []core.AgentID { return all }
	for name, c := range map[string]struct {
		agent core.AgentID
		above []policy.Chain
		want  policy.Chain
	}{
		"a client":                          {"", nil, policy.Chain{}},
		"an agent without a cause":          {"a", nil, policy.Chain{Agents: ids("a")}},
		"an agent that works for a client":  {"a", []policy.Chain{{}}, policy.Chain{Hops: 1, Agents: ids("a")}},
		"one hop more than the one above":   {"b", []policy.Chain{{Hops: 1, Agents: ids("a")}}, policy.Chain{Hops: 2, Agents: ids("a", "b")}},
		"one hop more than the longest":     {"c", []policy.Chain{{Hops: 1}, {Hops: 5, Agents: ids("x")}, {Hops: 3}}, policy.Chain{Hops: 6, Agents: ids("x", "c")}},
		"all agents above, each once":       {"d", []policy.Chain{{Hops: 2, Agents: ids("a", "b")}, {Hops: 2, Agents: ids("b", "c")}}, policy.Chain{Hops: 3, Agents: ids("a", "b", "c", "d")}},
		"an agent that is above it already": {"a", []policy.Chain{{Hops: 1, Agents: ids("a", "b")}}, policy.Chain{Hops: 2, Agents: ids("a", "b")}},
		"a client that works on a task":     {"", []policy.Chain{{Hops: 1, Agents: ids("a")}}, policy.Chain{Hops: 2, Agents: ids("a")}},
	} {
		if d := cmp.Diff(c.want, policy.ChainBelow(c.agent, c.above)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestTheHopsOfAChainNeverDecrease(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.Map(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}), func(s string) core.AgentID { return core.AgentID(s) })
		above := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) policy.Chain {
			return policy.Chain{Hops: rapid.IntRange(0, 9).Draw(t, "hops"), Agents: rapid.SliceOfN(name, 0, 4).Draw(t, "agents")}
		}), 1, 4).Draw(t, "above")
		agent := name.Draw(t, "agent")
		got := policy.ChainBelow(agent, above)
		has := map[core.AgentID]int{}
		for _, id := range got.Agents {
			has[id]++
		}
		for _, a := range above {
			if got.Hops <= a.Hops {
				t.Fatalf("got %d hops below %d, want more", got.Hops, a.Hops)
			}
			for _, id := range a.Agents {
				if has[id] != 1 {
					t.Fatalf("got %s %d times in %v, want once", id, has[id], got.Agents)
				}
			}
		}
		if has[agent] != 1 {
			t.Fatalf("got the agent itself %d times in %v, want once", has[agent], got.Agents)
		}
	})
}

func TestAChainBeyondItsLimitIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		limit, hops int
		loop        bool
	}{
		"nothing above":        {1, 0, false},
		"at the default":       {policy.DefaultHops, policy.DefaultHops, false},
		"above the default":    {policy.DefaultHops, policy.DefaultHops + 1, true},
		"at a limit of one":    {1, 1, false},
		"above a limit of one": {1, 2, true},
	} {
		err := policy.Chain{Hops: c.hops}.CheckHops(c.limit)
		if got := errors.Is(err, &core.Fault{Code: core.CodeLoop}); got != c.loop || !c.loop && err != nil {
			t.Errorf("%s: got %v, want a loop fault: %v", name, err, c.loop)
		}
		if c.loop && !strings.Contains(err.Error(), "answer instead of asking another agent") {
			t.Errorf("%s: got %q, want it to say what to do", name, err)
		}
	}
}

func TestAnAgentOfTheChainIsNotAskedAgain(t *testing.T) {
	chain := policy.Chain{Hops: 2, Agents: []core.AgentID{"a", "c"}}
	if err := chain.CheckAgent("b"); err != nil {
		t.Errorf("an agent outside the chain: got %v, want no error", err)
	}
	if err := chain.CheckAgent("c"); !errors.Is(err, &core.Fault{Code: core.CodeLoop}) || !strings.Contains(err.Error(), "agent c ") {
		t.Errorf("an agent of the chain: got %v, want a loop fault that names it", err)
	}
}

func TestATaskIsReadByItsOwnerAndByOperators(t *testing.T) {
	owner := core.Principal{ID: "ana", Dialect: "pi"}
	for name, c := range map[string]struct {
		reader core.Principal
		want   bool
	}{
		"the owner":                        {core.Principal{ID: "ana", Dialect: "pi"}, true},
		"the owner, over another dialect":  {core.Principal{ID: "ana", Dialect: "rest", Authenticated: true}, true},
		"another principal":                {core.Principal{ID: "ben"}, false},
		"another, authenticated principal": {core.Principal{ID: "ben", Authenticated: true}, false},
		"an operator":                      {core.Principal{ID: "ops", Operator: true}, true},
		"an id in other letter case":       {core.Principal{ID: "Ana"}, false},
		"no principal":                     {core.Principal{}, false},
	} {
		if got := (policy.Default{}).Allow(c.reader, core.Read{Task: "t"}, policy.Object{Owner: owner}) == nil; got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
