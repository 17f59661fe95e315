package policy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
)

// objectOf is a task of the owner with an agent of the provider, as the door sees it.
func objectOf(owner, provider string) policy.Object {
	return policy.Object{
		Owner: core.Principal{ID: owner}, Target: policy.Target{Agent: "shout"},
		Provider: core.Principal{ID: provider, Authenticated: true},
	}
}

// calls has every command, with what the door knows of its object.
func calls(owner string) map[string]struct {
	command core.Command
	object  policy.Object
} {
	type call = struct {
		command core.Command
		object  policy.Object
	}
	task, agent, hub := objectOf(owner, "robot"), policy.Object{Target: policy.Target{Agent: "shout"}}, policy.Object{}
	return map[string]call{
		"open":             {&core.Open{Request: &core.Request{}}, hub},
		"open of an agent": {&core.Open{Request: &core.Request{}}, agent},
		"open for another": {&core.Open{Request: &core.Request{}, For: core.Principal{ID: "zoe"}}, agent},
		"cancel":           {core.Cancel{Task: "t"}, task},
		"inject":           {core.Inject{Task: "t"}, task},
		"decide":           {core.Decide{Task: "t"}, task},
		"answer":           {core.Reply{Question: "q"}, policy.Object{}}, // the hub asks about each question
		"read":             {core.Read{Task: "t"}, task},
		"readers":          {core.Readers{Task: "t"}, task},
		"watch_all":        {core.WatchAll{}, hub},
		"follow":           {core.Follow{Thread: "t"}, hub},
		"subscribe":        {core.Subscribe{}, hub},
		"list of agents":   {core.List{What: core.ListAgents}, hub},
		"list of usage":    {core.List{What: core.ListUsage}, hub},
		"list of audit":    {core.List{What: core.ListAudit}, hub},
		"tool of the hub":  {core.CallTool{Tool: "agents_list"}, hub},
		"tool of a pack":   {core.CallTool{Tool: "read_file"}, policy.Object{Target: policy.Target{Pack: "files"}}},
		"provide":          {core.Provide{Pack: "files"}, hub},
		"join":             {core.Join{}, hub},
		"configure":        {core.Configure{Agent: "shout"}, hub},
		"restart":          {core.Restart{Name: "shout"}, agent},
		"admit":            {core.Admit{Principal: "agent-29d97ee7"}, hub},
		"drain":            {core.Drain{}, hub},
		"forget":           {core.Forget{Hub: "b"}, hub},
		"principals":       {core.List{What: core.ListPrincipals}, hub},
	}
}

// free are the commands that need no right of their own.
var free = "open, follow, subscribe, answer, list of agents, tool of the hub, join"

func TestWhatEachRightLetsAPrincipalDo(t *testing.T) {
	acts := map[core.Act]bool{}
	for _, c := range []struct {
		name    string
		may, to string
		owner   string
		want    string // beside what is free
	}{
		{"nothing", "", "", "zoe", ""},
		{"nothing, on its own task", "", "", "bob", "cancel, inject, read, readers"},
		{"see", "see", "", "zoe", ""},
		{"ask", "ask", "shout", "zoe", "open of an agent"},
		{"ask, of a pack", "ask", "pack:files", "zoe", "tool of a pack"},
		{"read", "read", "shout", "zoe", "read, readers"},
		{"read, of another agent", "read", "whisper", "zoe", ""},
		{"steer", "steer", "*", "zoe", "cancel, inject"},
		{"approve", "approve", "*", "zoe", "decide"},
		{"approve, on its own task", "approve", "*", "bob", "decide, cancel, inject, read, readers"},
		{"provide", "provide", "pack:files", "zoe", "provide"},
		{"provide, of another pack", "provide", "pack:git", "zoe", ""},
		{"provide, of agents", "provide", "*", "zoe", ""},
		{"operate", "operate", "", "zoe", "open for another, watch_all, list of usage, list of audit, configure, restart, admit, drain, forget, principals"},
		{"operate, on an agent", "operate", "shout", "zoe", "configure, restart"},
	} {
		table := &policy.Table{}
		if c.may != "" {
			table = compile(t, rule(1, "bob", c.may, c.to))
		}
		want := map[string]bool{}
		for _, name := range append(strings.Split(free, ", "), strings.Split(c.want, ", ")...) {
			want[name] = true
		}
		for name, call := range calls(c.owner) {
			acts[call.command.Act()] = true
			err := table.Allow(core.Principal{ID: "bob", Authenticated: true}, call.command, call.object)
			if (err == nil) != want[name] {
				t.Errorf("%s: %s: got %v, want allowed %v", c.name, name, err, want[name])
			}
			refused := core.CodeNotAuthorized
			if name == "tool of a pack" && c.may != "see" { // it is hidden
				refused = core.CodeUnsupported
			}
			if err != nil && !errors.Is(err, &core.Fault{Code: refused}) {
				t.Errorf("%s: %s: got %v, want a fault %s", c.name, name, err, refused)
			}
			if err := table.Allow(core.Principal{ID: "root", Operator: true, Authenticated: true}, call.command, call.object); err != nil {
				t.Errorf("%s: %s: an operator got %v, want it allowed", c.name, name, err)
			}
		}
	}
	for _, act := range core.Acts() {
		if !acts[act] {
			t.Errorf("%s: got no call of it in this test, want one", act)
		}
	}
}

