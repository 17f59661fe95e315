package e2e

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
)

// remoteA2A is an agent on the official SDK of A2A, behind a proxy.
type remoteA2A struct {
	nodeProgram
	*proxy
	own string // its address behind the proxy
}

// startRemoteA2A runs testdata/a2a/server.mjs on the installed SDK.
func startRemoteA2A(t *testing.T, dir string, env ...string) remoteA2A {
	t.Helper()
	r := remoteA2A{nodeProgram: runNode(t, dir, env, "server.mjs")}
	at := "127.0.0.1:" + strings.TrimPrefix(r.waitLine("READY "), "READY ")
	r.own, r.proxy = "http://"+at, newProxy(t, at)
	path := "/rpc"
	if strings.Contains(strings.Join(env, " "), "HTTP+JSON") {
		path = "/rest"
	}
	r.get("/address?url=http://" + r.addr() + path)
	return r
}

// get asks the agent something past the proxy.
func (r remoteA2A) get(path string) {
	r.Helper()
	resp, err := http.Get(r.own + path)
	if err != nil {
		r.Fatal(err)
	}
	resp.Body.Close()
}

// installA2A installs the official SDK and the program for it.
func installA2A(t *testing.T) (dir string) {
	t.Helper()
	needs(t, "node", "npm")
	dir = t.TempDir()
	program, err := os.ReadFile("testdata/a2a/server.mjs")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "server.mjs"), program, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	installNode(t, dir, "@a2a-js/sdk@1.3.0", "express@4.21.2")
	return dir
}

// farAsker is a session that asks the remote agent of a hub, and answers its questions.
type farAsker struct {
	*testing.T
	*hub.Session
}

// askFar starts a hub with the remote agent in its settings.
func askFar(t *testing.T, url string) farAsker {
	t.Helper()
	h := newTestHub(t, func(c *config.Config) {
		c.Agents = config.Agents{{Name: "far", Dialect: "a2a", Remote: config.Remote{URL: url}, MaxConcurrent: 4}}
	})
	h.await(t, "joined far")
	s := h.service.Hub().Connect(hub.Identity{Principal: core.Principal{ID: "user", Operator: true}, Dialect: "test"})
	t.Cleanup(func() { s.Close(nil) })
	return farAsker{t, s}
}

// ask asks and returns the answer. at is called with every event.
func (a farAsker) ask(content string, thread core.ThreadID, at func(core.TaskID, core.Event)) core.Answer {
	a.Helper()
	ctx, cancel := context.WithTimeout(a.Context(), watchdog)
	defer cancel()
	t, err := a.Open(core.Request{To: core.ToAgent("far"), Content: content, Thread: thread}, hub.OpenOptions{})
	if err != nil {
		a.Fatal(err)
	}
	for {
		b, err := a.Next(ctx)
		if err != nil {
			a.Fatalf("asking %q: %v", content, err)
		}
		if q := b.Question; q != nil && q.Outcome == nil {
			if _, err := a.AnswerQuestion(ctx, core.Reply{Question: q.Question.ID, Text: "Ulm"}); err != nil {
				a.Fatal(err)
			}
		}
		if b.Task == nil || b.Task.ID() != t.ID() {
			continue
		}
		for _, e := range b.Events {
			if at != nil {
				at(t.ID(), e)
			}
			if e.Body.Kind().Ends() {
				return t.Answer()
			}
		}
	}
}

// wants asks and expects an end and a text.
func (a farAsker) wants(content string, end core.Kind, text string) {
	a.Helper()
	if got := a.ask(content, "", nil); got.End != end || got.Text != text {
		a.Errorf("asked %q: got %s with %q (%v), want %s with %q", content, got.End, got.Text, got.Fault, end, text)
	}
}

