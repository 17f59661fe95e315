package policy_test

import (
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
)

// rule makes a rule of words: who, rights and receivers, each separated by blanks. A line
// that begins with "deny " refuses.
func rule(line int, who, may, to string) policy.Rule {
	r := policy.Rule{Line: line, To: strings.Fields(to)}
	if rest, is := strings.CutPrefix(who, "deny "); is {
		who, r.Deny = rest, true
	}
	r.Who = strings.Fields(who)
	for _, name := range strings.Fields(may) {
		right, err := policy.ParseRight(name)
		if err != nil {
			panic(err)
		}
		r.May = append(r.May, right)
	}
	return r
}

func compile(t testing.TB, rules ...policy.Rule) *policy.Table {
	t.Helper()
	table, err := policy.Compile(rules)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestTheFirstRuleThatMatchesDecides(t *testing.T) {
	table := compile(t,
		rule(1, "deny alice", "ask", "secret-*"),
		rule(2, "alice", "see ask", "*"),
		rule(3, "role:ops", "read steer", "*"),
		rule(4, "deny *", "provide", "pack:files"),
		rule(5, "ci-*", "provide ask", "pack:*"),
		rule(6, "bob", "ask", "capability:echo,upper"),
		rule(7, "bob", "see", "domain:family"),
		rule(8, "root", "operate", ""),
		rule(9, "carol", "operate", "shout"),
		rule(10, "dave", "approve", ""),
	)
	alice, bob, ci := core.Principal{ID: "alice"}, core.Principal{ID: "bob"}, core.Principal{ID: "ci-7"}
	ops := core.Principal{ID: "olga", Credential: &core.Credential{Roles: []string{"dev", "ops"}}}
	agent := func(id core.AgentID) policy.Target { return policy.Target{Agent: id} }
	can := func(all ...string) policy.Target { return policy.Target{Agent: "x", Capabilities: all} }
	serves := func(all ...string) policy.Target { return policy.Target{Agent: "x", Domains: all} }
	for _, c := range []struct {
		name  string
		p     core.Principal
		right core.Right
		to    policy.Target
		line  int
		want  bool
	}{
		{"an agent by *", alice, core.RightAsk, agent("shout"), 2, true},
		{"an agent that an earlier rule refuses", alice, core.RightAsk, agent("secret-plan"), 1, false},
		{"another right to that agent", alice, core.RightSee, agent("secret-plan"), 2, true},
		{"a right that no rule gives", alice, core.RightSteer, agent("shout"), 0, false},
		{"an id in other letter case", core.Principal{ID: "Alice"}, core.RightAsk, agent("shout"), 0, false},
		{"* is every agent and no pack", alice, core.RightAsk, policy.Target{Pack: "files"}, 0, false},
		{"* is every agent and not the hub", alice, core.RightAsk, policy.Target{}, 0, false},
		{"a role", ops, core.RightSteer, agent("shout"), 3, true},
		{"the same principal without the role", core.Principal{ID: "olga"}, core.RightSteer, agent("shout"), 0, false},
		{"a principal that is named as the role", core.Principal{ID: "ops"}, core.RightSteer, agent("shout"), 0, false},
		{"a pack that is refused to all", ci, core.RightProvide, policy.Target{Pack: "files"}, 4, false},
		{"a pack by a pattern", ci, core.RightProvide, policy.Target{Pack: "git"}, 5, true},
		{"an agent that is named as the pack", ci, core.RightAsk, agent("git"), 0, false},
		{"all capabilities", bob, core.RightAsk, can("upper", "x", "echo"), 6, true},
		{"one of two capabilities", bob, core.RightAsk, can("echo"), 0, false},
		{"a domain", bob, core.RightSee, serves("family"), 7, true},
		{"a domain with .*", bob, core.RightSee, serves("family.*"), 7, true},
		{"a domain below", bob, core.RightSee, serves("work", "family.calendar.holidays"), 7, true},
		{"a domain that begins alike", bob, core.RightSee, serves("familyplan"), 0, false},
		{"the hub, where a rule has no receivers", core.Principal{ID: "root"}, core.RightOperate, policy.Target{}, 8, true},
		{"an agent, where a rule has no receivers", core.Principal{ID: "root"}, core.RightOperate, agent("shout"), 8, true},
		{"a pack, where a rule has no receivers", core.Principal{ID: "root"}, core.RightOperate, policy.Target{Pack: "git"}, 8, true},
		{"operate on one agent", core.Principal{ID: "carol"}, core.RightOperate, agent("shout"), 9, true},
		{"which is not the hub", core.Principal{ID: "carol"}, core.RightOperate, policy.Target{}, 0, false},
		{"an operator", core.Principal{ID: "eve", Operator: true}, core.RightOperate, policy.Target{}, 0, true},
		{"nobody", core.Principal{}, core.RightSee, agent("shout"), 0, false},
		{"no right", alice, 0, agent("shout"), 0, false},
		{"a right that does not exist", alice, core.RightOperate + 1, agent("shout"), 0, false},
	} {
		for range 2 { // the second time from memory
			if got, line := table.Decide(c.p, c.right, c.to); got != c.want || line != c.line {
				t.Errorf("%s: got %v by line %d, want %v by line %d", c.name, got, line, c.want, c.line)
			}
		}
	}
}

func TestATableWithoutRulesRefusesEverythingButToOperators(t *testing.T) {
	for name, table := range map[string]*policy.Table{"zero": {}, "compiled": compile(t)} {
		if got, _ := table.Decide(core.Principal{ID: "alice"}, core.RightSee, policy.Target{Agent: "a"}); got {
			t.Errorf("%s: got alice allowed, want refused", name)
		}
		if got, _ := table.Decide(core.Principal{ID: "root", Operator: true}, core.RightOperate, policy.Target{}); !got {
			t.Errorf("%s: got an operator refused, want allowed", name)
		}
		if got := table.Shadowed(); got != nil {
			t.Errorf("%s: got %v, want no warnings", name, got)
		}
	}
}

func TestADecisionFollowsWhatAnAgentDeclaresNow(t *testing.T) {
	table := compile(t, rule(1, "*", "ask", "capability:echo"))
	p := core.Principal{ID: "alice"}
	for _, c := range []struct {
		declared []string
		want     bool
	}{{nil, false}, {[]string{"echo"}, true}, {[]string{"other"}, false}, {[]string{"echo"}, true}, {nil, false}} {
		if got, _ := table.Decide(p, core.RightAsk, policy.Target{Agent: "a", Capabilities: c.declared}); got != c.want {
			t.Errorf("with %q: got %v, want %v", c.declared, got, c.want)
		}
	}
	for _, c := range []struct {
		roles []string
		want  bool
	}{{nil, false}, {[]string{"ops"}, true}, {[]string{"dev"}, false}} {
		table := compile(t, rule(1, "role:ops", "ask", "*"))
		p.Credential = &core.Credential{Roles: c.roles}
		if got, _ := table.Decide(p, core.RightAsk, policy.Target{Agent: "a"}); got != c.want {
			t.Errorf("with the roles %q: got %v, want %v", c.roles, got, c.want)
		}
	}
}

// TestATableDecidesAsTheListReadFromTheTop compares tables with a plain walk.
func TestATableDecidesAsTheListReadFromTheTop(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := rapid.SliceOfN(rapid.Custom(drawRule), 0, 150).Draw(t, "rules")
		for i := range rules {
			rules[i].Line = i + 1
		}
		table, err := policy.Compile(rules)
		if err != nil {
			t.Fatal(err)
		}
		dead := map[int]bool{}
		for _, s := range table.Shadowed() {
			dead[s.Line] = true
		}
		for range 60 {
			p, right, to := drawPrincipal(t), rapid.SampledFrom(policy.Rights()).Draw(t, "right"), drawTarget(t)
			allowed, line := table.Decide(p, right, to)
			wantAllowed, wantLine := walk(rules, p, right, to)
			if allowed != wantAllowed || line != wantLine {
				t.Fatalf("%+v %s %+v: got %v by line %d, want %v by line %d", p, right, to, allowed, line, wantAllowed, wantLine)
			}
			if dead[line] {
				t.Fatalf("%+v %s %+v: line %d decides, of which a warning says that it never does", p, right, to, line)
			}
			d := table.Explain(p, right, to)
			if d.Allowed != allowed || (d.Rule == nil) != (line == 0) || d.Rule != nil && d.Rule.Line != line {
				t.Fatalf("%+v %s %+v: the explanation is %q, want %v by line %d", p, right, to, d, allowed, line)
			}
		}
	})
}

