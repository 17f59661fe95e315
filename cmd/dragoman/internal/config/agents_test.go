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
  - {name: gemini, dialect: editor, command: [gemini, --acp], env: [GEMINI_API_KEY], cwd: ., capabilities: [code], max_concurrent: 4, mode: default, model: a b, options: {effort: high, web: true, turns: 3}}
  - {name: pi, dialect: pi-rpc, command: [pi, --mode, rpc, --no-session], warm: 1}
  - {name: shout, dialect: text, command: [tr, a-z, A-Z], fallback: [pi, far]}
  - {name: far, dialect: a2a, url: "https://example.com/agents/far", token_file: far.token}
  - {name: usual, command: [cat]}
  - {name: there, url: "https://example.com/agents/there"}
packs:
  - {name: files, command: [npx, -y, "@modelcontextprotocol/server-filesystem", .], timeout: 90s, result_bytes: 1MiB}
  - {name: search, url: "https://example.com/mcp", token_file: search.token}
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantAgents := config.Agents{
		{Name: "gemini", Dialect: "editor", Process: config.Process{Command: []string{"gemini", "--acp"}, Env: []string{"GEMINI_API_KEY"}, Dir: "."}, Capabilities: []string{"code"}, MaxConcurrent: 4, Model: "a b", Mode: "default", Options: config.Options{"effort": "high", "web": "true", "turns": "3"}},
		{Name: "pi", Dialect: "pi-rpc", Process: config.Process{Command: []string{"pi", "--mode", "rpc", "--no-session"}}, Warm: 1},
		{Name: "shout", Dialect: "text", Process: config.Process{Command: []string{"tr", "a-z", "A-Z"}}, Fallback: []string{"pi", "far"}},
		{Name: "far", Dialect: "a2a", Remote: config.Remote{URL: "https://example.com/agents/far", TokenFile: "far.token"}},
		{Name: "usual", Dialect: "text", Process: config.Process{Command: []string{"cat"}}},
		{Name: "there", Dialect: "a2a", Remote: config.Remote{URL: "https://example.com/agents/there"}},
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
		`agents: some`: `agents: want a list of objects, got "some"`,
		`agents: {gemini: {dialect: editor, command: [gemini]}}`:                                   "agents: want a list of objects, got an object: write - name: gemini instead of gemini:, and its members below name",
		`agents: {a: {dialect: editor}, b: {dialect: editor}}`:                                     "agents: want a list of objects, got an object: write - name: NAME instead of NAME:",
		`agents: {name: a, dialect: text, command: [a]}`:                                           "agents: want a list of objects, got an object: put a dash before each entry, such as - name: ...",
		`packs: {files: {command: [npx]}}`:                                                         "packs: want a list of objects, got an object: write - name: files",
		`agents: [a]`:                                                                              `agents[0]: want an object such as {name: ...}, got "a"`,
		`agents: [{dialect: text, command: [a]}]`:                                                  "agents[0].name: missing",
		`agents: [{name: a}]`:                                                                      "agents[0].command: missing",
		`agents: [{name: a, dialect: acp, command: [a], options: {effort: x}}]`:                    `agents[0].dialect: want text, editor, pi-rpc, native or a2a, got "acp": the Agent Client Protocol of editors is called editor here`,
		`agents: [{name: a, dialect: editro, command: [a]}]`:                                       `agents[0].dialect: want text, editor, pi-rpc, native or a2a, got "editro": did you mean editor?`,
		`agents: [{name: a, dialect: coven, command: [a]}]`:                                        `agents[0].dialect: want text, editor, pi-rpc, native or a2a, got "coven"`,
		`agents: [{name: a, dialect: text}]`:                                                       "agents[0].command: missing",
		`agents: [{name: a, dialect: text, comand: [a]}]`:                                          "agents[0].comand: unknown: did you mean command?",
		`agents: [{name: a, dialect: text, command: "tr a-z A-Z"}]`:                                `agents[0].command: want a list of texts, got "tr a-z A-Z": write [tr, a-z, A-Z]`,
		`agents: [{name: a, dialect: text, command: [sleep, 5]}]`:                                  "agents[0].command[1]: want text, got 5: put it in quotes",
		`agents: [{name: a, dialect: text, command: [a], fallback: [b, a]}]`:                       "agents[0].fallback: address \"a,b,a\" names a twice: each agent is asked once",
		`agents: [{name: a, dialect: text, command: [a], options: {effort: x}}]`:                   "agents[0].options: only editor agents have it: leave it out",
		`agents: [{name: a, dialect: editor, command: [a], options: [effort=high]}]`:               `agents[0].options: want names and values such as {effort: high, web: true}, got a list`,
		`agents: [{name: a, dialect: editor, command: [a], options: {effort: [high]}}]`:            `agents[0].options.effort: want a text, a number, true or false, got a list`,
		`agents: [{name: a, dialect: editor, command: [a], options: {mode: plan}}]`:                `agents[0].options: write mode: plan beside options, not in them`,
		`agents: [{name: a, command: [a], mode: plan}]`:                                            `agents[0].mode: only editor agents have it: leave it out`,
		`agents: [{name: a, dialect: a2a}]`:                                                        "agents[0].url: want an http or https address",
		`agents: [{name: a, dialect: a2a, url: "127.0.0.1:80/x"}]`:                                 `agents[0].url: want an http or https address, got "127.0.0.1:80/x": write it with http:// or https:// before it`,
		`agents: [{name: a, dialect: a2a, url: "ftp://x"}]`:                                        "agents[0].url: want an http or https address",
		`agents: [{name: a, dialect: a2a, url: "http://u:p@x"}]`:                                   "use token_file",
		`agents: [{name: a, dialect: a2a, url: "http://x", cwd: /}]`:                               "agents[0].cwd: an a2a agent is reached at its url: leave it out",
		`agents: [{name: a, dialect: text, command: [a], url: "http://x"}]`:                        "agents[0].url: a text agent is a command: leave it out",
		`agents: [{name: a, dialect: text, command: [a], warm: 1}]`:                                "agents[0].warm: only pi-rpc agents have it",
		`agents: [{name: "*", dialect: text, command: [a]}]`:                                       "agents[0].name: ",
		`agents: [{name: a, dialect: text, command: [a], env: [A=1, "=x"]}]`:                       `agents[0].env[1]: want NAME or NAME=value, got "=x"`,
		`agents: [{name: a, dialect: text, command: [a], env: "HOST, PORT"}]`:                      `agents[0].env: want a list of texts, got "HOST, PORT": write [HOST, PORT]`,
		`agents: [{name: a, dialect: text, command: [a]}, {name: a, dialect: text, command: [b]}]`: `agents[1].name: "a" is the name of agents[0] too: choose another`,
		`packs: [{command: [a]}]`:                                                                  "packs[0].name: missing",
		`packs: [{name: "a.b", command: [a]}]`:                                                     `packs[0].name: want 1 to 64 letters, digits, - and _, got "a.b"`,
		`packs: [{name: a}]`:                                                                       "packs[0].command: missing",
		`packs: [{name: a, command: [a], url: "http://x"}]`:                                        "packs[0].url: a pack is a command or a url, not both",
		`packs: [{name: a, command: [a], timeout: soon}]`:                                          `packs[0].timeout: want a time such as 30s, 1h30m, 7d or 2w, got "soon"`,
		`packs: [{name: a, command: [a], timeout: 90}]`:                                            "packs[0].timeout: want a time such as 30s, 1h30m, 7d or 2w, got 90: write it with its unit, such as 90s",
		`packs: [{name: a, command: [a], timeout: 6m}]`:                                            "packs[0].timeout: a call takes at most max_time, 5m",
		`packs: [{name: a, command: [a], max_time: 10m}]`:                                          "packs[0].max_time: it is over limits.max_tool_timeout, 5m: write less, or raise that limit",
		`packs: [{name: a, command: [a], result_bytes: many}]`:                                     "packs[0].result_bytes: want a size such as 1GiB, 512MiB, 10MB or 64k of at least 1 and at most 8MiB",
		`packs: [{name: a, command: [a], result_bytes: 9MiB}]`:                                     `packs[0].result_bytes: want a size such as 1GiB, 512MiB, 10MB or 64k of at least 1 and at most 8MiB, got "9MiB"`,
		`packs: [{name: a, command: [a], concurrent: -1}]`:                                         "packs[0].concurrent: want a whole number of at least 0, got -1",
	} {
		if _, err := configOf(t, file, nil); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want one error with %q", file, err, want)
		}
	}
}
