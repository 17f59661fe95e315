package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// editorSDK is the package of npm with which editor agents and editors are written.
const editorSDK = "@agentclientprotocol/sdk@2.4.0"

// editorHub starts a hub with an agent that speaks the editor's protocol, and returns a function
// that asks it something. The second word of a question is its key.
func editorHub(t *testing.T, process config.Process) (*testHub, *hub.Session, func(thread core.ThreadID, content string) *task.Task) {
	t.Helper()
	return hubOf(t, config.Agent{Name: "ed", Dialect: config.SpeaksEditor, Process: process})
}

// hubOf is editorHub for any agent, which gets four tasks at once.
func hubOf(t *testing.T, e config.Agent) (*testHub, *hub.Session, func(thread core.ThreadID, content string) *task.Task) {
	t.Helper()
	e.MaxConcurrent = 4
	h := newTestHub(t, func(c *config.Config) { c.Agents = config.Agents{e} })
	h.await(t, "joined "+e.Name)
	user := h.service.Hub().Connect(hub.Identity{Principal: core.Principal{ID: "user", Operator: true}, Dialect: "test"})
	t.Cleanup(func() { user.Close(nil) })
	return h, user, func(thread core.ThreadID, content string) *task.Task {
		t.Helper()
		asked, err := user.Open(core.Request{To: core.ToAgent(core.AgentID(e.Name)), Thread: thread, Content: content}, hub.OpenOptions{Unwatched: true})
		if err != nil {
			t.Fatal(err)
		}
		return asked
	}
}

// kindsOf returns the kinds of events of a task.
func kindsOf(t *task.Task) string {
	var all []string
	for _, e := range t.Events() {
		all = append(all, e.Body.Kind().String())
	}
	return strings.Join(all, " ")
}

// resultOf returns the output of the last tool call of a task.
func resultOf(t *task.Task) (output string) {
	for _, e := range t.Events() {
		if r, ok := e.Body.(core.ToolResult); ok {
			output = r.Output
		}
	}
	return output
}

// The agent is one of the SDK: its own process, its own JSON-RPC.
func TestAnAgentOfTheEditorSDKIsAnAgentOfTheHub(t *testing.T) {
	t.Parallel()
	needs(t, "node", "npm")
	dir := t.TempDir()
	script, err := os.ReadFile("testdata/editor/agent.mjs")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "agent.mjs"), script, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	installNode(t, dir, "--ignore-scripts", editorSDK)
	h, user, ask := editorHub(t, config.Process{Command: []string{"node", "agent.mjs"}, Dir: dir})

	for _, c := range []struct {
		approve bool
		result  string
	}{{true, "written"}, {false, "refused"}} {
		key := h.key()
		asked := ask("", "write "+key)
		h.await(t, key+" approval_requested")
		if err := user.Decide(hub.NoWait, asked.ID(), core.ApprovalDecided{ID: "t1", Approved: c.approve}); err != nil {
			t.Fatal(err)
		}
		h.end(t, key)
		a := asked.Answer()
		const want = "opened assigned session_started accepted thinking foreign tool_call approval_requested approval_decided tool_result text text usage done"
		if got := kindsOf(asked); got != want || a.Text != "HELLO" || resultOf(asked) != c.result {
			t.Errorf("approved %v: got %s with %q and %q, want %s with HELLO and %s", c.approve, got, a.Text, resultOf(asked), want, c.result)
		}
	}

	key := h.key()
	counted := ask("", "count "+key)
	h.end(t, key)
	var numbers strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&numbers, "%d ", i)
	}
	if a := counted.Answer(); a.Text != numbers.String() {
		t.Errorf("got %d bytes in %d events, want the numbers up to 999 in order", len(a.Text), len(counted.Events()))
	}

	key = h.key()
	waiting := ask("", "wait "+key)
	h.await(t, key+" text")
	if err := user.Cancel(waiting.ID(), "enough"); err != nil {
		t.Fatal(err)
	}
	h.end(t, key)
	if a := waiting.Answer(); a.End != core.KindCancelled || a.Text != "waiting, what was left" {
		t.Errorf("got %s with %q, want it cancelled after what was left", a.End, a.Text)
	}

	// What a task wants is set for it alone; the SDK checks the messages by its own schema.
	for _, c := range []struct {
		options core.Options
		want    string
	}{
		{core.Options{"mode": "plan", "model": "big", "web": "on"}, "mode=plan model=big web=true"},
		{nil, "mode=auto model=small web=false"},
	} {
		key = h.key()
		asked, err := user.Open(core.Request{To: core.ToAgent("ed"), Thread: "set", Content: "set " + key, Options: c.options}, hub.OpenOptions{Unwatched: true})
		if err != nil {
			t.Fatal(err)
		}
		h.end(t, key)
		if a := asked.Answer(); a.Text != c.want {
			t.Errorf("%v: got %q (%v), want the session set to %s", c.options, a.Text, a.Fault, c.want)
		}
	}
	if code, out, stderr := h.run(t, "agents", "ed"); code != 0 || !strings.Contains(strings.Join(strings.Fields(out), " "), "OPTION IS MAY BE model small small, big web false true, false mode auto auto, plan") {
		t.Errorf("agents ed: got %d, %s and %s, want what it can be set to", code, out, stderr)
	}
	key = h.key()
	if code, out, stderr := h.run(t, "ask", "ed", "set "+key, "--option", "speed=1"); code == 0 || !strings.Contains(stderr, `the agent has no option "speed": it has model, web, mode`) {
		t.Errorf("an option that it does not have: got %d, %s and %s", code, out, stderr)
	}
	key = h.key()
	steered := ask("", "more "+key)
	h.await(t, key+" text")
	if code, out, stderr := h.run(t, "inject", string(steered.ID()), "the rest"); code != 0 {
		t.Errorf("inject: got %d, %s and %s, want it taken", code, out, stderr)
	}
	h.end(t, key)
	if a := steered.Answer(); a.Text != "so far and [local] the rest" {
		t.Errorf("got %q (%v), want the context in the answer", a.Text, a.Fault)
	}

	key = h.key()
	noisy := ask("", "garbage "+key)
	h.end(t, key)
	if a := noisy.Answer(); a.End != core.KindDone || a.Text != "still here" {
		t.Errorf("got %s with %q, want the answer beside the garbage", a.End, a.Text)
	}

	// It dies in a turn of a thread, is started again, and continues the session.
	key = h.key()
	first := ask("t", "echo "+key)
	h.end(t, key)
	if a := first.Answer(); a.Text != `["echo `+key+`"]` {
		t.Errorf("got %q", a.Text)
	}
	key = h.key()
	died := ask("t", "die "+key)
	h.end(t, key)
	if a := died.Answer(); a.End != core.KindFailed || a.Fault.Code != core.CodeUnreachable || a.Text != "half" {
		t.Errorf("got %s with %q (%v), want it failed as unreachable", a.End, a.Text, a.Fault)
	}
	key = h.key()
	again := ask("t", "echo "+key)
	h.end(t, key)
	if a := again.Answer(); a.End != core.KindDone || a.Text != `["echo `+key+`"]` || strings.Contains(kindsOf(again), "session_lost") {
		t.Errorf("got %s with %q (%s, %v), want the session continued without its replay", a.End, a.Text, kindsOf(again), a.Fault)
	}
}

