package credentials_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/credentials"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
)

// read reads text as a file of rules.
func read(t testing.TB, text string) (*policy.Table, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return credentials.ReadRules(path)
}

func TestEachMistakeInRulesNamesItsLineAndWhatToWrite(t *testing.T) {
	const good = "rules:\n- {who: a, may: see}\n"
	for name, c := range map[string]struct{ text, want string }{
		"nothing":                     {"", "is empty: write rules: and below it a list"},
		"a comment alone":             {"# later\n", "is empty: write rules:"},
		"a text":                      {"alice may ask", "line 1: the file is a text: write rules:"},
		"a list alone":                {"- {who: a, may: see}", "line 1: the list stands alone: write rules:"},
		"no rules":                    {"{}", "line 1: there are no rules: write rules:"},
		"an empty list":               {"rules: []", "line 1: rules: want a list of at least one: without a rule, nobody but operators"},
		"an empty key":                {"rules:\n", "line 1: rules: want a list of at least one"},
		"a map of rules":              {"rules:\n  alice: ask", "line 2: rules: want a list"},
		"another key":                 {"rule:\n- {who: a, may: see}", `line 1: unknown key "rule": did you mean rules?`},
		"a second key":                {good + "default: allow", `line 3: unknown key "default": write one of rules`},
		"a second document":           {good + "---\n" + good, "line 3: a second document begins here"},
		"a * without quotes":          {"rules:\n- {who: *, may: see}", `is not YAML: line 2: a value that begins with * or & refers to another one: put it in quotes, such as "*"`},
		"a pattern without quotes":    {"rules:\n- who: *-agent\n  may: see", `*-agent refers to a value that is marked with &-agent, and there is none: if it is text, put it in quotes`},
		"an alias":                    {"rules:\n- {who: &a alice, may: see}\n- who: *a\n  may: see", "line 3: who: it is an alias (*a), which is not read here"},
		"an unknown key in a rule":    {good + "- {whom: a, may: see}", `line 3: unknown key "whom": did you mean who?`},
		"allow":                       {good + "- {who: a, may: see, allow: true}", `line 3: unknown key "allow": write one of who, may, to and deny`},
		"a key that is a list":        {good + "- {[a]: b}", "line 3: a key is a list"},
		"a key twice":                 {good + "- who: a\n  may: see\n  may: ask", "line 5: may stands there twice: remove one"},
		"a rule that is a text":       {good + "- alice", "line 3: the rule is a text: write who, may, to and deny below it"},
		"no who":                      {good + "- {may: see}", "line 3: the rule names nobody: write who: and the name of a principal"},
		"no may":                      {good + "- {who: a}", "line 3: the rule names no right: write may: and some of see, ask"},
		"an empty who":                {good + "- {who: , may: see}", "line 3: who: it is empty: write the name"},
		"an empty to":                 {good + "- who: a\n  may: see\n  to:", "line 5: to: it is empty: write the id of an agent, with * for any characters, capability:NAME, domain:NAME or pack:ID; leave to out"},
		"an empty list of rights":     {good + "- {who: a, may: []}", "line 3: may: the list is empty: write some of see"},
		"an empty list of principals": {good + "- {who: [], may: see}", "line 3: who: the list is empty"},
		"an empty list of receivers":  {good + "- {who: a, may: see, to: []}", "line 3: to: the list is empty"},
		"a number":                    {good + "- {who: 42, may: see}", `line 3: who: 42 is a number: write it in quotes`},
		"true":                        {good + "- {who: a, may: see, to: [b, true]}", "line 3: to: true is true or false: write it in quotes"},
		"a list in a list":            {good + "- who: a\n  may:\n  - see\n  - [ask]", "line 6: may: it is a list"},
		"a map":                       {good + "- {who: {a: b}, may: see}", "line 3: who: it is a map"},
		"an unknown right":            {good + "- who: a\n  may:\n  - see\n  - aks", `line 6: may: unknown right "aks": did you mean ask?`},
		"deny in words":               {good + `- {who: a, may: see, deny: "no"}`, "line 3: deny: want true or false"},
		"an id that is none":          {good + "- {who: a, may: see, to: \"b\\nc*\"}", "line 3: to: no agent has the id"},
		"a role in to":                {good + "- who: a\n  may: see\n  to:\n  - b\n  - role:x", "line 7: to: \"role:x\" is a role, which is no receiver: write it under who"},
		"no YAML":                     {"rules: [", "is not YAML: line 2: want a value in this line or near it"},
	} {
		_, err := read(t, c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "auth.rules: ") || !strings.Contains(err.Error(), "rules.yaml") {
			t.Errorf("%s: got %v, want auth.rules, the file and %q", name, err, c.want)
		}
	}
}

