package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
)

func TestARuleThatCanNeverMatchIsRefusedWithWhatToWrite(t *testing.T) {
	see := []core.Right{core.RightSee}
	for name, c := range map[string]struct {
		rule policy.Rule
		want string
	}{
		"nobody":                     {policy.Rule{May: see}, "names nobody: write who:"},
		"no right":                   {policy.Rule{Who: []string{"a"}}, "names no right: write may: and some of see, ask, read"},
		"a right that is none":       {policy.Rule{Who: []string{"a"}, May: []core.Right{77}}, "may: unknown right (77)"},
		"an empty principal":         {policy.Rule{Who: []string{""}, May: see}, `no principal is named ""`},
		"a principal with blanks":    {policy.Rule{Who: []string{" a"}, May: see}, "begins or ends with blanks"},
		"the hub as principal":       {policy.Rule{Who: []string{"hub"}, May: see}, "reserved for addresses"},
		"an empty role":              {policy.Rule{Who: []string{"role:"}, May: see}, "write role:NAME"},
		"a role with *":              {policy.Rule{Who: []string{"role:op*"}, May: see}, "roles are compared whole"},
		"roles":                      {policy.Rule{Who: []string{"roles:ops"}, May: see}, `unknown prefix in "roles:ops": did you mean role:ops?`},
		"an agent with a line break": {policy.Rule{Who: []string{"a"}, May: see, To: []string{"sh\nout*"}}, "control characters"},
		"an id that is too long":     {policy.Rule{Who: []string{"a"}, May: see, To: []string{strings.Repeat("x*", 300)}}, "use at most 512"},
		"the hub as receiver":        {policy.Rule{Who: []string{"a"}, May: see, To: []string{"hub"}}, "leave to out"},
		"a role as receiver":         {policy.Rule{Who: []string{"a"}, May: see, To: []string{"role:ops"}}, "write it under who"},
		"a capability with *":        {policy.Rule{Who: []string{"a"}, May: see, To: []string{"capability:ec*"}}, "compared whole"},
		"an empty capability":        {policy.Rule{Who: []string{"a"}, May: see, To: []string{"capability:"}}, "write capability:a"},
		"an empty part of a domain":  {policy.Rule{Who: []string{"a"}, May: see, To: []string{"domain:a..b"}}, "write domain:family.calendar"},
		"a domain with * within":     {policy.Rule{Who: []string{"a"}, May: see, To: []string{"domain:a.*.b"}}, "a domain includes those below it"},
		"an empty pack":              {policy.Rule{Who: []string{"a"}, May: see, To: []string{"pack:"}}, "write pack:ID"},
		"a misspelt prefix":          {policy.Rule{Who: []string{"a"}, May: see, To: []string{"domian:x"}}, "did you mean domain:x?"},
	} {
		c.rule.Line = 7
		_, err := policy.Compile([]policy.Rule{rule(1, "a", "see", ""), c.rule})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "line 7: ") {
			t.Errorf("%s: got %v, want line 7 and %q", name, err, c.want)
		}
	}
	for _, good := range []policy.Rule{
		rule(1, "alice@example.com CN=x,O=y spiffe://a/b role:team/ops *", "see", "acp:peer ed25519.0af3 team-* domain:a.* capability:a,b pack:* *"),
		rule(2, "*a* кот-* *ボット", "operate", "кот-*"),
	} {
		if err := good.Check(); err != nil {
			t.Errorf("%s: got %v, want it accepted", good, err)
		}
	}
}

