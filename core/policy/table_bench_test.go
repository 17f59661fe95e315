package policy_test

import (
	"fmt"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
)

// BenchmarkDecide measures one decision with 10 and with 10,000 rules. In each case the rule
// that decides is the last one, or none is.
func BenchmarkDecide(b *testing.B) {
	alice := core.Principal{ID: "alice", Credential: &core.Credential{Roles: []string{"dev", "ops", "oncall"}}}
	shout := policy.Target{Agent: "shout", Capabilities: []string{"a", "b", "c", "echo", "upper"}, Domains: []string{"family.calendar.work", "text.*"}}
	see := []core.Right{core.RightSee, core.RightAsk}
	rule := func(who, to string) policy.Rule { return policy.Rule{Who: []string{who}, May: see, To: []string{to}} }
	for _, n := range []int{10, 10_000} {
		for _, c := range []struct {
			name string
			// other is a rule that does not decide, last the one that does.
			other func(i int) policy.Rule
			last  policy.Rule
			want  bool
		}{
			{"exact", func(i int) policy.Rule { return rule(fmt.Sprint("p", i), fmt.Sprint("a", i)) }, rule("alice", "shout"), true},
			{"everybody", func(i int) policy.Rule { return rule("*", fmt.Sprint("a", i)) }, rule("*", "*"), true},
			{"glob", func(i int) policy.Rule { return rule(fmt.Sprintf("*%d*", i), fmt.Sprintf("*s%d*t*", i)) }, rule("al*e", "*o*t"), true},
			{"role", func(i int) policy.Rule { return rule(fmt.Sprint("role:r", i), fmt.Sprint("capability:c", i)) }, rule("role:ops", "capability:echo"), true},
			{"domain", func(i int) policy.Rule { return rule("alice", fmt.Sprintf("domain:d%d", i)) }, rule("alice", "domain:family"), true},
			{"refused", func(i int) policy.Rule { return rule("alice", fmt.Sprint("a", i)) }, rule("bob", "shout"), false},
			{"refused_by_globs", func(i int) policy.Rule { return rule("*", fmt.Sprintf("*s*h%d*", i)) }, rule("*", "*z"), false},
		} {
			rules := make([]policy.Rule, 0, n)
			for i := range n - 1 {
				rules = append(rules, c.other(i))
			}
			table, err := policy.Compile(append(rules, c.last))
			if err != nil {
				b.Fatal(err)
			}
			if got, _ := table.Decide(alice, core.RightAsk, shout); got != c.want {
				b.Fatalf("%d/%s: got %v, want %v", n, c.name, got, c.want)
			}
			b.Run(fmt.Sprintf("%d/%s", n, c.name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					table.Decide(alice, core.RightAsk, shout)
				}
			})
		}
	}
}

// BenchmarkAllow measures the door: a command on a task of somebody else.
func BenchmarkAllow(b *testing.B) {
	table, err := policy.Compile([]policy.Rule{{Who: []string{"role:ops"}, May: []core.Right{core.RightSteer}, To: []string{"*"}}})
	if err != nil {
		b.Fatal(err)
	}
	p := core.Principal{ID: "alice", Authenticated: true, Credential: &core.Credential{Roles: []string{"ops"}}}
	o := policy.Object{Owner: core.Principal{ID: "bob"}, Target: policy.Target{Agent: "shout"}, Provider: core.Principal{ID: "robot"}}
	var cancel core.Command = core.Cancel{Task: "t"}
	b.ReportAllocs()
	for b.Loop() {
		if err := table.Allow(p, cancel, o); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFirstDecide measures the first decision about an agent, for which a set of rules is
// made: with 10,000 patterns, none of which matches.
func BenchmarkFirstDecide(b *testing.B) {
	rules := make([]policy.Rule, 10_000)
	for i := range rules {
		rules[i] = policy.Rule{Who: []string{"*"}, May: policy.Rights(), To: []string{fmt.Sprintf("*s*h%d*", i)}}
	}
	table, err := policy.Compile(rules)
	if err != nil {
		b.Fatal(err)
	}
	ids := make([]core.AgentID, 100_000)
	for i := range ids {
		ids[i] = core.AgentID(fmt.Sprint("shout", i))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		table.Decide(core.Principal{ID: "alice"}, core.RightAsk, policy.Target{Agent: ids[i%len(ids)]})
	}
}

// BenchmarkCompile measures reading a file of 10,000 patterns again, with its warnings.
func BenchmarkCompile(b *testing.B) {
	rules := make([]policy.Rule, 10_000)
	for i := range rules {
		rules[i] = policy.Rule{Who: []string{fmt.Sprintf("p%d-*", i)}, May: policy.Rights()[:2], To: []string{fmt.Sprintf("*s*h%d*t", i)}, Line: i + 1}
	}
	b.ReportAllocs()
	for b.Loop() {
		table, err := policy.Compile(rules)
		if err != nil {
			b.Fatal(err)
		}
		if got := table.Shadowed(); len(got) > 0 {
			b.Fatalf("got %d rules that never decide, want none", len(got))
		}
	}
}
