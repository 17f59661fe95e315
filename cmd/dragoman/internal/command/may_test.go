package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

// rulesConfig writes settings with rules, tokens and an agent, and returns the flag that names
// them.
func rulesConfig(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	hash := strings.Repeat("0a", 31)
	for name, text := range map[string]string{
		"rules.yaml": `rules:
  - {who: alice, may: [see, ask], to: "shout"}
  - {who: "role:duty", may: [see, approve], to: "capability:production"}
  - {who: alice, may: ask, to: "shout"}
  - {who: dave, may: operate}
`,
		"tokens.yaml": "tokens:\n- {principal: alice, sha256: " + hash + "01}\n- {principal: root, sha256: " + hash + "02, operator: true}\n" +
			"- {principal: carol, sha256: " + hash + "03, roles: [duty]}\n- {principal: carol, sha256: " + hash + "04}\n",
		"dragoman.yaml": "auth: {tokens: " + filepath.Join(dir, "tokens.yaml") + ", rules: " + filepath.Join(dir, "rules.yaml") + "}\n" +
			"agents:\n- {name: builder, dialect: editor, command: [\"true\"], capabilities: [production]}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return "--config=" + filepath.Join(dir, "dragoman.yaml")
}

func TestCheckSaysWhoMayDoWhatAndByWhichLine(t *testing.T) {
	settings := rulesConfig(t)
	for question, want := range map[string]struct {
		code int
		says string
	}{
		"alice ask shout":     {command.ExitDone, `yes, by line 2: {who: alice, may: [see, ask], to: shout}`},
		"alice ask whisper":   {command.ExitFailed, "no: no rule matches, which refuses"},
		"bob ask shout":       {command.ExitFailed, "no: no rule matches, which refuses"},
		"root steer anything": {command.ExitDone, "yes: an operator passes every rule"},
		"dave operate":        {command.ExitDone, "yes, by line 5: {who: dave, may: operate}"},
		"dave operate hub":    {command.ExitDone, "yes, by line 5: {who: dave, may: operate}"},
		"carol approve builder": {
			command.ExitFailed, "with token 3: yes, by line 3: {who: role:duty, may: [see, approve], to: capability:production}\nwith token 4: no: no rule matches, which refuses",
		},
		"--role=duty bob approve builder":                           {command.ExitDone, "yes, by line 3"},
		"--role=duty bob approve other":                             {command.ExitFailed, "no: no rule matches"},
		"--role=duty --capability=production bob approve other":     {command.ExitDone, "yes, by line 3"},
		"--role=duty bob approve capability:production":             {command.ExitDone, "yes, by line 3"},
		"--capability=production --role=duty --json bob approve oo": {command.ExitDone, `"line": 3`},
		"alice aks shout": {command.ExitUsage, `unknown right "aks": did you mean ask?`},
		"alice ask":       {command.ExitFailed, "no: no rule matches"},
		"alice":           {command.ExitUsage, "--may wants a principal, a right and a receiver"},
		"--capability=x alice provide pack:files": {command.ExitUsage, "--capability and --domain are for agents"},
		"alice ask pack:":                         {command.ExitUsage, "write pack:ID"},
	} {
		code, out, stderr := run(t, append([]string{"check", settings, "--may"}, strings.Fields(question)...)...)
		if code != want.code || !strings.Contains(out+stderr, want.says) {
			t.Errorf("%s: got %d, %s and %s, want %d and %q", question, code, out, stderr, want.code, want.says)
		}
	}
	if code, _, stderr := run(t, "check", settings, "--role=duty"); code != command.ExitUsage || !strings.Contains(stderr, "--role has no effect without --may") {
		t.Errorf("--role alone: got %d and %s, want that it needs --may", code, stderr)
	}
	if code, _, stderr := run(t, "check", settings); code != command.ExitDone || !strings.Contains(stderr, "line 4 never decides: line 2 matches all of it first") {
		t.Errorf("a shadowed rule: got %d and %s, want a warning", code, stderr)
	}
}

func TestCheckAsksARunningHubWhatAnAgentHasDeclared(t *testing.T) {
	hub := fakeHub(t, map[string]string{
		"GET /v1/agents/loud": `{"id":"loud","principal":{"id":"carol","authenticated":true},"capabilities":["production"],"features":[],"max_concurrent":1,"load":{"state":"idle"}}`,
	})
	settings := rulesConfig(t)
	for question, want := range map[string]struct {
		code int
		says string
	}{
		"--role=duty bob approve loud":   {command.ExitDone, "yes, by line 3"},
		"--role=duty carol approve loud": {command.ExitFailed, "no: nobody approves what an agent of its own does"},
		"carol see loud":                 {command.ExitDone, "yes"},
	} {
		code, out, stderr := run(t, append([]string{"check", settings, hub, "--may"}, strings.Fields(question)...)...)
		if code != want.code || !strings.Contains(out, want.says) {
			t.Errorf("%s: got %d, %s and %s, want %d and %q", question, code, out, stderr, want.code, want.says)
		}
	}
}

func TestCheckWithoutRulesSaysWhatHoldsThen(t *testing.T) {
	for question, want := range map[string]struct {
		code int
		says string
	}{
		"alice ask shout":  {command.ExitDone, "yes: there are no rules"},
		"alice read shout": {command.ExitFailed, "no: without rules (auth.rules), only who asked for a task and operators may"},
		"alice operate":    {command.ExitFailed, "no: without rules (auth.rules), only operators may"},
	} {
		code, out, stderr := run(t, append([]string{"check", "--may"}, strings.Fields(question)...)...)
		if code != want.code || !strings.Contains(out, want.says) {
			t.Errorf("%s: got %d, %s and %s, want %d and %q", question, code, out, stderr, want.code, want.says)
		}
	}
	code, out, _ := run(t, "check", "--may", "--json", "alice", "ask", "shout")
	var answer struct {
		Allowed bool
		Answers []struct{ Answer string }
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil || code != command.ExitDone || !answer.Allowed || len(answer.Answers) != 1 {
		t.Errorf("got %d and %s (%v), want an object with the answer", code, out, err)
	}
}

func TestCheckAnswersNothingThatItCannotKnow(t *testing.T) {
	dir := t.TempDir()
	settings, tokens := filepath.Join(dir, "dragoman.yaml"), filepath.Join(dir, "tokens.yaml")
	if err := os.WriteFile(tokens, []byte("tokens: [{principal: root, sha256: "+strings.Repeat("0a", 32)+", operator: true}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"auth: {tokens: " + dir + "/none.yaml}":                            "none.yaml",
		"auth: {tokens: " + tokens + ", rules: " + dir + "/no-rules.yaml}": "no-rules.yaml",
	} {
		if err := os.WriteFile(settings, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, out, stderr := run(t, "check", "--config", settings, "--may", "alice", "ask", "shout"); code != command.ExitUsage || out != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: got %d, %q and %q, want %d and %q", text, code, out, stderr, command.ExitUsage, want)
		}
	}
	hub := fakeHub(t, nil)
	if code, out, stderr := run(t, "check", rulesConfig(t), hub, "--may", "alice", "ask", "loud"); code != command.ExitFailed || out != "" || !strings.Contains(stderr, "is not a hub") {
		t.Errorf("no hub: got %d, %q and %q, want %d and that there is no hub", code, out, stderr, command.ExitFailed)
	}
	if err := os.WriteFile(settings, []byte("auth: {tokens: "+tokens+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, stderr := run(t, "check", "--config", settings, "--may", "root", "operate"); code != command.ExitDone || !strings.Contains(out, "yes: an operator may, and there are no rules (auth.rules)") {
		t.Errorf("an operator: got %d, %q and %q, want yes", code, out, stderr)
	}
}