var (
	ids       = []string{"a", "ab", "abc", "b", "bab", "b/a", "ba"}
	patterns  = append([]string{"*", "a*", "*b", "a*c", "*a*", "b*b", "**", "*b*b*", "ab*b"}, ids...)
	roles     = []string{"r", "s", "ab"}
	abilities = []string{"x", "y", "z"}
	domains   = []string{"d", "d.e", "d.e.f", "de", "g", "d.*"}
)

func sample(t *rapid.T, from []string, least, most int) []string {
	return rapid.SliceOfN(rapid.SampledFrom(from), least, most).Draw(t, "some")
}

func drawRule(t *rapid.T) policy.Rule {
	r := policy.Rule{May: rapid.SliceOfN(rapid.SampledFrom(policy.Rights()), 1, 3).Draw(t, "may"), Deny: rapid.Bool().Draw(t, "deny")}
	for range rapid.IntRange(1, 2).Draw(t, "whos") {
		if rapid.IntRange(0, 2).Draw(t, "kind") == 0 {
			r.Who = append(r.Who, "role:"+rapid.SampledFrom(roles).Draw(t, "role"))
		} else {
			r.Who = append(r.Who, rapid.SampledFrom(patterns).Draw(t, "who"))
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, "receivers") {
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			r.To = append(r.To, "capability:"+strings.Join(sample(t, abilities, 1, 2), ","))
		case 1:
			r.To = append(r.To, "domain:"+rapid.SampledFrom(domains).Draw(t, "domain"))
		case 2:
			r.To = append(r.To, "pack:"+rapid.SampledFrom(patterns).Draw(t, "pack"))
		default:
			r.To = append(r.To, rapid.SampledFrom(patterns).Draw(t, "to"))
		}
	}
	return r
}

