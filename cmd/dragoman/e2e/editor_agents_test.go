package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// editorAgent is a published agent that speaks the editor's protocol.
type editorAgent struct {
	// packages are what npm installs, with its arguments.
	packages []string
	version  string
	newNode  bool // it wants a newer Node than the machine may have
	program  string
	args     []string
	env      []string
	files    map[string]string // below HOME; $URL stands for the address of the model
	options  []string
	// tool and input are how the model writes made.txt; $DIR stands for the working directory.
	tool, input string
	custom      bool
	// shows is what the person who approves sees beside the name of the file.
	shows string
}

// madeText is what is in the file that is written.
const madeText = "made by the model"

// publishedEditors are the agents that the hub is tested with. They have no model but a stub.
var publishedEditors = map[string]editorAgent{
	"Claude Code": {
		packages: []string{"@agentclientprotocol/claude-agent-acp@0.101.0"}, version: "0.101.0",
		program: "@agentclientprotocol/claude-agent-acp/dist/index.js",
		env:     []string{"ANTHROPIC_API_KEY=x", "ANTHROPIC_BASE_URL=$URL", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"},
		options: []string{"mode=default"},
		tool:    "Write", input: `{"file_path":"$DIR/made.txt","content":"made by the model\n"}`, shows: madeText,
	},
	"Codex": {
		packages: []string{"@agentclientprotocol/codex-acp@2.6.0"}, version: "2.6.0",
		program: "@agentclientprotocol/codex-acp/dist/index.js",
		env:     []string{"OPENAI_API_KEY=x", "NO_BROWSER=1"},
		files: map[string]string{".codex/config.toml": `model = "gpt-5.5"
model_provider = "stub"
[model_providers.stub]
name = "stub"
base_url = "$URL/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
`},
		options: []string{"mode=read-only"},
		tool:    "apply_patch", input: "*** Begin Patch\n*** Add File: made.txt\n+made by the model\n*** End Patch\n", custom: true, shows: "made.txt",
	},
	"Gemini CLI": {
		packages: []string{"--omit=optional", "--ignore-scripts", geminiCLI}, version: "0.61.0",
		program: "@google/gemini-cli/bundle/gemini.js", args: []string{"--acp"},
		env:     []string{"GEMINI_API_KEY=x", "GOOGLE_GEMINI_BASE_URL=$URL", "GEMINI_CLI_TRUST_WORKSPACE=true"},
		files:   map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false},"general":{"enableAutoUpdate":false}}`},
		options: []string{"mode=default"},
		tool:    "write_file", input: `{"file_path":"made.txt","content":"made by the model\n"}`, shows: "+" + madeText,
	},
	"OpenCode": {
		packages: []string{"opencode-ai@1.18.33"}, version: "1.18.33",
		program: ".bin/opencode", args: []string{"acp"},
		files:   map[string]string{".config/opencode/opencode.json": `{"autoupdate":false,"model":"stub/stub","provider":{"stub":{"npm":"@ai-sdk/openai-compatible","name":"Stub","options":{"baseURL":"$URL/v1","apiKey":"x"},"models":{"stub":{"name":"Stub","tool_call":true}}}},"permission":{"edit":"ask","bash":"ask"}}`},
		options: []string{"mode=build"},
		tool:    "write", input: `{"filePath":"$DIR/made.txt","content":"made by the model\n"}`, shows: madeText,
	},
	"Qwen Code": {
		packages: []string{"--ignore-scripts", "@qwen-code/qwen-code@0.24.4"}, version: "0.24.4", newNode: true,
		program: "@qwen-code/qwen-code/cli-entry.js", args: []string{"--acp"},
		env:     []string{"OPENAI_API_KEY=x", "OPENAI_BASE_URL=$URL/v1", "OPENAI_MODEL=stub"},
		files:   map[string]string{".qwen/settings.json": `{"security":{"auth":{"selectedType":"openai"}},"privacy":{"usageStatisticsEnabled":false}}`},
		options: []string{"mode=default"},
		tool:    "write_file", input: `{"file_path":"$DIR/made.txt","content":"made by the model\n"}`, shows: madeText,
	},
}

// install installs an agent and the stub of its model, and returns how to start it.
func (a editorAgent) install(t *testing.T) (config.Process, *modelStub) {
	t.Helper()
	needs(t, "node", "npm")
	dir, home, work := t.TempDir(), t.TempDir(), t.TempDir()
	installNode(t, dir, a.packages...)
	model := newModelStub(t)
	filled := strings.NewReplacer("$URL", model.URL, "$DIR", work)
	model.tool, model.input, model.custom = a.tool, filled.Replace(a.input), a.custom
	p := config.Process{Command: []string{filepath.Join(dir, "node_modules", a.program)}, Env: []string{"HOME=" + home}, Dir: work}
	if strings.HasSuffix(a.program, ".js") {
		p.Command = append([]string{nodeFor(t, a.newNode)}, p.Command...)
	}
	p.Command = append(p.Command, a.args...)
	for _, v := range a.env {
		p.Env = append(p.Env, filled.Replace(v))
	}
	for name, text := range a.files {
		path := filepath.Join(home, name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil {
			err = os.WriteFile(path, []byte(filled.Replace(text)), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return p, model
}

func TestPublishedEditorAgentsAreAgentsOfTheHub(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the stub is told paths of Unix")
	}
	t.Parallel()
	for name, a := range publishedEditors {
		t.Run(name, func(t *testing.T) {
			process, model := a.install(t)
			h, _, ask := editorHub(t, process, a.options...)
			done := func(thread core.ThreadID, word, text string) *task.Task {
				t.Helper()
				key := h.key()
				asked := ask(thread, "say "+key+" please "+word)
				h.end(t, key)
				if got := asked.Answer(); got.End != core.KindDone || got.Text != text || got.Truncated {
					t.Errorf("%s: got %s with %q (%v), truncated: %t; want %q", word, got.End, got.Text, got.Fault, got.Truncated, text)
				}
				return asked
			}
			if got := done("t", "hello", "HELLO, world!").Answer(); got.Usage.Input == 0 || got.Usage.Output == 0 {
				t.Errorf("got the usage %+v, want what the agent counted", got.Usage)
			}
			done("t", "remember", "You said hello.")
			card, _ := h.service.Hub().Agent(core.Principal{Operator: true}, "ed")
			var info struct{ Version string }
			if err := json.Unmarshal(card.Metadata["agentInfo"], &info); err != nil || info.Version != a.version {
				t.Errorf("got the version %q (%v), want %s", info.Version, err, a.version)
			}
			a.writes(t, h, ask, filepath.Join(process.Dir, "made.txt"), true)
			a.writes(t, h, ask, filepath.Join(process.Dir, "made.txt"), false)

			key := h.key()
			waiting := ask("", "say "+key+" please wait")
			h.await(t, key+" text")
			<-model.reached
			h.run(t, "cancel", string(waiting.ID()))
			h.end(t, key)
			if got := waiting.Answer(); got.End != core.KindCancelled || got.Text != "so far" {
				t.Errorf("got %s with %q (%v), want it cancelled", got.End, got.Text, got.Fault)
			}
			a.restarts(t, process)
			a.joins(t, h, process)
		})
	}
}

// writes has the agent write a file, which somebody allows or denies over REST.
func (a editorAgent) writes(t *testing.T, h *testHub, ask func(core.ThreadID, string) *task.Task, path string, allowed bool) {
	t.Helper()
	_ = os.Remove(path)
	key := h.key()
	asked := ask("", "say "+key+" please write")
	held := h.await(t, key+" approval_requested").(core.Event).Body.(core.ApprovalRequested)
	if !strings.Contains(held.Input, "made.txt") && !strings.Contains(held.Name, "made.txt") || !strings.Contains(held.Input, a.shows) {
		t.Errorf("got the approval %+v, want it to show the file and %q", held, a.shows)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the file is there before anybody has decided")
	}
	args := []string{map[bool]string{true: "approve", false: "deny"}[allowed], string(asked.ID())}
	if code, out, stderr := h.run(t, args...); code != 0 {
		t.Fatalf("%v: got %d, %s%s", args, code, out, stderr)
	}
	h.end(t, key)
	made, err := os.ReadFile(path)
	if allowed != (strings.TrimSpace(string(made)) == madeText) {
		t.Errorf("allowed: %t: got the file %q (%v)", allowed, made, err)
	}
	var calls []core.ToolCall
	var result *core.ToolResult
	for _, e := range asked.Events() {
		switch b := e.Body.(type) {
		case core.ToolCall:
			calls = append(calls, b)
		case core.ToolResult:
			result = &b
		}
	}
	if len(calls) != 1 || !strings.Contains(calls[0].Input+calls[0].Name, "made.txt") {
		t.Errorf("got the calls %+v, want one with its input", calls)
	}
	if open := task.Closing(eventsOf(asked), core.Done{}); len(open) > 0 {
		t.Errorf("got the open calls %+v, want none", open)
	}
	if allowed && (result == nil || result.IsError) {
		t.Errorf("got the result %+v, want one that is no error", result)
	}
	if answer := asked.Answer(); allowed && (answer.End != core.KindDone || answer.Text != "It is done.") {
		t.Errorf("got %s with %q (%v), want it done", answer.End, answer.Text, answer.Fault)
	}
}

func eventsOf(of *task.Task) func(func(core.Event) bool) {
	return func(yield func(core.Event) bool) {
		for _, e := range of.Events() {
			if !yield(e) {
				return
			}
		}
	}
}

// restarts asks in a thread before and after a restart of the hub.
func (a editorAgent) restarts(t *testing.T, p config.Process) {
	t.Helper()
	settings, err := json.Marshal(map[string]any{"agents": []any{map[string]any{
		"name": "ed", "dialect": config.SpeaksEditor, "command": p.Command, "cwd": p.Dir, "env": p.Env, "options": a.options,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	data, file := t.TempDir(), filepath.Join(t.TempDir(), "dragoman.yaml") // JSON is YAML
	if err := os.WriteFile(file, settings, 0o600); err != nil {
		t.Fatal(err)
	}
	for life, c := range []struct{ word, want string }{{"hello", "HELLO, world!"}, {"remember", "You said hello."}} {
		h := startHub(t, "--data-dir", data, "--config", file)
		out, err := program(t, "ask", "ed", "please "+c.word, "--thread", "talk", "--hub", "http://"+h.http).Output()
		if err != nil || strings.TrimSpace(string(out)) != c.want {
			t.Errorf("life %d: got %q (%v), want %q", life, out, err, c.want)
		}
		if err := h.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		h.waitLog(t, "the hub has stopped")
	}
}

// joins has the agent join the hub by dragoman agent, as another one.
func (a editorAgent) joins(t *testing.T, h *testHub, p config.Process) {
	t.Helper()
	args := []string{"agent", "--speaks", config.SpeaksEditor, "--name", "far", "--hub", h.url()}
	for _, v := range p.Env {
		args = append(args, "--env", v)
	}
	for _, o := range a.options {
		args = append(args, "--option", o)
	}
	cmd := program(t, append(append(args, "--"), p.Command...)...)
	cmd.Dir, cmd.Stderr = p.Dir, t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	}()
	h.await(t, "joined far")
	code, out, stderr := h.run(t, "ask", "far", "please hello")
	if code != 0 || strings.TrimSpace(out) != "HELLO, world!" {
		t.Errorf("by dragoman agent: got %d, %q and %s, want the answer", code, out, fmt.Sprint(stderr))
	}
}