func TestNobodyApprovesWhatItsOwnAgentDoes(t *testing.T) {
	table := compile(t, rule(1, "*", "approve", "*"))
	for name, c := range map[string]struct {
		p        core.Principal
		provider string
		want     bool
	}{
		"another":                 {core.Principal{ID: "bob", Authenticated: true}, "robot", true},
		"the principal itself":    {core.Principal{ID: "robot", Authenticated: true}, "robot", false},
		"also as an operator":     {core.Principal{ID: "robot", Authenticated: true, Operator: true}, "robot", false},
		"an operator otherwise":   {core.Principal{ID: "root", Authenticated: true, Operator: true}, "robot", true},
		"where nobody is proved":  {core.Principal{ID: "robot"}, "robot", true},
		"where no agent is known": {core.Principal{ID: "bob", Authenticated: true}, "", true},
	} {
		o := objectOf(c.p.ID, c.provider)
		for kind, a := range map[string]policy.Authorizer{"with rules": table, "without": policy.Default{}} {
			err := a.Allow(c.p, core.Decide{Task: "t"}, o)
			if (err == nil) != c.want || a.May(c.p, core.RightApprove, o) != c.want {
				t.Errorf("%s, %s: got %v, want allowed %v", name, kind, err, c.want)
			}
			if err != nil && !strings.Contains(err.Error(), "somebody else has to decide") {
				t.Errorf("%s, %s: got %q, want it to say who decides", name, kind, err)
			}
		}
	}
}

func TestAPackOfTheSettingsIsProvidedWhateverTheRulesSay(t *testing.T) {
	table := compile(t, rule(1, "deny *", "provide", ""))
	files := core.Principal{ID: "files", Authenticated: true, Credential: &core.Credential{Packs: []string{"files"}}}
	for name, c := range map[string]struct {
		p    core.Principal
		pack string
		want bool
	}{
		"its own":              {files, "files", true},
		"another":              {files, "git", false},
		"by another principal": {core.Principal{ID: "files", Authenticated: true}, "files", false},
	} {
		if err := table.Allow(c.p, core.Provide{Pack: c.pack}, policy.Object{}); (err == nil) != c.want {
			t.Errorf("%s: got %v, want allowed %v", name, err, c.want)
		}
	}
	if table.May(files, core.RightAsk, policy.Object{Target: policy.Target{Pack: "files"}}) {
		t.Error("got that it may call its own tools, want that only a rule gives that")
	}
}

func TestAPrincipalSeesItsOwnAgentsAndPacks(t *testing.T) {
	table := compile(t, rule(1, "deny *", "see", ""))
	for name, c := range map[string]struct {
		id   string
		want bool
	}{"its own": {"robot", true}, "that of another": {"bob", false}, "nobody": {"", false}} {
		o := objectOf("", "robot")
		if c.id == "" {
			o.Provider = core.Principal{}
		}
		if got := table.May(core.Principal{ID: c.id}, core.RightSee, o); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
		if table.May(core.Principal{ID: c.id}, core.RightAsk, o) {
			t.Errorf("%s: got that it may ask it, want that only a rule gives that", name)
		}
	}
}