func drawPrincipal(t *rapid.T) core.Principal {
	p := core.Principal{ID: rapid.SampledFrom(ids).Draw(t, "principal"), Operator: rapid.IntRange(0, 9).Draw(t, "operator") == 0}
	if rapid.Bool().Draw(t, "credential") {
		p.Credential = &core.Credential{Roles: sample(t, roles, 0, 2)}
	}
	return p
}

func drawTarget(t *rapid.T) policy.Target {
	switch rapid.IntRange(0, 4).Draw(t, "target") {
	case 0:
		return policy.Target{}
	case 1:
		return policy.Target{Pack: rapid.SampledFrom(ids).Draw(t, "pack")}
	}
	return policy.Target{
		Agent:        core.AgentID(rapid.SampledFrom(ids).Draw(t, "agent")),
		Capabilities: sample(t, abilities, 0, 3), Domains: sample(t, domains, 0, 2),
	}
}

// walk decides as the documentation says: from the top, one rule after the other.
func walk(rules []policy.Rule, p core.Principal, right core.Right, to policy.Target) (bool, int) {
	if p.Operator {
		return true, 0
	}
	for _, r := range rules {
		if slices.Contains(r.May, right) && slices.ContainsFunc(r.Who, func(who string) bool { return isWho(who, p) }) &&
			(len(r.To) == 0 || slices.ContainsFunc(r.To, func(pattern string) bool { return isTo(pattern, to) })) {
			return !r.Deny, r.Line
		}
	}
	return false, 0
}

func isWho(who string, p core.Principal) bool {
	if role, is := strings.CutPrefix(who, "role:"); is {
		return p.Credential != nil && slices.Contains(p.Credential.Roles, role)
	}
	return matches(who, p.ID)
}

// matches is another implementation of *: that of package path, in which it stands for
// anything but a slash.
func matches(pattern, id string) bool {
	ok, err := path.Match(strings.ReplaceAll(pattern, "/", "|"), strings.ReplaceAll(id, "/", "|"))
	return ok && err == nil
}