func TestAllMistakesOfAFileAreReportedTogether(t *testing.T) {
	_, err := read(t, "rules:\n- {who: a, mai: see}\n- {who: role:, may: [aks, see], to: hub}\n")
	if err == nil {
		t.Fatal("got no error, want five")
	}
	if got := strings.Split(err.Error(), "\n"); len(got) != 5 || !strings.Contains(got[1], "line 2") || !strings.Contains(got[4], "line 3: to: the hub") {
		t.Errorf("got %q, want five lines, two for line 2 and three for line 3", got)
	}
}

func TestAFileOfRulesThatCannotBeReadIsNamed(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none.yaml")
	if _, err := credentials.ReadRules(missing); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), missing+": no such file or directory; name a YAML file") {
		t.Errorf("no file: got %v, want it named with what to do", err)
	}
	if _, err := credentials.ReadRules(t.TempDir()); err == nil || !strings.Contains(err.Error(), "is a directory; name a YAML file") {
		t.Errorf("a directory: got %v, want it refused", err)
	}
	if _, err := read(t, strings.Repeat("# \n", 6<<20)); err == nil || !strings.Contains(err.Error(), "more than 16777216 bytes") {
		t.Errorf("a giant: got %v, want it refused by its size", err)
	}
}

func TestTheExampleOfRulesDecidesAsItSays(t *testing.T) {
	table, err := credentials.ReadRules("../../../../docs/examples/rules/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got := table.Shadowed(); got != nil {
		t.Errorf("got warnings %v, want none", got)
	}
	with := func(id string, roles ...string) core.Principal {
		return core.Principal{ID: id, Authenticated: true, Credential: &core.Credential{Roles: roles}}
	}
	alice, bob, carol := with("alice", "people"), with("bob", "people", "accounting"), with("carol")
	agent := func(id string, capabilities ...string) policy.Target {
		return policy.Target{Agent: core.AgentID(id), Capabilities: capabilities}
	}
	for _, c := range []struct {
		p     core.Principal
		right core.Right
		to    policy.Target
		want  bool
	}{
		{alice, core.RightAsk, agent("shout"), true},
		{alice, core.RightSee, agent("bank", "payments"), false},
		{bob, core.RightAsk, agent("bank", "payments"), true},
		{bob, core.RightApprove, agent("bank", "payments"), false},
		{carol, core.RightApprove, agent("shout"), true},
		{carol, core.RightApprove, agent("bank", "payments"), false},
		{alice, core.RightRead, agent("alice-notes"), true},
		{bob, core.RightRead, agent("alice-notes"), false},
		{with("screen"), core.RightRead, agent("shout"), true},
		{with("screen"), core.RightAsk, agent("shout"), false},
		{with("mail-agent"), core.RightAsk, policy.Target{Agent: "cal", Domains: []string{"family.calendar.holidays"}}, true},
		{with("mail-agent"), core.RightAsk, policy.Target{Pack: "git"}, true},
		{with("mail-agent"), core.RightProvide, policy.Target{Pack: "git"}, false},
		{with("toolbox"), core.RightProvide, policy.Target{Pack: "git"}, true},
		{with("dora", "oncall"), core.RightOperate, policy.Target{}, true},
		{with("eve"), core.RightSee, agent("shout"), false},
	} {
		if got := table.Explain(c.p, c.right, c.to); got.Allowed != c.want {
			t.Errorf("%s %s %+v: got %q, want %v", c.p.ID, c.right, c.to, got, c.want)
		}
	}
}

// TestTheExamplesOfThePageAreReadWithoutWarnings reads each YAML block of docs/rights.md.
func TestTheExamplesOfThePageAreReadWithoutWarnings(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/rights.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```yaml\n")[1:]
	if len(blocks) != 5 {
		t.Errorf("got %d blocks, want 5", len(blocks))
	}
	for _, block := range blocks {
		text, _, _ := strings.Cut(block, "```")
		table, err := read(t, text)
		if err != nil {
			t.Errorf("%s: got %v, want it read", text, err)
			continue
		}
		if got := table.Shadowed(); got != nil {
			t.Errorf("%s: got %v, want no warnings", text, got)
		}
	}
	alice := core.Principal{ID: "alice"}
	table, _ := read(t, strings.Split(blocks[0], "```")[0])
	if got := table.Explain(alice, core.RightAsk, policy.Target{Agent: "shout"}).String(); !strings.Contains(string(page), "\n"+got+"\n") {
		t.Errorf("got the explanation %q, want the page to show it", got)
	}
	for _, right := range policy.Rights() {
		if !strings.Contains(string(page), "\n| `"+right.String()+"` | ") {
			t.Errorf("the table of the page has no line for %s, want one for every right", right)
		}
	}
}

