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
		rules policy.Rules
		hops  int
		loop  bool
	}{
		"nothing above":             {policy.Rules{}, 0, false},
		"at the default":            {policy.Rules{}, policy.DefaultHops, false},
		"above the default":         {policy.Rules{}, policy.DefaultHops + 1, true},
		"at a limit of one":         {policy.Rules{Hops: 1}, 1, false},
		"above a limit of one":      {policy.Rules{Hops: 1}, 2, true},
		"a negative limit is unset": {policy.Rules{Hops: -1}, policy.DefaultHops, false},
		"above a negative limit":    {policy.Rules{Hops: -1}, policy.DefaultHops + 1, true},
	} {
		err := c.rules.CheckChain(policy.Chain{Hops: c.hops})
		if got := errors.Is(err, &core.Fault{Code: core.CodeLoop}); got != c.loop || !c.loop && err != nil {
			t.Errorf("%s: got %v, want a loop fault: %v", name, err, c.loop)
		}
		if c.loop && !strings.Contains(err.Error(), "answer instead of asking another agent") {
			t.Errorf("%s: got %q, want it to say what to do", name, err)
		}
	}
}

func TestWhichAgentsAPrincipalMayAsk(t *testing.T) {
	open := policy.Rules{}
	closed := policy.Rules{Ask: map[string][]core.AgentID{"ana": {"a", "b"}, "mute": nil}}
	chain := policy.Chain{Hops: 2, Agents: []core.AgentID{"a", "c"}}
	for name, c := range map[string]struct {
		rules     policy.Rules
		principal string
		chain     policy.Chain
		target    core.AgentID
		want      core.Code
	}{
		"no rules":                               {open, "ana", policy.Chain{}, "a", ""},
		"an allowed agent":                       {closed, "ana", policy.Chain{}, "b", ""},
		"an agent that is not allowed":           {closed, "ana", policy.Chain{}, "d", core.CodeNotAuthorized},
		"a principal that may ask no agent":      {closed, "mute", policy.Chain{}, "a", core.CodeNotAuthorized},
		"a principal without an entry":           {closed, "ben", policy.Chain{}, "d", ""},
		"a loop":                                 {open, "ana", chain, "c", core.CodeLoop},
		"a loop to an allowed agent":             {closed, "ana", chain, "a", core.CodeLoop},
		"a loop to an agent that is not allowed": {closed, "ana", chain, "c", core.CodeLoop},
		"an agent outside the chain":             {open, "ana", chain, "b", ""},
	} {
		err := c.chain.CheckAgent(c.target)
		if err == nil {
			p, to := core.Principal{ID: c.principal}, policy.Target{Agent: c.target}
			if !c.rules.May(p, core.RightAsk, policy.Object{Target: to}) {
				err = policy.Refusal(p, core.RightAsk, to)
			}
		}
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: got %v, want no error", name, err)
			}
			continue
		}
		if !errors.Is(err, &core.Fault{Code: c.want}) {
			t.Errorf("%s: got %v, want a %s fault", name, err, c.want)
			continue
		}
		if !strings.Contains(err.Error(), string(c.target)) {
			t.Errorf("%s: got %q, want it to name the agent", name, err)
		}
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
		if got := (policy.Rules{}).Allow(c.reader, core.Read{Task: "t"}, policy.Object{Owner: owner}) == nil; got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