func TestARefusalNamesTheRightAndNoRule(t *testing.T) {
	table := compile(t, rule(77, "deny bob", "ask", "shout"))
	bob, of := core.Principal{ID: "bob"}, calls("zoe")
	for name, want := range map[string]string{
		"open of an agent": "bob may not ask agent shout: the operator can allow it",
		"tool of a pack":   "tool not found: read_file",
		"provide":          "bob may not provide pack files: the operator can allow it",
		"cancel":           "task t belongs to somebody else",
		"restart":          "restart is for operators",
		"admit":            "who may connect is for operators",
		"principals":       "the list of principals is for operators",
		"watch_all":        "the events of all tasks are for operators: read those of your own tasks",
	} {
		if err := table.Allow(bob, of[name].command, of[name].object); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
	own := calls("bob")
	for name, want := range map[string]string{
		"decide": "bob may not approve tool calls of agent shout: the operator can allow it",
	} {
		if err := table.Allow(bob, own[name].command, own[name].object); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
}

func TestARefusalNamesWhatItIsAbout(t *testing.T) {
	bob := core.Principal{ID: "bob"}
	for want, c := range map[string]struct {
		right core.Right
		to    policy.Target
	}{
		"ask the hub itself":         {core.RightAsk, policy.Target{}},
		"see agent shout":            {core.RightSee, policy.Target{Agent: "shout"}},
		"read tasks of agent x":      {core.RightRead, policy.Target{Agent: "x"}},
		"steer tasks":                {core.RightSteer, policy.Target{}},
		"approve tool calls":         {core.RightApprove, policy.Target{}},
		"answer questions of pack p": {core.RightAnswer, policy.Target{Pack: "p"}},
	} {
		if got := policy.Refusal(bob, c.right, c.to).Error(); !strings.Contains(got, "bob may not "+want+": the operator can allow it") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestTheTableIsReplacedWhileItIsUsed(t *testing.T) {
	current := &policy.Current{}
	ann, bob := core.Principal{ID: "ann"}, core.Principal{ID: "bob"}
	shout := policy.Object{Target: policy.Target{Agent: "shout"}}
	may := func(p core.Principal) bool {
		return current.May(p, core.RightAsk, shout) && current.Allow(p, &core.Open{Request: &core.Request{}}, shout) == nil
	}
	for _, c := range []struct {
		name     string
		table    *policy.Table
		ann, bob bool
	}{
		{"without a table", nil, true, true},
		{"with a table", compile(t, rule(1, "bob", "ask", "*")), false, true},
		{"with another", compile(t), false, false},
		{"without a table again", nil, true, true},
	} {
		current.Replace(c.table)
		if got := current.Table(); got != c.table {
			t.Errorf("%s: got the table %p, want %p", c.name, got, c.table)
		}
		if gotAnn, gotBob := may(ann), may(bob); gotAnn != c.ann || gotBob != c.bob {
			t.Errorf("%s: got ann %v and bob %v, want %v and %v", c.name, gotAnn, gotBob, c.ann, c.bob)
		}
	}
}

func TestTheDoorAllocatesNothingForWhatIsAllowed(t *testing.T) {
	p, o := core.Principal{ID: "bob"}, objectOf("bob", "robot")
	var read core.Command = core.Read{Task: "t"}
	for name, a := range map[string]policy.Authorizer{
		"a table": compile(t, rule(1, "bob", "read approve", "*")), "rules": policy.Default{}, "the current ones": &policy.Current{},
	} {
		if err := a.Allow(p, read, o); err != nil {
			t.Errorf("%s: got %v, want it allowed", name, err)
		}
		if n := testing.AllocsPerRun(100, func() { a.Allow(p, read, o); a.May(p, core.RightApprove, o) }); n != 0 {
			t.Errorf("%s: got %v allocations, want none", name, n)
		}
	}
}

func TestAToolOfAPackThatIsHiddenIsNotFound(t *testing.T) {
	table, err := policy.Compile([]policy.Rule{{Who: []string{"sees"}, May: []core.Right{core.RightSee}, Line: 2}})
	if err != nil {
		t.Fatal(err)
	}
	pack := policy.Object{Target: policy.Target{Pack: "treasury"}}
	for who, want := range map[string]core.Code{"sees": core.CodeNotAuthorized, "other": core.CodeUnsupported} {
		f := core.AsFault(table.Allow(core.Principal{ID: who, Authenticated: true}, core.CallTool{Tool: "pay"}, pack))
		if f == nil || f.Code != want {
			t.Errorf("%s: got %v, want %s", who, f, want)
		} else if named := strings.Contains(f.Message, "treasury"); named != (who == "sees") {
			t.Errorf("%s: got %q, want the pack named only to who may see it", who, f.Message)
		}
	}
}
