package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pirpc"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
)

// piOld is the last version of pi for Node 20. The tests also run the one that 'dragoman add' knows.
const piOld = "@earendil-works/pi-coding-agent@0.74.2"

// newerNode runs programs that need a newer Node than the machine may have.
const newerNode = "node@22.23.3"

// piInstall is an installed version of pi, and the Node that runs it.
type piInstall struct{ dir, node string }

// installPi installs a package of pi.
func installPi(t *testing.T, version string) piInstall {
	t.Helper()
	needs(t, "node", "npm")
	installed := piInstall{dir: t.TempDir(), node: nodeFor(t, version != piOld)}
	installNode(t, installed.dir, "--ignore-scripts", version)
	return installed
}

// nodeFor returns a Node: that of the machine, unless a newer one is wanted than it may be.
func nodeFor(t *testing.T, newer bool) string {
	t.Helper()
	out, err := exec.Command("node", "-p", "process.versions.node.split('.')[0]").Output()
	if err != nil {
		t.Fatal(err)
	}
	if machine, _ := strconv.Atoi(strings.TrimSpace(string(out))); !newer || machine > 22 { // 22 has to be 22.19 or later
		return "node"
	}
	dir := t.TempDir()
	installNode(t, dir, newerNode)
	return filepath.Join(dir, "node_modules", "node", "bin", "node")
}