func TestTheSchemaOfRulesAgreesWithTheReader(t *testing.T) {
	schema, err := jsonschema.Compile("../../../../schemas/rules.json")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("../../../../docs/examples/rules/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{
		string(example), "{}", "[]", "rules: []", "rule: []", "rules: {}",
		"rules: [{who: a}]", "rules: [{may: see}]", "rules: [{who: a, may: []}]", "rules: [{who: [], may: see}]",
		"rules: [{who: 42, may: see}]", "rules: [{who: a, may: sea}]", "rules: [{who: a, may: [see, 1]}]", "rules: [{who: a, may: see, to: }]",
		"rules: [{who: a, may: see, deny: 1}]", "rules: [{who: a, may: see, deny: true, to: [b, c]}]", "rules: [{who: a, may: see, allow: true}]",
	}
	for _, right := range append(policy.Rights(), 0) {
		texts = append(texts, "rules: [{who: a, may: ["+right.String()+"]}]")
	}
	texts = append(texts, `rules: [{who: a, may: "*"}]`, `rules: [{who: a, may: ["*"]}]`)
	for _, text := range texts {
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		_, readError := read(t, text)
		if schemaError := schema.Validate(value); (schemaError == nil) != (readError == nil) {
			t.Errorf("%s: got %v from the schema and %v from the reader, want both to agree", text, schemaError, readError)
		}
	}
}

// TestARuleIsReadAsItIsPrinted checks that what an explanation prints may be copied to a file.
func TestARuleIsReadAsItIsPrinted(t *testing.T) {
	words := []string{"alice", "role:ops", "*", "*-x", "a b", "true", "42", "0x1f", "1e3", "~", "2030-01-31", "Große Anna", "a:b", "a#b", "x, y", "{a}", "-", "o'neil", `say "hi"`, "null", "a: b", "\\", "É"}
	rapid.Check(t, func(t2 *rapid.T) {
		one := rapid.SampledFrom(words)
		r := policy.Rule{
			Who:  rapid.SliceOfN(one, 1, 3).Draw(t2, "who"),
			May:  rapid.SliceOfNDistinct(rapid.SampledFrom(policy.Rights()), 1, 8, rapid.ID).Draw(t2, "may"),
			To:   rapid.SliceOfN(rapid.SampledFrom([]string{"a", "*", "capability:a,b", "domain:a.b", "pack:*", "123", "no", "a b"}), 0, 3).Draw(t2, "to"),
			Deny: rapid.Bool().Draw(t2, "deny"),
		}
		table, err := read(t, "rules:\n- "+r.String())
		if err != nil {
			t2.Fatalf("%s: got %v, want it read", r, err)
		}
		who, roles, _ := strings.Cut(r.Who[0], "role:")
		p := core.Principal{ID: who, Credential: &core.Credential{Roles: []string{roles}}}
		to, _ := policy.ParseTarget("hub")
		if len(r.To) > 0 {
			to, _ = policy.ParseTarget(r.To[0])
		}
		got := table.Explain(p, r.May[0], to)
		if got.Rule == nil || got.Rule.String() != r.String() || got.Allowed == r.Deny {
			t2.Fatalf("got %s, want %s", got, r)
		}
	})
}

func FuzzReadRules(f *testing.F) {
	f.Add("rules:\n- {who: alice, may: [see, ask], to: \"*\"}\n")
	f.Add("rules: [{who: [\"role:a\"], may: \"*\", deny: true}]")
	f.Add("rules:\n- &a {who: a, may: see}\n- *a\n")
	f.Add("? [a]\n: b\n---\n--- c")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := read(t, text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "auth.rules: ") {
				t.Errorf("got %q, want it to name the setting", err)
			}
			return
		}
		table.Shadowed()
		table.Decide(core.Principal{ID: "alice"}, core.RightAsk, policy.Target{Agent: "shout"})
	})
}