func TestAnUnknownRightSuggestsTheClosest(t *testing.T) {
	for name, want := range map[string]string{
		"aks": "did you mean ask?", "Ask": "did you mean ask?", "aprove": "did you mean approve?",
		"write": "write some of see, ask, read, steer, approve, answer, provide, operate",
	} {
		if _, err := policy.ParseRight(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
	for _, right := range policy.Rights() {
		if got, err := policy.ParseRight(right.String()); err != nil || got != right {
			t.Errorf("%s: got %s and %v, want the right", right, got, err)
		}
	}
}

func TestARuleThatNeverDecidesIsFoundWithTheRulesBeforeIt(t *testing.T) {
	for name, c := range map[string]struct {
		rules []policy.Rule
		want  []policy.Shadowed
	}{
		"one twice":                        {[]policy.Rule{rule(1, "a", "see", "x"), rule(2, "deny a", "see", "x")}, []policy.Shadowed{{2, []int{1}}}},
		"everybody before one":             {[]policy.Rule{rule(1, "*", "see ask", "*"), rule(2, "deny a", "ask", "x")}, []policy.Shadowed{{2, []int{1}}}},
		"everybody before a role":          {[]policy.Rule{rule(1, "*", "ask", "*"), rule(2, "role:r", "ask", "capability:x domain:d t-*")}, []policy.Shadowed{{2, []int{1}}}},
		"one before everybody":             {[]policy.Rule{rule(1, "a", "ask", "*"), rule(2, "*", "ask", "*")}, nil},
		"a role before everybody":          {[]policy.Rule{rule(1, "role:r", "ask", "*"), rule(2, "*", "ask", "*")}, nil},
		"a pattern before a narrower":      {[]policy.Rule{rule(1, "a", "ask", "t*"), rule(2, "a", "ask", "t*-x t")}, []policy.Shadowed{{2, []int{1}}}},
		"a pattern before a wider":         {[]policy.Rule{rule(1, "a", "ask", "t-*"), rule(2, "a", "ask", "t*")}, nil},
		"a domain before one below":        {[]policy.Rule{rule(1, "a", "ask", "domain:d"), rule(2, "a", "ask", "domain:d.e")}, []policy.Shadowed{{2, []int{1}}}},
		"a domain before one above":        {[]policy.Rule{rule(1, "a", "ask", "domain:d.e"), rule(2, "a", "ask", "domain:d")}, nil},
		"a capability before two":          {[]policy.Rule{rule(1, "a", "ask", "capability:x"), rule(2, "a", "ask", "capability:y,x")}, []policy.Shadowed{{2, []int{1}}}},
		"two capabilities before one":      {[]policy.Rule{rule(1, "a", "ask", "capability:x,y"), rule(2, "a", "ask", "capability:x")}, nil},
		"agents before everywhere":         {[]policy.Rule{rule(1, "a", "ask", "* pack:*"), rule(2, "a", "ask", "")}, nil},
		"everywhere before agents":         {[]policy.Rule{rule(1, "a", "ask", ""), rule(2, "a", "ask", "* pack:p")}, []policy.Shadowed{{2, []int{1}}}},
		"agents before a pack":             {[]policy.Rule{rule(1, "a", "ask", "*"), rule(2, "a", "ask", "pack:p")}, nil},
		"another right":                    {[]policy.Rule{rule(1, "a", "ask", "*"), rule(2, "a", "see ask", "*")}, nil},
		"two rules that match all of it":   {[]policy.Rule{rule(3, "a", "ask", "*"), rule(5, "b", "ask", "x"), rule(8, "a b", "ask", "x")}, []policy.Shadowed{{8, []int{3, 5}}}},
		"what only several match together": {[]policy.Rule{rule(1, "a", "ask", "x*"), rule(2, "a", "ask", "*x"), rule(3, "a", "ask", "xax x-*")}, []policy.Shadowed{{3, []int{1}}}},
	} {
		if d := cmp.Diff(c.want, compile(t, c.rules...).Shadowed()); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	one, two := policy.Shadowed{Line: 4, By: []int{2}}, policy.Shadowed{Line: 8, By: []int{3, 5}}
	if got, want := one.String(), "line 4 never decides: line 2 matches all of it first; move it above that line, or remove it"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := two.String(), "line 8 never decides: lines 3, 5 match all of it first; move it above them, or remove it"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestADecisionIsExplainedByItsRule(t *testing.T) {
	table := compile(t,
		rule(2, "alice", "see ask", "shout"),
		rule(5, "deny *", "ask", "capability:danger pack:*"),
		rule(6, "role:ops", "see ask read steer approve answer provide operate", ""),
		rule(9, "carl", "ask", "shout"),
	)
	ops := core.Principal{ID: "bob", Credential: &core.Credential{Roles: []string{"ops"}}}
	for _, c := range []struct {
		p     core.Principal
		right core.Right
		to    string
		want  string
	}{
		{core.Principal{ID: "alice"}, core.RightAsk, "shout", "yes, by line 2: {who: alice, may: [see, ask], to: shout}"},
		{core.Principal{ID: "alice"}, core.RightAsk, "pack:files", `no, by line 5: {who: "*", may: ask, to: [capability:danger, pack:*], deny: true}`},
		{core.Principal{ID: "alice"}, core.RightAsk, "capability:danger", `no, by line 5: {who: "*", may: ask, to: [capability:danger, pack:*], deny: true}`},
		{core.Principal{ID: "carl"}, core.RightAsk, "shout", "yes, by line 9: {who: carl, may: ask, to: shout}; but without the right to see it, who asks does not find it: add see"},
		{core.Principal{ID: "alice"}, core.RightAsk, "*", "no: no rule matches, which refuses"},
		{core.Principal{ID: "alice"}, core.RightAsk, "domain:d", "no: no rule matches, which refuses"},
		{ops, core.RightOperate, "hub", `yes, by line 6: {who: role:ops, may: "*"}`},
		{ops, core.RightOperate, "", `yes, by line 6: {who: role:ops, may: "*"}`},
		{core.Principal{ID: "root", Operator: true}, core.RightOperate, "hub", "yes: an operator passes every rule"},
	} {
		to, err := policy.ParseTarget(c.to)
		if err != nil {
			t.Fatal(err)
		}
		if got := table.Explain(c.p, c.right, to).String(); got != c.want {
			t.Errorf("%s %s %q: got %q, want %q", c.p.ID, c.right, c.to, got, c.want)
		}
	}
	for text, want := range map[string]string{"pack:": "write pack:ID", "domain:": "write domain:", "a\n": "control characters"} {
		if _, err := policy.ParseTarget(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}