func TestAnAgentOnTheOfficialSDKOfA2AIsAnAgentOfTheHub(t *testing.T) {
	t.Parallel()
	dir := installA2A(t)
	var counting strings.Builder
	for i := range 1000 {
		counting.WriteString(strconv.Itoa(i) + " ")
	}
	for name, env := range map[string][]string{
		"JSON-RPC":         {"BINDING=JSONRPC"},
		"HTTP and JSON":    {"BINDING=HTTP+JSON"},
		"JSON-RPC, polled": {"BINDING=JSONRPC", "STREAMS=no"},
	} {
		t.Run(name, func(t *testing.T) { doesWhatItIsTold(t, dir, counting.String(), env...) })
	}
	t.Run("cut", func(t *testing.T) { continuesAfterACut(t, dir) })
	t.Run("dead", func(t *testing.T) { failsWithItsAgent(t, dir) })
}

// doesWhatItIsTold lets the agent stream, fail, be cancelled and ask.
func doesWhatItIsTold(t *testing.T, dir, counting string, env ...string) {
	r := startRemoteA2A(t, dir, env...)
	a := askFar(t, "http://"+r.addr())
	a.wants("hello there", core.KindDone, "HELLO THERE")
	a.wants("stream 1000", core.KindDone, counting)
	if got := a.ask("fail", "", nil); got.End != core.KindFailed || got.Fault.Message != "no such city" {
		t.Errorf("asked to fail: got %s with %v, want no such city", got.End, got.Fault)
	}
	got := a.ask("wait", "", func(id core.TaskID, e core.Event) {
		if e.Body.Kind() == core.KindText {
			if err := a.Cancel(id, "enough"); err != nil {
				t.Error(err)
			}
		}
	})
	if got.End != core.KindCancelled || got.Text != "one " {
		t.Errorf("cancelled: got %s with %q, want what it said until then", got.End, got.Text)
	}
	// Nobody is there to be asked: the question is the answer, and the next turn of the
	// thread is the answer to it.
	if got := a.ask("ask", "thread", nil); got.End != core.KindDone || got.Text != "so \n\nWhich city?" {
		t.Errorf("asked to ask: got %s with %q, want the question", got.End, got.Text)
	}
	if got := a.ask("Ulm", "thread", nil); got.End != core.KindDone || got.Text != "you said Ulm" {
		t.Errorf("the next turn: got %s with %q (%v), want it to continue the task", got.End, got.Text, got.Fault)
	}
	a.WatchQuestions(question.View{Agent: "far", For: a.Identity().Principal})
	if got := a.ask("ask", "", nil); got.End != core.KindDone || got.Text != "so you said Ulm" {
		t.Errorf("asked to ask people: got %s with %q (%v), want their answer to count", got.End, got.Text, got.Fault)
	}
}

// continuesAfterACut cuts a stream in the middle, which goes on where it was.
func continuesAfterACut(t *testing.T, dir string) {
	r := startRemoteA2A(t, dir, "BINDING=JSONRPC")
	a := askFar(t, "http://"+r.addr())
	said := ""
	got := a.ask("hold", "", func(_ core.TaskID, e core.Event) {
		if b, ok := e.Body.(core.Text); ok {
			if said += b.Text; said == "one two " {
				r.cut()
				r.get("/release")
			}
		}
	})
	if got.End != core.KindDone || got.Text != "one two three" {
		t.Errorf("got %s with %q (%v), want the rest after the cut, once", got.End, got.Text, got.Fault)
	}
}

// failsWithItsAgent kills the agent in the middle of a stream.
func failsWithItsAgent(t *testing.T, dir string) {
	r := startRemoteA2A(t, dir, "BINDING=JSONRPC")
	a := askFar(t, "http://"+r.addr())
	said := ""
	got := a.ask("hold", "", func(_ core.TaskID, e core.Event) {
		if b, ok := e.Body.(core.Text); ok {
			if said += b.Text; said == "one two " {
				_ = r.cmd.Process.Kill()
			}
		}
	})
	if got.End != core.KindFailed || got.Fault.Code != core.CodeUnreachable || got.Text != "one two " {
		t.Errorf("got %s with %q (%v), want it unreachable", got.End, got.Text, got.Fault)
	}
}