func isTo(pattern string, to policy.Target) bool {
	pack, isPack := strings.CutPrefix(pattern, "pack:")
	all, isCapability := strings.CutPrefix(pattern, "capability:")
	domain, isDomain := strings.CutPrefix(pattern, "domain:")
	switch {
	case isPack:
		return to.Pack != "" && matches(pack, to.Pack)
	case isCapability:
		for _, c := range strings.Split(all, ",") {
			if !slices.Contains(to.Capabilities, c) {
				return false
			}
		}
		return true
	case isDomain:
		domain = strings.TrimSuffix(domain, ".*")
		return slices.ContainsFunc(to.Domains, func(d string) bool {
			_, serves := core.Card{Domains: []string{domain}}.Answers(core.ToDomain(strings.TrimSuffix(d, ".*")))
			return serves
		})
	}
	return to.Agent != "" && matches(pattern, string(to.Agent))
}

func TestManyDecideAtOnceWhileTheMemoryOverflows(t *testing.T) {
	var rules []policy.Rule
	for i := range 200 {
		rules = append(rules, rule(i+1, "p*", "ask", "capability:c"+strings.Repeat("x", i)))
	}
	table := compile(t, rules...)
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 3000 {
				n := (i*7 + g) % 250
				to := policy.Target{Agent: core.AgentID("a" + strings.Repeat("y", i%500)), Capabilities: []string{"c" + strings.Repeat("x", n), strings.Repeat("z", 20_000)}}
				allowed, line := table.Decide(core.Principal{ID: "p"}, core.RightAsk, to)
				if want := n < 200; allowed != want || want && line != n+1 {
					t.Errorf("capability %d: got %v by line %d, want %v", n, allowed, line, want)
					return
				}
			}
		})
	}
	all.Wait()
}

func TestADecisionAllocatesNothing(t *testing.T) {
	table := compile(t, rule(1, "role:ops", "ask", "capability:echo"), rule(2, "a*e", "see", "*o*"))
	p := core.Principal{ID: "alice", Credential: &core.Credential{Roles: []string{"ops"}}}
	to := policy.Target{Agent: "shout", Capabilities: []string{"echo"}}
	for name, right := range map[string]core.Right{"allowed": core.RightAsk, "by a glob": core.RightSee, "refused": core.RightSteer} {
		if n := testing.AllocsPerRun(100, func() { table.Decide(p, right, to) }); n != 0 {
			t.Errorf("%s: got %v allocations, want none", name, n)
		}
	}
}

func TestOfAnAgentThatHasLeftEveryRuleThatMightRefuseItDoes(t *testing.T) {
	table := compile(t,
		rule(1, "dev", "see", "c"),
		rule(2, "deny dev", "see read", "capability:topsecret,code"),
		rule(3, "deny eve", "read", "domain:payments"),
		rule(4, "ops", "read", "capability:code"),
		rule(5, "dev eve", "see read", "*"),
	)
	code := []string{"code"}
	for _, c := range []struct {
		who   string
		right core.Right
		to    policy.Target
		want  bool
	}{
		{"dev", core.RightRead, policy.Target{Agent: "a", Capabilities: code}, true},
		{"dev", core.RightRead, policy.Target{Agent: "a", Undeclared: true}, false},
		{"dev", core.RightRead, policy.Target{Agent: "a"}, true}, // it is here, and declares nothing
		{"dev", core.RightSee, policy.Target{Agent: "a", Undeclared: true}, false},
		{"dev", core.RightSee, policy.Target{Agent: "c", Undeclared: true}, true}, // by an earlier rule
		{"eve", core.RightRead, policy.Target{Agent: "a", Undeclared: true}, false},
		{"eve", core.RightSee, policy.Target{Agent: "a", Undeclared: true}, true},
		{"ops", core.RightRead, policy.Target{Agent: "a", Capabilities: code}, true},
		{"ops", core.RightRead, policy.Target{Agent: "a", Undeclared: true}, false},
	} {
		for range 2 { // the second time from what it remembers
			if got, line := table.Decide(core.Principal{ID: c.who}, c.right, c.to); got != c.want {
				t.Errorf("%s, %s, %+v: got %v by line %d, want %v", c.who, c.right, c.to, got, line, c.want)
			}
		}
	}
}