// command returns the command that starts pi, and a home with what pi needs to reach a model.
func (p piInstall) command(t *testing.T, m *model) (command []string, home string) {
	t.Helper()
	home = t.TempDir()
	agent := filepath.Join(home, ".pi", "agent")
	if err := os.MkdirAll(agent, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"models.json":   `{"providers":{"stub":{"baseUrl":"` + m.URL + `/v1","api":"openai-completions","apiKey":"x","models":[{"id":"m1"}]}}}`,
		"settings.json": `{"retry":{"enabled":true,"maxRetries":3,"baseDelayMs":20,"provider":{"maxRetries":0}}}`,
	} {
		if err := os.WriteFile(filepath.Join(agent, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []string{p.node, filepath.Join(p.dir, "node_modules", ".bin", "pi"), "--mode", "rpc", "--provider", "stub", "--model", "m1"}, home
}

// piHub is a hub with pi as an agent of its settings.
type piHub struct {
	*testHub
	*testing.T
	home  string // where pi works
	model *model
	user  *hub.Session
}

func (p piInstall) start(t *testing.T, args []string, change func(*config.Config)) *piHub {
	t.Helper()
	h := &piHub{T: t, model: newModel(t)}
	command, home := p.command(t, h.model)
	h.home = home
	h.testHub = newTestHub(t, func(c *config.Config) {
		c.Agents = config.Agents{{
			Name: "pi", Dialect: pirpc.Name, MaxConcurrent: 4, Process: config.Process{
				Command: append(command, args...), Env: []string{"HOME=" + home, "PI_OFFLINE=1", "PI_SKIP_VERSION_CHECK=1"}, Dir: home,
			},
		}}
		if change != nil {
			change(c)
		}
	})
	h.await(t, "joined pi")
	principal := core.Principal{ID: "user", Operator: true}
	h.user = h.service.Hub().Connect(hub.Identity{Principal: principal, Dialect: "test", Deadline: ample})
	h.user.WatchQuestions(question.View{Agent: "pi", For: principal})
	t.Cleanup(func() { h.user.Close(nil) })
	return h
}

// open asks pi.
func (p *piHub) open(thread core.ThreadID, word string) core.TaskID {
	p.Helper()
	t, err := p.user.Open(core.Request{To: core.ToAgent("pi"), Thread: thread, Content: word}, hub.OpenOptions{})
	if err != nil {
		p.Fatal(err)
	}
	return t.ID()
}

// follow returns the events of a task up to its end. seen is called with each.
func (p *piHub) follow(id core.TaskID, seen func(core.Body)) []core.Event {
	p.Helper()
	var all []core.Event
	for {
		b, err := p.user.Next(p.Context())
		if err != nil {
			p.Fatal(err)
		}
		if b.Task == nil || b.Task.ID() != id {
			continue
		}
		for _, e := range b.Events {
			all = append(all, e)
			if seen != nil {
				seen(e.Body)
			}
			if e.Body.Kind().Ends() {
				return all
			}
		}
	}
}

// ask asks pi and returns its answer and the events.
func (p *piHub) ask(thread core.ThreadID, word string) (core.Answer, []core.Event) {
	p.Helper()
	all := p.follow(p.open(thread, word), nil)
	return core.Fold(all), all
}

// wants fails the test unless an answer is done with a text.
func (p *piHub) wants(word, text string) []core.Event {
	p.Helper()
	return p.wantsSeen(word, text, nil)
}

// wantsSeen is wants, and calls seen with each event of the answer, unless it is nil.
func (p *piHub) wantsSeen(word, text string, seen func(core.Body)) []core.Event {
	p.Helper()
	all := p.follow(p.open("", word), seen)
	if a := core.Fold(all); a.End != core.KindDone || a.Text != text {
		p.Errorf("%s: got %s with %q (%v), want done with %q", word, a.End, a.Text, a.Fault, text)
	}
	return all
}

func of[B core.Body](events []core.Event) (all []B) {
	for _, e := range events {
		if b, is := e.Body.(B); is {
			all = append(all, b)
		}
	}
	return all
}

func TestPiIsAnAgentOfTheHub(t *testing.T) {
	tier.Full(t, "it plays programs of others")
	t.Parallel()
	for _, version := range []string{piOld, knownAgent(t, "pi").Package} {
		t.Run(version[strings.LastIndexByte(version, '@')+1:], func(t *testing.T) {
			installed := installPi(t, version)
			for name, test := range map[string]func(*testing.T, piInstall){
				"it answers": piAnswers, "its threads survive their process": piThreadSurvives, "its threads survive the hub": piThreadSurvivesRestart, "it uses the tools of the hub": piUsesTools,
				"its extensions ask people": piAsksPeople,
			} {
				t.Run(name, func(t *testing.T) { test(t, installed) })
			}
		})
	}
}

func piAnswers(t *testing.T, installed piInstall) {
	said := filepath.Join(t.TempDir(), "said")
	p := installed.start(t, []string{"--no-session"}, func(c *config.Config) {
		process := &c.Agents[0].Process
		process.Command = append([]string{"sh", "-c", `"$@" | tee -a "$SAID"`, "pi"}, process.Command...)
		process.Env = append(process.Env, "SAID="+said)
	})
	defer wantsPiLines(t, said)
	all := p.wants("hello", "one two thr\u2028ee four five")
	if texts := of[core.Text](all); len(texts) != 5 {
		t.Errorf("got the pieces %q, want five", texts)
	}
	if usage := core.Fold(all).Usage; usage.Input != 5 || usage.Output != 4 {
		t.Errorf("got the usage %+v, want 5 and 4 tokens", usage)
	}

	var running string
	all = p.wantsSeen("bash", "the tool said: line 1\nline 2\nline 3\n", func(b core.Body) {
		if s, is := b.(core.ToolState); is {
			running += s.Detail
		}
		for i := 1; i <= 2; i++ { // the command waits until each line is seen
			if strings.Contains(running, fmt.Sprintf("line %d\n", i)) {
				if err := os.WriteFile(filepath.Join(p.home, fmt.Sprint("seen-", i)), nil, 0o600); err != nil {
					t.Error(err)
				}
			}
		}
	})
	results := of[core.ToolResult](all)
	if !strings.HasPrefix(running, "line 1\n") || strings.Count(running, "line 1\n") != 1 || len(of[core.ToolState](all)) < 2 || len(results) != 1 || results[0].IsError {
		t.Errorf("got the states %q and the results %+v, want each line once", running, results)
	}

	all = p.wants("unavailable", "one two thr\u2028ee four five")
	var names []string
	for _, f := range of[core.ForeignFrame](all) {
		names = append(names, f.Name)
	}
	if !strings.Contains(strings.Join(names, " "), "auto_retry_start") {
		t.Errorf("got %q, want a retry", names)
	}
	p.wants("break", "HELLO, world!")

	id := p.open("", "wait")
	var cancelled bool
	a := core.Fold(p.follow(id, func(b core.Body) {
		if b.Kind() == core.KindText && !cancelled {
			cancelled = true
			if err := p.user.Cancel(id, "enough"); err != nil {
				t.Error(err)
			}
		}
	}))
	if a.End != core.KindCancelled || a.Text != "so far" {
		t.Errorf("got %s with %q (%v), want cancelled", a.End, a.Text, a.Fault)
	}
}

// wantsPiLines fails the test unless the lines that pi has said, in a file, fit their schemas.
func wantsPiLines(t *testing.T, path string) {
	t.Helper()
	said, err := os.ReadFile(path)
	if err != nil || bytes.Count(said, []byte("\n")) < 50 {
		t.Errorf("got the lines %.100q of pi (%v), want those of a conversation", said, err)
	}
	for line := range bytes.Lines(said) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			continue // it is being written
		}
		if err := checkPiLine(string(line)); err != nil {
			t.Errorf("%.300s: got %v, want it to fit its schema", line, err)
		}
	}
}

func piThreadSurvives(t *testing.T, installed piInstall) {
	p := installed.start(t, []string{"--session-dir", t.TempDir()}, nil)
	if a, _ := p.ask("talk", "remember"); a.Text != "1 messages" {
		t.Fatalf("got %q (%v), want the first message", a.Text, a.Fault)
	}
	all := p.follow(p.open("talk", "wait"), func(b core.Body) {
		if b.Kind() == core.KindText {
			killIn(t, p.home)
		}
	})
	a := core.Fold(all)
	if a.End != core.KindFailed || a.Fault.Code != core.CodeUnreachable || !a.Fault.Retryable {
		t.Fatalf("killed: got %s with %v, want failed as unreachable", a.End, a.Fault)
	}
	a, all = p.ask("talk", "remember")
	if lost := of[core.SessionLost](all); len(lost) > 0 || a.End != core.KindDone || a.Text == "1 messages" {
		t.Errorf("got %q (%v) and %v, want the session continued", a.Text, a.Fault, lost)
	}
	// pi loads its extensions again for the session that it continues.
	if a, _ = p.ask("talk", "tools"); !strings.Contains(a.Text, "agents_list") {
		t.Errorf("got the tools %q, want those of the hub too", a.Text)
	}
}

func piThreadSurvivesRestart(t *testing.T, installed piInstall) {
	command, home := installed.command(t, newModel(t))
	data := t.TempDir()
	settings, err := json.Marshal(map[string]any{"agents": []any{map[string]any{
		"name": "pi", "dialect": pirpc.Name, "command": command, "cwd": home, "env": []string{"HOME=" + home, "PI_OFFLINE=1", "PI_SKIP_VERSION_CHECK=1"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "dragoman.yaml") // JSON is YAML
	if err := os.WriteFile(file, settings, 0o600); err != nil {
		t.Fatal(err)
	}
	for life, want := range []string{"1 messages", "3 messages"} {
		h := startHub(t, "--data-dir", data, "--config", file)
		out, err := program(t, "ask", "pi", "remember", "--thread", "talk", "--hub", "http://"+h.http).Output()
		if err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("life %d: got %q (%v), want %s", life, out, err, want)
		}
		if err := h.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		h.waitLog(t, "the hub has stopped")
	}
	files, err := filepath.Glob(filepath.Join(data, pirpc.Name, "pi", "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Errorf("got the session files %q (%v), want one below the data directory", files, err)
	}
}

// killPID kills the process with an id.
func killPID(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Kill()
}

// killIn kills the processes that work in a directory. The command line of pi does not tell: pi
// changes it.
func killIn(t *testing.T, dir string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for _, path := range all {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if works, _ := os.Readlink(path); err == nil && works == dir && killPID(pid) == nil {
			killed++
		}
	}
	if killed == 0 {
		t.Errorf("no process works in %s: want pi killed", dir)
	}
}

// skyServer is an MCP server over stdio with one tool, in nothing but Node.
const skyServer = `
const tool = { name: "read", description: "Reads the sky.", inputSchema: { type: "object", properties: { of: { type: "string" } } } };
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  const answer = (result) => console.log(JSON.stringify({ jsonrpc: "2.0", id, result }));
  if (method === "initialize") answer({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "sky", version: "1" } });
  else if (method === "tools/list") answer({ tools: [tool] });
  else if (method === "tools/call") {
    let looks = 0;
    const look = setInterval(() => {
      const progress = { progressToken: params._meta.progressToken, progress: ++looks, message: "looking" };
      console.log(JSON.stringify({ jsonrpc: "2.0", method: "notifications/progress", params: progress }));
      if (looks < 5) return;
      clearInterval(look);
      answer({ content: [{ type: "text", text: "the sky of " + params.arguments.of + " is blue" }] });
    }, 100);
  }
  else if (id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32601, message: "unknown method" } }));
});`

// A tool of an MCP server that is a pack of the settings is called sky.read at the hub and sky_read
// by the model, for providers allow no dots.
func piUsesTools(t *testing.T, installed piInstall) {
	server := filepath.Join(t.TempDir(), "sky.cjs")
	if err := os.WriteFile(server, []byte(skyServer), 0o600); err != nil {
		t.Fatal(err)
	}
	p := installed.start(t, []string{"--no-session"}, func(c *config.Config) {
		c.Packs = config.Packs{{Name: "sky", Process: config.Process{Command: []string{"node", server}}}}
	})
	var offered string
	for deadline := time.Now().Add(watchdog); !strings.Contains(offered, "sky_read") && time.Now().Before(deadline); { // the pack may join later
		a, _ := p.ask("", "tools")
		offered = " " + a.Text + " "
	}
	for _, want := range []string{"bash", "agents_list", "agent_ask", "sky_read"} {
		if !strings.Contains(offered, " "+want+" ") {
			t.Errorf("pi offers its model %q, want %s among it", offered, want)
		}
	}
	p.wants("environment", "the tool said: 0\n") // commands do not get the token
	all := p.wants("pack", "the tool said: the sky of tomorrow is blue")
	if calls := of[core.ToolCall](all); len(calls) != 1 || calls[0].Name != "sky_read" || calls[0].Input != `{"of":"tomorrow"}` {
		t.Errorf("got the calls %+v, want one of the pack", calls)
	}
	if !slices.ContainsFunc(of[core.ToolState](all), func(s core.ToolState) bool { return strings.HasPrefix(s.Detail, "looking") }) {
		t.Errorf("got the states %+v, want the progress that the pack tells", of[core.ToolState](all))
	}
}

// guard is an extension of pi that asks before each command.
const guard = `
export default function (pi) {
  pi.on("tool_call", async (event, ctx) => {
    if (event.toolName !== "bash") return;
    if (!(await ctx.ui.confirm("Run it?", event.input.command))) return { block: true, reason: "Blocked by a person" };
    const how = await ctx.ui.select("How?", ["slowly", "quickly"], { timeout: 60000 });
    ctx.ui.notify("it runs " + how, "info");
  });
}`

func piAsksPeople(t *testing.T, installed piInstall) {
	path := filepath.Join(t.TempDir(), "guard.js")
	if err := os.WriteFile(path, []byte(guard), 0o600); err != nil {
		t.Fatal(err)
	}
	p := installed.start(t, []string{"--no-session", "--extension", path}, nil)
	for _, approved := range []bool{true, false} {
		id := p.open("", "guarded")
		deadline := time.AfterFunc(watchdog, func() { _ = p.user.Cancel(id, "the test waits no longer") })
		var asked []core.ApprovalRequested
		all := p.follow(id, func(b core.Body) {
			request, is := b.(core.ApprovalRequested)
			if !is {
				return
			}
			asked = append(asked, request)
			if err := p.user.Decide(hub.NoWait, id, core.ApprovalDecided{ID: request.ID, Approved: approved}); err != nil {
				t.Error(err)
			}
			if approved {
				go p.answerQuestion("quickly")
			}
		})
		deadline.Stop()
		if len(asked) != 1 || asked[0].ID != "call_1" || asked[0].Name != "bash" || !strings.Contains(asked[0].Input, "echo guarded") {
			t.Errorf("got the approvals %+v, want one of the call", asked)
		}
		want := "the tool said: guarded\n"
		if !approved {
			want = "the tool said: Blocked by a person"
		}
		if a := core.Fold(all); a.Text != want {
			t.Errorf("approved %v: got %q (%v), want %q", approved, a.Text, a.Fault, want)
		}
	}
}

// answerQuestion answers the next question with one of its options.
func (p *piHub) answerQuestion(option string) {
	for p.Context().Err() == nil {
		for _, q := range p.service.Hub().Questions(core.Principal{ID: "user", Operator: true}) {
			if _, err := p.user.AnswerQuestion(p.Context(), core.Reply{Question: q.ID, Selected: []string{option}}); err == nil {
				return
			}
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-p.Context().Done():
		}
	}
}
