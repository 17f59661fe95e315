package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/preset"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/task"
)

// publishedAgent is what a test needs to run one of the agents that 'dragoman add' knows, without its model.
type publishedAgent struct {
	npm   []string          // flags of its installation
	keys  []string          // variables that it is added with
	env   []string          // and others
	files map[string]string // below HOME; $URL stands for the address of the model
	// write is how the model writes made.txt, for those that ask before; $DIR stands for the working directory.
	write toolUse
	// shows is what the person who approves sees beside the name of the file.
	shows string
	// steers says that it takes context while it works.
	steers bool
	// ask is how the model asks people whether it is to be ochre or mauve, with these options of the agent; field is
	// that of the answer, where the question is a form. silent says why an agent has no such question.
	ask     toolUse
	options core.Options
	field   string
	silent  string
}

// madeText is what is in the file that is written.
const madeText = "made by the model"

// colours is a question, as the tools of agents have it.
const colours = `"header":"Colour","question":"Which colour?","options":[{"label":"ochre","description":"a warm one"},{"label":"mauve","description":"a cold one"}]`

// publishedAgents are the agents of [preset.Agents] that npm has, by their names. They have no model but a stub.
var publishedAgents = map[string]publishedAgent{
	"claude": {
		keys:  []string{"ANTHROPIC_API_KEY=x", "ANTHROPIC_BASE_URL=$URL"},
		env:   []string{"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"},
		write: toolUse{name: "Write", input: `{"file_path":"$DIR/made.txt","content":"made by the model\n"}`}, shows: madeText,
		ask:   toolUse{name: "AskUserQuestion", input: `{"questions":[{"multiSelect":false,` + colours + `}]}`},
		field: "question_0", steers: true,
	},
	"codex": {
		keys: []string{"OPENAI_API_KEY=x"},
		files: map[string]string{".codex/config.toml": `model = "gpt-5.5"
model_provider = "stub"
[model_providers.stub]
name = "stub"
base_url = "$URL/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
`},
		write: toolUse{name: "apply_patch", input: "*** Begin Patch\n*** Add File: made.txt\n+made by the model\n*** End Patch\n", custom: true}, shows: "made.txt",
		ask:     toolUse{name: "request_user_input", input: `{"questions":[{"id":"colour",` + colours + `}]}`},
		options: core.Options{"collaboration_mode": "plan"}, field: "colour", steers: true,
	},
	"gemini": {
		npm:   []string{"--omit=optional", "--ignore-scripts"},
		keys:  []string{"GEMINI_API_KEY=x", "GOOGLE_GEMINI_BASE_URL=$URL"},
		files: map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false},"general":{"enableAutoUpdate":false}}`},
		write: toolUse{name: "write_file", input: `{"file_path":"made.txt","content":"made by the model\n"}`}, shows: "+" + madeText,
		silent: "it offers the model no such tool",
	},
	"opencode": {
		files: map[string]string{".config/opencode/opencode.json": `{"autoupdate":false,"model":"stub/stub","provider":{"stub":{"npm":"@ai-sdk/openai-compatible","name":"Stub","options":{"baseURL":"$URL/v1","apiKey":"x"},"models":{"stub":{"name":"Stub","tool_call":true}}}},"permission":{"edit":"ask","bash":"ask"}}`},
		write: toolUse{name: "write", input: `{"filePath":"$DIR/made.txt","content":"made by the model\n"}`}, shows: madeText,
		silent: "it offers the model no such tool over this protocol",
	},
	"pi": {
		npm: []string{"--ignore-scripts"},
		env: []string{"PI_OFFLINE=1", "PI_SKIP_VERSION_CHECK=1"},
		files: map[string]string{
			".pi/agent/models.json":   `{"providers":{"stub":{"baseUrl":"$URL/v1","api":"openai-completions","apiKey":"x","models":[{"id":"m1"}]}}}`,
			".pi/agent/settings.json": `{"defaultProvider":"stub","defaultModel":"m1"}`,
		},
		silent: "its extensions ask, not its model",
	},
	"qwen": {
		npm:   []string{"--ignore-scripts"},
		keys:  []string{"OPENAI_API_KEY=x", "OPENAI_BASE_URL=$URL/v1", "OPENAI_MODEL=stub"},
		files: map[string]string{".qwen/settings.json": `{"security":{"auth":{"selectedType":"openai"}},"privacy":{"usageStatisticsEnabled":false}}`},
		write: toolUse{name: "write_file", input: `{"file_path":"$DIR/made.txt","content":"made by the model\n"}`}, shows: madeText,
		ask: toolUse{name: "ask_user_question", input: `{"questions":[{` + colours + `}]}`},
	},
}

// knownAgent returns an agent that 'dragoman add' knows.
func knownAgent(t *testing.T, name string) preset.Agent {
	t.Helper()
	known, is := preset.Named(name)
	if !is {
		t.Fatalf("got no agent %s, want one", name)
	}
	return known
}

// prepare installs an agent and the stub of its model, and returns the variables of a user who has it, and those of
// its keys. work is where it writes.
func (a publishedAgent) prepare(t *testing.T, known preset.Agent, work string) (env, keys []string, model *modelStub) {
	t.Helper()
	needs(t, "node", "npm")
	dir, home := t.TempDir(), t.TempDir()
	installNode(t, dir, append(a.npm[:len(a.npm):len(a.npm)], known.Package)...)
	model = newModelStub(t)
	filled := strings.NewReplacer("$URL", model.URL, "$DIR", work)
	model.tools = map[string]toolUse{"write": a.write, "ask": a.ask}
	for word, use := range model.tools {
		use.input = filled.Replace(use.input)
		model.tools[word] = use
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
	bin := filepath.Join(dir, "node_modules", ".bin")
	if node := nodeFor(t, strings.HasPrefix(known.Node, "22")); node != "node" {
		bin += string(filepath.ListSeparator) + filepath.Dir(node)
	}
	for _, v := range a.keys {
		keys = append(keys, filled.Replace(v))
	}
	return []string{"HOME=" + home, "PATH=" + bin + string(filepath.ListSeparator) + os.Getenv("PATH")}, keys, model
}

// install prepares an agent, and returns it as 'dragoman add' writes it.
func (a publishedAgent) install(t *testing.T, known preset.Agent) (config.Agent, *modelStub) {
	t.Helper()
	work := t.TempDir()
	env, keys, model := a.prepare(t, known, work)
	e := addKnown(t, known.Name, work, append(env, keys...))
	for _, v := range keys { // the hub of a test has none of its own
		key, _, _ := strings.Cut(v, "=")
		i := slices.Index(e.Env, key)
		if i < 0 {
			t.Fatalf("got the variables %q, want %s passed on", e.Env, key)
		}
		e.Env[i] = v
	}
	e.Env, e.Dir = append(append(e.Env, env...), a.env...), work
	return e, model
}

// addKnown adds an agent in a directory, and returns what the settings have then.
func addKnown(t *testing.T, name, dir string, env []string) config.Agent {
	t.Helper()
	add := program(t, "add", name)
	add.Dir, add.Env = dir, append(add.Env, env...)
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("dragoman add %s: got %v and %s, want it done", name, err, out)
	}
	settings, err := config.Load(pflag.NewFlagSet("", pflag.ContinueOnError), []string{"DRAGOMAN_CONFIG=" + filepath.Join(dir, config.FileName)})
	if err != nil || len(settings.Agents) != 1 {
		t.Fatalf("got the agents %s and %v, want one", settings.Agents, err)
	}
	return settings.Agents[0]
}

func TestPublishedAgentsAreAgentsOfTheHub(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the stub is told paths of Unix")
	}
	t.Parallel()
	for _, known := range preset.Agents {
		a, has := publishedAgents[known.Name]
		if !has {
			if known.Package != "" {
				t.Errorf("%s: got no test, want one of every agent that npm has", known.Name)
			}
			continue
		}
		t.Run(known.Title, func(t *testing.T) {
			e, model := a.install(t, known)
			h, _, ask := hubOf(t, e)
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
			card, _ := h.service.Hub().Agent(core.Principal{Operator: true}, core.AgentID(e.Name))
			var info struct{ Version string }
			if told := card.Metadata["agentInfo"]; told != nil { // pi says nothing of itself
				if err := json.Unmarshal(told, &info); err != nil || info.Version != known.Version() {
					t.Errorf("got the version %q (%v), want %s", info.Version, err, known.Version())
				}
			}
			if e.Mode != "" {
				a.isSet(t, h, e, card.Metadata["modes"])
			}
			if a.steers {
				steers(t, h, ask, model)
			}
			if a.write.name != "" {
				a.writes(t, h, ask, filepath.Join(e.Dir, "made.txt"), true)
				a.writes(t, h, ask, filepath.Join(e.Dir, "made.txt"), false)
			}

			key := h.key()
			waiting := ask("", "say "+key+" please wait")
			h.await(t, key+" text")
			<-model.reached
			h.run(t, "cancel", string(waiting.ID()))
			h.end(t, key)
			if got := waiting.Answer(); got.End != core.KindCancelled || got.Text != "so far" {
				t.Errorf("got %s with %q (%v), want it cancelled", got.End, got.Text, got.Fault)
			}
			if (a.ask.name == "") != (a.silent != "") {
				t.Errorf("got the question %+v and %q, want either, or the reason why it has none", a.ask, a.silent)
			}
			if a.ask.name != "" {
				a.asks(t, e)
			}
			restarts(t, e)
			joins(t, h, e)
		})
	}
}

// isSet looks at the modes in the card, and sets another one for a question.
func (a publishedAgent) isSet(t *testing.T, h *testHub, e config.Agent, told json.RawMessage) {
	t.Helper()
	var modes struct {
		CurrentModeID  string
		AvailableModes []struct{ ID string }
	}
	if err := json.Unmarshal(told, &modes); err != nil || modes.CurrentModeID != e.Mode || len(modes.AvailableModes) < 2 {
		t.Fatalf("got the modes %s (%v) in the card, want %s of several", told, err, e.Mode)
	}
	for _, mode := range modes.AvailableModes {
		if mode.ID == e.Mode {
			continue
		}
		code, out, stderr := h.run(t, "ask", e.Name, "please hello", "--option", "mode="+mode.ID)
		if code != 0 || strings.TrimSpace(out) != "HELLO, world!" {
			t.Errorf("mode %s: got %d, %q and %s, want the answer", mode.ID, code, out, stderr)
		}
		break
	}
	code, _, stderr := h.run(t, "ask", e.Name, "please hello", "--option", "no-such=x")
	if code == 0 || !strings.Contains(stderr, `the agent has no option "no-such": it has `) {
		t.Errorf("an option that it does not have: got %d and %s", code, stderr)
	}
}

// steers gives the agent context while its model hangs.
func steers(t *testing.T, h *testHub, ask func(core.ThreadID, string) *task.Task, model *modelStub) {
	t.Helper()
	key := h.key()
	asked := ask("", "say "+key+" please wait")
	h.await(t, key+" text")
	<-model.reached
	if code, out, stderr := h.run(t, "inject", string(asked.ID()), "please hello"); code != 0 {
		t.Errorf("inject: got %d, %s and %s, want it taken", code, out, stderr)
	}
	h.end(t, key)
	if got := asked.Answer(); got.End != core.KindDone || !strings.HasSuffix(got.Text, "HELLO, world!") {
		t.Errorf("got %s with %q (%v), want the answer to the context", got.End, got.Text, got.Fault)
	}
}

// writes has the agent write a file, which somebody allows or denies over REST.
func (a publishedAgent) writes(t *testing.T, h *testHub, ask func(core.ThreadID, string) *task.Task, path string, allowed bool) {
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

// asks has the agent ask people something, which somebody answers at a terminal.
func (a publishedAgent) asks(t *testing.T, e config.Agent) {
	t.Helper()
	if a.options != nil {
		e.Options = config.Options(a.options)
	}
	h, user, ask := hubOf(t, e)
	if err := user.WatchQuestions(question.View{Agent: core.AgentID(e.Name), For: core.Principal{ID: "user", Operator: true}}); err != nil {
		t.Fatal(err)
	}
	key := h.key()
	asked := ask("", "say "+key+" please ask")
	q := h.await(t, key+" question_asked").(core.Event).Body.(core.QuestionAsked)
	_, shown, _ := h.run(t, "questions", q.ID)
	for _, want := range []string{"Which colour?", "ochre", "mauve"} {
		if !strings.Contains(shown, want) {
			t.Errorf("got the question %s, want it to show %q", shown, want)
		}
	}
	answer := "mauve"
	if a.field != "" {
		answer = a.field + ": mauve"
	}
	if code, out, stderr := h.run(t, "answer", q.ID, answer); code != 0 {
		t.Fatalf("answer: got %d, %s%s", code, out, stderr)
	}
	h.end(t, key)
	if got := asked.Answer(); got.End != core.KindDone || got.Text != "You said mauve" {
		t.Errorf("got %s with %q (%v), want the model to have the answer", got.End, got.Text, got.Fault)
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
func restarts(t *testing.T, e config.Agent) {
	t.Helper()
	settings, err := json.Marshal(map[string]any{"agents": []config.Agent{e}})
	if err != nil {
		t.Fatal(err)
	}
	data, file := t.TempDir(), filepath.Join(t.TempDir(), config.FileName) // JSON is YAML
	if err := os.WriteFile(file, settings, 0o600); err != nil {
		t.Fatal(err)
	}
	for life, c := range []struct{ word, want string }{{"hello", "HELLO, world!"}, {"remember", "You said hello."}} {
		h := startHub(t, "--data-dir", data, "--config", file)
		out, err := program(t, "ask", e.Name, "please "+c.word, "--thread", "talk", "--hub", "http://"+h.http).Output()
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
func joins(t *testing.T, h *testHub, e config.Agent) {
	t.Helper()
	args := []string{"agent", "--speaks", e.Dialect, "--name", "far", "--hub", h.url()}
	for _, v := range e.Env {
		args = append(args, "--env", v)
	}
	for name, value := range e.Set() {
		args = append(args, "--option", name+"="+value)
	}
	cmd := program(t, append(append(args, "--"), e.Command...)...)
	cmd.Dir, cmd.Stderr = e.Dir, t.Output()
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
		t.Errorf("by dragoman agent: got %d, %q and %s, want the answer", code, out, stderr)
	}
}