// gemini is a stub of the model behind Gemini CLI: it writes a file if it is asked to, and then
// streams both halves of an answer.
type gemini struct {
	// midway runs between the halves, with the request; nil does nothing.
	midway func(r *http.Request, body string)
}

func (g *gemini) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	const (
		write = `{"functionCall":{"name":"write_file","args":{"file_path":"made.txt","content":"made by the model\n"}}}`
		stop  = `,"finishReason":"STOP"`
	)
	chunk := func(part, end string) string {
		return `{"candidates":[{"content":{"role":"model","parts":[` + part + `]},"index":0` + end + `}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":4,"totalTokenCount":9}}`
	}
	text := func(text string) string { return `{"text":` + string(plainJSON(text)) + `}` }
	switch {
	case strings.HasSuffix(r.URL.Path, ":streamGenerateContent"):
		w.Header().Set("Content-Type", "text/event-stream")
		if strings.Contains(string(body), "write a file") && !strings.Contains(string(body), "made by the model") {
			_, _ = fmt.Fprintf(w, "data: %s\n\n", chunk(write, stop))
			return
		}
		_, _ = fmt.Fprintf(w, "data: %s\n\n", chunk(text(firstHalf), ""))
		if g.midway != nil {
			w.(http.Flusher).Flush()
			g.midway(r, string(body))
		}
		_, _ = fmt.Fprintf(w, "data: %s\n\n", chunk(text(secondHalf), stop))
	case strings.HasSuffix(r.URL.Path, ":generateContent"): // the router of models
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, chunk(text(`{"reasoning":"simple","model_choice":"flash","complexity_score":1,"complexity_reasoning":"simple"}`), stop))
	default:
		http.NotFound(w, r)
	}
}

// installGemini installs Gemini CLI, with a model of its own, and returns how to start it. It works
// in a directory of its own.
func installGemini(t *testing.T, model *gemini) config.Process {
	t.Helper()
	needs(t, "node", "npm")
	dir, home, work := t.TempDir(), t.TempDir(), t.TempDir()
	installNode(t, dir, "--omit=optional", "--ignore-scripts", knownAgent(t, "gemini").Package)
	settings := filepath.Join(home, ".gemini", "settings.json")
	err := os.MkdirAll(filepath.Dir(settings), 0o700)
	if err == nil {
		err = os.WriteFile(settings, []byte(`{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false},"general":{"disableAutoUpdate":true}}`), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	stub := httptest.NewServer(model)
	t.Cleanup(stub.Close)
	return config.Process{
		Command: []string{"node", filepath.Join(dir, "node_modules/@google/gemini-cli/bundle/gemini.js"), "--acp"}, Dir: work,
		Env: []string{"HOME=" + home, "GEMINI_API_KEY=x", "GOOGLE_GEMINI_BASE_URL=" + stub.URL},
	}
}
