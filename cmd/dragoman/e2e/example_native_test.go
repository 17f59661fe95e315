package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/native"
	nativeclient "github.com/dragoman-hub/dragoman/adapters/native/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/install"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
)

// nativeExamples has the example agents of the documentation.
const nativeExamples = "../../../docs/examples/native"

// loud is an agent that the examples ask.
var loud = config.Agent{Name: "loud", Dialect: "text", Process: config.Process{Command: []string{"tr", "a-z", "A-Z"}}}

// exampleRun is how an example agent is run.
type exampleRun struct {
	name string
	id   string // of the agent
	// needs are the programs that must be installed.
	needs []string
	// start starts it, for a hub that accepts WebSockets at the address.
	start func(t *testing.T, h *testHub, dir, hub string)
}

var exampleRuns = []exampleRun{
	{"TypeScript", "parrot-ts", []string{"node", "npm"}, startTypeScript},
	{"Python over WebSocket", "parrot-py", []string{"python3", "apt-get", "dpkg-deb"}, startPython},
	{"Python as a child", "kid", []string{"python3"}, startPythonChild},
}

func TestTheNativeExamplesDoWhatTheySay(t *testing.T) {
	t.Parallel()
	for _, e := range exampleRuns {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			needs(t, e.needs...)
			h := newTestHub(t, func(c *config.Config) { c.Agents = config.Agents{loud} })
			e.start(t, h, t.TempDir(), "ws://"+h.service.Addresses().HTTP+service.NativePath)
			card := h.await(t, "joined "+e.id).(core.Card)
			if card.Name != "Parrot" && card.Name != "Kid" || card.MaxConcurrent != 4 || !card.Features.Has(core.FeatureApprovals) {
				t.Errorf("got %+v, want the card of the example", card)
			}
			checkExample(t, h, e.id)
		})
	}
}

// A child of the settings joins, works, and is started again when it is lost in a task.
func TestANativeChildOfTheSettingsIsStartedAgain(t *testing.T) {
	t.Parallel()
	needs(t, "python3")
	path, err := filepath.Abs(filepath.Join(nativeExamples, "agent.py"))
	if err != nil {
		t.Fatal(err)
	}
	h := newTestHub(t, func(c *config.Config) {
		c.Agents = config.Agents{loud, {Name: "kid", Dialect: native.Dialect, Process: config.Process{Command: []string{"python3", path}}, Capabilities: []string{"play"}}}
	})
	checkExample(t, h, "kid")
	if a, _ := h.service.Hub().Agent(core.Principal{Operator: true}, "kid"); strings.Join(a.Capabilities, " ") != "play parrot" || a.Name != "kid" || a.MaxConcurrent != 4 {
		t.Errorf("got %+v, want the settings and what the child adds", a.Card)
	}
	f := dialFrames(t, h.service.Addresses().HTTP, service.NativePath, client.MaxNativeBytes)
	p := &nativePeer{frames: f, client: nativeclient.New(context.Background(), f, nativeclient.Options{})}
	defer p.leave()
	x := p.begin(query{to: "kid", content: "wait", deadline: ample})
	x.waitText(t, "waiting ")
	if err := killPID(childOf(h, "kid").PID); err != nil {
		t.Fatal(err)
	}
	if got := x.wait(t); got.End != "failed" || got.Code != "unreachable" || got.Retry != "true" || got.Text != "waiting " {
		t.Errorf("got %+v, want it failed as unreachable", got)
	}
	if got := p.begin(query{to: "kid", content: "back again", deadline: ample}).wait(t); got.Text != "back again " {
		t.Errorf("got %+v, want it to have waited for the next start", got)
	}
	if got := childOf(h, "kid"); got.State != core.ChildReady || got.Restarts != 1 {
		t.Errorf("got %+v, want it ready after one restart", got)
	}
}

// childOf returns the state of an agent of the settings.
func childOf(h *testHub, id core.AgentID) core.Child {
	a, _ := h.service.Hub().Agent(core.Principal{Operator: true}, id)
	if a.Child == nil {
		return core.Child{}
	}
	return *a.Child
}

