package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

func TestAgentsAndPacksAreReadFromTheFile(t *testing.T) {
	c, err := configOf(t, `
agents:
  - {name: gemini, dialect: editor, command: [gemini, --acp], env: [GEMINI_API_KEY], cwd: ., capabilities: [code], max_concurrent: 4}
  - {name: pi, dialect: pi-rpc, command: [pi, --mode, rpc, --no-session], warm: 1}
  - {name: shout, dialect: text, command: [tr, a-z, A-Z]}
  - {name: far, dialect: a2a, url: "https://example.com/agents/far", token_file: far.token}
packs:
  - {name: files, command: [npx, -y, "@modelcontextprotocol/server-filesystem", .], timeout: 90s, result_bytes: 1MiB}
  - {name: search, url: "https://example.com/mcp", token_file: search.token}
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantAgents := config.Agents{
		{Name: "gemini", Dialect: "editor", Process: config.Process{Command: []string{"gemini", "--acp"}, Env: []string{"GEMINI_API_KEY"}, Dir: "."}, Capabilities: []string{"code"}, MaxConcurrent: 4},
		{Name: "pi", Dialect: "pi-rpc", Process: config.Process{Command: []string{"pi", "--mode", "rpc", "--no-session"}}, Warm: 1},
		{Name: "shout", Dialect: "text", Process: config.Process{Command: []string{"tr", "a-z", "A-Z"}}},
		{Name: "far", Dialect: "a2a", Remote: config.Remote{URL: "https://example.com/agents/far", TokenFile: "far.token"}},
	}
	wantPacks := config.Packs{
		{Name: "files", Process: config.Process{Command: []string{"npx", "-y", "@modelcontextprotocol/server-filesystem", "."}}, Timeout: config.Time(90 * time.Second), ResultBytes: 1 << 20},
		{Name: "search", Remote: config.Remote{URL: "https://example.com/mcp", TokenFile: "search.token"}},
	}
	if d := cmp.Diff(wantAgents, c.Agents) + cmp.Diff(wantPacks, c.Packs); d != "" {
		t.Errorf("settings (-want +got)\n%s", d)
	}
}

func TestAWrongAgentOrPackIsRefusedWithWhatToChange(t *testing.T) {
	for file, want := range map[string]string{
		`agents: some`: "want a list",
		`agents: [{dialect: text, command: [a]}]`:                                                  "entry 1: name: missing",
		`agents: [{name: a, command: [a]}]`:                                                        "a: dialect: missing",
		`agents: [{name: a, dialect: editro, command: [a]}]`:                                       "did you mean editor?",
		`agents: [{name: a, dialect: coven, command: [a]}]`:                                        "use text, editor, pi-rpc, native, a2a",
		`agents: [{name: a, dialect: text}]`:                                                       "a: command: missing",
		`agents: [{name: a, dialect: text, comand: [a]}]`:                                          "comand",
		`agents: [{name: a, dialect: a2a}]`:                                                        "a: url: want an http or https address",
		`agents: [{name: a, dialect: a2a, url: "ftp://x"}]`:                                        "a: url: want an http or https address",
		`agents: [{name: a, dialect: a2a, url: "http://u:p@x"}]`:                                   "use token_file",
		`agents: [{name: a, dialect: text, command: [a], warm: 1}]`:                                "a: warm: only pi-rpc agents have it",
		`agents: [{name: "*", dialect: text, command: [a]}]`:                                       "*",
		`agents: [{name: a, dialect: text, command: [a]}, {name: a, dialect: text, command: [b]}]`: "a: the name is used twice",
		`agents: [{name: a, dialect: text, command: [a], env: ["=x"]}]`:                            "write NAME or NAME=value",
		`packs: [{command: [a]}]`:                                                                  "entry 1: name: missing",
		`packs: [{name: "a.b", command: [a]}]`:                                                     "want 1 to 64 letters",
		`packs: [{name: a}]`:                                                                       "a: command: missing",
		`packs: [{name: a, command: [a], url: "http://x"}]`:                                        "not both",
		`packs: [{name: a, command: [a], timeout: soon}]`:                                          "want a time such as 30s",
		`packs: [{name: a, command: [a], result_bytes: many}]`:                                     "want a number of bytes",
	} {
		if _, err := configOf(t, file, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", file, err, want)
		}
	}
}
