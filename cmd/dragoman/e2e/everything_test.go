package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// everything is the reference server of MCP.
const everything = "@modelcontextprotocol/server-everything@2026.8.31"

// toolUser is an agent that calls tools in a task of ada.
type toolUser struct {
	*testing.T
	hub   *hub.Hub
	agent *hub.Session
	ada   *hub.Session
}

func newToolUser(t *testing.T, h *testHub) *toolUser {
	t.Helper()
	connect := func(id string) *hub.Session {
		s := h.service.Hub().Connect(hub.Identity{Principal: core.Principal{ID: id}, Dialect: "test"})
		t.Cleanup(func() { s.Close(nil) })
		return s
	}
	u := &toolUser{t, h.service.Hub(), connect("user"), connect("ada")}
	card := core.Card{ID: "user", Dialect: "test", MaxConcurrent: 8, Features: core.FeatureStreaming | core.FeatureCancellation | core.FeatureToolStates}
	if err := u.agent.Join(card, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	u.ada.WatchQuestions(question.View{Thread: "tools", Agent: "user", For: core.Principal{ID: "ada"}})
	return u
}

// offers waits until the hub offers the tools.
func (u *toolUser) offers(names ...string) {
	u.Helper()
	w := u.hub.Connect(hub.Identity{Principal: core.Principal{ID: "watcher"}})
	defer w.Close(nil)
	w.WatchTools()
	ctx, cancel := context.WithTimeout(u.Context(), watchdog)
	defer cancel()
	for {
		var all []string
		for _, d := range w.Tools() {
			all = append(all, d.Name)
		}
		missing := ""
		for _, n := range names {
			if !strings.Contains(" "+strings.Join(all, " ")+" ", " "+n+" ") {
				missing = n
			}
		}
		if missing == "" {
			return
		}
		if _, err := w.Next(ctx); err != nil {
			u.Fatalf("got the tools %q, want %s too: %v", all, missing, err)
		}
	}
}

// call calls a tool outside of a task.
func (u *toolUser) call(name, input string) *tool.Result {
	u.Helper()
	ctx, cancel := context.WithTimeout(u.Context(), watchdog)
	defer cancel()
	r, err := u.agent.Call(ctx, name, json.RawMessage(input))
	if err != nil {
		u.Fatalf("calling %s: %v", name, err)
	}
	return r
}

func (u *toolUser) wants(name, input, want string) {
	u.Helper()
	if r := u.call(name, input); r.Fault != nil || string(r.Output) != want {
		u.Errorf("%s %s: got %s and %v, want %s", name, input, r.Output, r.Fault, want)
	}
}

// within calls a tool in a task of ada. asked answers the questions of the tool. It returns the
// result and the details of the progress that ada saw.
func (u *toolUser) within(name, input string, asked func(question.Question) core.Reply) (*tool.Result, []string) {
	u.Helper()
	t, err := u.ada.Open(core.Request{To: core.ToAgent("user"), Content: "go", Thread: "tools"}, hub.OpenOptions{})
	if err != nil {
		u.Fatal(err)
	}
	if err := u.agent.Report(t.ID(), core.ToolCall{ID: "c-" + string(t.ID()), Name: name, Input: input}, nil); err != nil {
		u.Fatal(err)
	}
	u.agent.CallTool("c-"+string(t.ID()), name, json.RawMessage(input))
	ctx, cancel := context.WithTimeout(u.Context(), watchdog)
	defer cancel()
	results := make(chan *tool.Result, 1)
	go func() {
		for {
			b, err := u.agent.Next(ctx)
			if err != nil || b.Tool != nil {
				results <- b.Tool
				for _, body := range []core.Body{core.ToolResult{ID: "c-" + string(t.ID())}, core.Done{Text: "done"}} {
					if err := u.agent.Report(t.ID(), body, nil); err != nil {
						u.Errorf("telling the result and the end: %v", err)
					}
				}
				return
			}
		}
	}()
	var progress []string
	for {
		b, err := u.ada.Next(ctx)
		if err != nil {
			u.Fatalf("waiting for %s: %v", name, err)
		}
		if b.Question != nil && b.Question.Outcome == nil {
			reply := asked(b.Question.Question)
			reply.Question = b.Question.Question.ID
			if _, err := u.ada.AnswerQuestion(ctx, reply); err != nil {
				u.Error(err)
			}
		}
		if b.Task != t || b.Role != task.Requester {
			continue
		}
		for _, e := range b.Events {
			switch body := e.Body.(type) {
			case core.ToolState:
				progress = append(progress, body.Detail)
			case core.Done:
				return <-results, progress
			}
		}
	}
}

// everythingWorks calls the tools of the reference server.
func (u *toolUser) everythingWorks() {
	u.Helper()
	u.offers("everything.echo", "everything.get-sum", "everything.trigger-elicitation-request") // the last comes with a change of the list
	for _, d := range u.agent.Tools() {
		if d.Name == "everything.simulate-research-query" {
			u.Error("got a tool that requires the tasks of 2025-11-25, want it left out")
		}
		if d.Name == "everything.echo" && (d.Pack != "everything" || !strings.Contains(string(d.InputSchema), "draft-07")) {
			u.Errorf("got %+v, want the schema as it was sent", d)
		}
	}
	u.wants("everything.echo", `{"message":"hello"}`, `{"text":"Echo: hello"}`)
	u.wants("everything.get-sum", `{"a":2,"b":40}`, `{"text":"The sum of 2 and 40 is 42."}`)
	u.wants("everything.get-structured-content", `{"location":"Chicago"}`, `{"data":{"temperature":36,"conditions":"Light rain / drizzle","humidity":82}}`)
	if r := u.call("everything.get-tiny-image", `{}`); r.Fault != nil || !strings.Contains(string(r.Output), `"files":[{"name":"image-1.png","media_type":"image/png","data":"iVBOR`) {
		u.Errorf("got %.200s and %v, want the image as a file", r.Output, r.Fault)
	}
	if r := u.call("everything.get-resource-links", `{"count":1}`); r.Fault != nil || !strings.Contains(string(r.Output), `"type":"resource_link"`) {
		u.Errorf("got %.300s and %v, want the link as content", r.Output, r.Fault)
	}
	if r := u.call("everything.get-sum", `{"a":"two"}`); r.Fault == nil || r.Fault.Code != core.CodeInvalid {
		u.Errorf("got %+v, want the input refused by its schema", r)
	}

	r, progress := u.within("everything.trigger-long-running-operation", `{"duration":1.5,"steps":3}`, nil)
	if r == nil || r.Fault != nil || !strings.Contains(string(r.Output), "completed") || strings.Join(progress, " ") != "1/3 2/3 3/3" && strings.Join(progress, " ") != "1/3 2/3" {
		u.Errorf("got %+v with the progress %q, want three steps", r, progress)
	}

	r, _ = u.within("everything.trigger-elicitation-request", `{}`, func(q question.Question) core.Reply {
		if !strings.Contains(q.Text, "Please provide inputs") || !strings.Contains(q.Text, "untitledSingleSelectEnum") {
			u.Errorf("got the question %q, want the form", q.Text)
		}
		return core.Reply{Text: "name: Ada Lovelace\ncheck: yes\ninteger: 5\ntitledSingleSelectEnum: Superman\nuntitledMultipleSelectEnum: Piano, Drums"}
	})
	if r == nil || r.Fault != nil || !strings.Contains(string(r.Output), "Name: Ada Lovelace") || !strings.Contains(string(r.Output), "hero-1") || !strings.Contains(string(r.Output), "Piano") {
		u.Errorf("got %+v, want the answers of ada", r)
	}
	r, _ = u.within("everything.trigger-elicitation-request", `{}`, func(question.Question) core.Reply { return core.Reply{Selected: []string{"Decline to answer"}} })
	if r == nil || r.Fault != nil || !strings.Contains(string(r.Output), "declined") {
		u.Errorf("got %+v, want it declined", r)
	}
}

func TestTheReferenceServerOfMCPIsAPack(t *testing.T) {
	t.Parallel()
	needs(t, "node", "npm")
	dir := t.TempDir()
	installNode(t, dir, everything)
	program := filepath.Join(dir, "node_modules/@modelcontextprotocol/server-everything/dist/index.js")
	t.Run("over lines", func(t *testing.T) { everythingOverLines(t, program) })
	t.Run("over HTTP", func(t *testing.T) { everythingOverHTTP(t, program) })
}

func everythingOverLines(t *testing.T, program string) {
	h := newTestHub(t, func(c *config.Config) {
		c.Packs = config.Packs{{Name: "everything", Process: config.Process{Command: []string{"node", program, "stdio"}, Env: []string{"GIVEN=1"}}}}
	})
	u := newToolUser(t, h)
	u.everythingWorks()
	if r := u.call("everything.get-env", `{}`); r.Fault != nil || !strings.Contains(string(r.Output), `GIVEN`) {
		t.Errorf("got %.300s and %v, want the variable of the settings", r.Output, r.Fault)
	}

	state := *h.service.Packs()[0].Child
	if state.State != core.ChildReady || state.PID == 0 {
		t.Fatalf("got %+v, want it ready", state)
	}
	code, out, _ := run(t, "packs", "--hub", h.url())
	if line := strings.Split(out, "\n"); code != 0 || len(line) < 2 || !strings.HasPrefix(line[1], "everything ") || !strings.Contains(line[1], " ready ") || !strings.Contains(line[1], fmt.Sprint(state.PID)) {
		t.Errorf("dragoman packs: got %d and\n%s\nwant the pack with its state and process", code, out)
	}
	done := make(chan *tool.Result)
	go func() {
		r, err := u.agent.Call(t.Context(), "everything.trigger-long-running-operation", json.RawMessage(`{"duration":60,"steps":60}`))
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	u.wants("everything.echo", `{"message":"meanwhile"}`, `{"text":"Echo: meanwhile"}`)
	if err := killPID(state.PID); err != nil {
		t.Fatal(err)
	}
	if r := <-done; r == nil || r.Fault == nil || r.Fault.Code != core.CodeUnreachable {
		t.Errorf("got %+v, want the call failed at once", r)
	}
	for { // the tools stay listed while it is started again
		r := u.call("everything.echo", `{"message":"back"}`)
		if r.Fault == nil {
			break
		}
		if r.Fault.Code != core.CodeUnreachable || !strings.Contains(r.Fault.Message, "everything") {
			t.Fatalf("got %v, want it unreachable until it is back", r.Fault)
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("it did not come back")
		}
	}
	if again := *h.service.Packs()[0].Child; again.PID == state.PID || again.Restarts != 1 {
		t.Errorf("got %+v, want another process after one restart", again)
	}
}

func everythingOverHTTP(t *testing.T, program string) {
	port := fixedPorts(t, 1)
	stop := startEverything(t, program, port)
	h := newTestHub(t, func(c *config.Config) {
		c.Packs = config.Packs{{Name: "everything", Remote: config.Remote{URL: fmt.Sprintf("http://127.0.0.1:%d/mcp", port)}}}
	})
	u := newToolUser(t, h)
	u.everythingWorks()
	// It answers 400 to a session from before.
	stop()
	startEverything(t, program, port)
	u.wants("everything.echo", `{"message":"again"}`, `{"text":"Echo: again"}`)
	u.everythingWorks()
}

// startEverything starts the server over HTTP, until stop is called or the test ends.
func startEverything(t *testing.T, program string, port uint32) (stop func()) {
	t.Helper()
	cmd := exec.Command("node", program, "streamableHttp")
	cmd.Env = append(os.Environ(), fmt.Sprintf("PORT=%d", port))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(stop)
	for { // it does not say when it listens
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			c.Close()
			break
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal(err)
		}
	}
	return stop
}