// checkExample has the agent stream, use a tool, ask for an approval, take context and be cancelled.
func checkExample(t *testing.T, h *testHub, id string) {
	t.Helper()
	f := dialFrames(t, h.service.Addresses().HTTP, service.NativePath, client.MaxNativeBytes)
	p := &nativePeer{frames: f, client: nativeclient.New(context.Background(), f, nativeclient.Options{})}
	defer p.leave()
	ask := func(content string) *exchange { return p.begin(query{to: id, content: content, deadline: ample}) }
	done := func(x *exchange, text string) {
		t.Helper()
		if got := x.wait(t); got.End != "done" || !strings.Contains(got.Text, text) {
			t.Errorf("got %+v, want it done with %q", got, text)
		}
	}
	x := ask("good day to you")
	done(x, "good day to you ")
	if x.chunks != 4 {
		t.Errorf("got %d pieces, want a piece for each word", x.chunks)
	}
	self, _ := h.service.Hub().Agent(core.Principal{Operator: true}, core.AgentID(id))
	done(ask("agents"), self.Name)
	done(ask("ask loud hello there"), "loud says: HELLO THERE")
	for approved, text := range map[bool]string{true: "completed", false: "denied"} {
		x = ask("delete it all")
		x.waitReport(t, "approval")
		if err := x.decide(t.Context(), approved); err != nil {
			t.Fatal(err)
		}
		done(x, text)
	}
	x = ask("wait")
	x.waitText(t, "waiting ")
	if err := x.inject(t.Context(), "no more"); err != nil {
		t.Fatal(err)
	}
	done(x, "waiting no more")
	if got := x.reportsOf("injection"); len(got) != 1 || got[0] != "taken true" {
		t.Errorf("got %q, want the context taken", got)
	}
	x = ask("wait")
	x.waitText(t, "waiting ")
	if err := x.cancel(t.Context(), "enough"); err != nil {
		t.Fatal(err)
	}
	if got := x.wait(t); got.End != "cancelled" || got.Message != "as you wish" || got.Text != "waiting " {
		t.Errorf("got %+v, want it cancelled by the agent", got)
	}
	done(ask("still here"), "still here ")
}

// startExample starts a command whose output is logged if the test fails.
func startExample(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	var printed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &printed
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		<-ended
		if t.Failed() {
			t.Logf("it printed:\n%s", printed.String())
		}
	})
}

// startTypeScript compiles the example, since not every Node runs TypeScript, and checks its types.
func startTypeScript(t *testing.T, _ *testHub, dir, hub string) {
	t.Helper()
	installNode(t, dir, "--no-save", "ws@8.21.0", "@types/ws@8.18.1", "@types/node@20.19.25", "typescript@5.9.3")
	source, err := filepath.Abs(filepath.Join(nativeExamples, "agent.ts"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(source)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "agent.mts"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	install.Run(t, dir, filepath.Join(dir, "node_modules/.bin/tsc"), "--strict", "--target", "es2022", "--module", "nodenext", "--skipLibCheck", "agent.mts")
	startExample(t, exec.Command("node", filepath.Join(dir, "agent.mjs"), hub))
}

func startPython(t *testing.T, _ *testHub, dir, hub string) {
	t.Helper()
	cmd := exec.Command("python3", filepath.Join(nativeExamples, "agent.py"), hub)
	cmd.Env = append(os.Environ(), installWebsockets(t, dir))
	startExample(t, cmd)
}

// startPythonChild runs the example as a child of dragoman agent, which passes its frames on.
func startPythonChild(t *testing.T, h *testHub, _, _ string) {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(nativeExamples, "agent.py"))
	if err != nil {
		t.Fatal(err)
	}
	startExample(t, program(t, "agent", "--speaks", "native", "--id", "kid", "--name", "Kid", "--concurrent", "4", "--hub", h.url(), "--", "python3", path))
}
