package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
)

// sampleAgent is a sample agent of the Parallax page, which testdata has as the page shows it.
type sampleAgent struct {
	file, capability, name string
	// needs are the programs that must be installed.
	needs []string
	// prepare installs the rest into a directory and returns the command.
	prepare func(t *testing.T, dir string) *exec.Cmd
	// canFail is set if the agent fails and can be cancelled on request.
	canFail bool
}

var sampleAgents = []sampleAgent{
	{"agent.ts", "classification", "typescript-sample", []string{"node", "npm"}, prepareNode, true},
	{"agent.py", "analysis", "python-sample", []string{"python3", "apt-get", "dpkg-deb"}, preparePython, false},
}

// The sample agents of the page answer through a hub that requires tokens, unchanged except for its
// address. Their dependencies come from npm and Debian and go into a directory of the test; root is
// not needed.
func TestTheSampleAgentsOfTheParallaxPageRun(t *testing.T) {
	t.Parallel()
	for _, g := range sampleAgents {
		t.Run(g.file, func(t *testing.T) {
			t.Parallel()
			needs(t, g.needs...)
			cmd := g.prepare(t, t.TempDir())
			h := newTestHub(t, func(c *config.Config) { c.Auth.Tokens = tokensFile(t, "sample", "root") })
			cmd.Env = append(cmd.Env, "HUB=ws://"+h.service.Addresses().HTTP+service.ParallaxPath, "TOKEN=sample")
			var printed bytes.Buffer
			cmd.Stdout, cmd.Stderr = &printed, &printed
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			t.Cleanup(func() {
				_ = cmd.Process.Kill() // it may have ended
				<-ended
				t.Logf("%s printed:\n%s", g.file, printed.String())
			})
			card := h.await(t, "joined sample").(core.Card)
			if card.Name != g.name || card.Capabilities[0] != g.capability {
				t.Errorf("got %+v, want what the sample registers", card)
			}
			if a, _ := h.service.Hub().Agent(core.Principal{Operator: true}, card.ID); !a.Principal.Authenticated {
				t.Errorf("got %+v, want it authenticated by its token", a.Principal)
			}
			g.check(t, h)
		})
	}
}

// check asks the agent on the command line of an operator.
func (g sampleAgent) check(t *testing.T, h *testHub) {
	t.Helper()
	ask := func(args ...string) (string, int) {
		t.Helper()
		code, out, _ := h.run(t, append(args, "--token", "root")...)
		return out, code
	}
	if out, code := ask("ask", "capability:"+g.capability, "hello"); code != command.ExitDone || strings.TrimSpace(out) != "HELLO" {
		t.Errorf("got %q and %d, want HELLO", out, code)
	}
	if !g.canFail {
		return
	}
	if _, code := ask("ask", "sample", "fail"); code != command.ExitFailed {
		t.Errorf("asked to fail: got %d, want %d", code, command.ExitFailed)
	}
	if _, code := ask("ask", "--timeout", "1s", "sample", "wait"); code != command.ExitTimeout {
		t.Errorf("asked to wait too long: got %d, want %d", code, command.ExitTimeout)
	}
	if out, code := ask("ask", "sample", "still here?"); code != command.ExitDone || strings.TrimSpace(out) != "STILL HERE?" {
		t.Errorf("after that: got %q and %d, want it still here", out, code)
	}
}

// prepareNode installs ws, and TypeScript to run the sample.
func prepareNode(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	copySamples(t, dir, "agent.ts", "run.cjs")
	installNode(t, dir, "--no-save", "ws@8", "typescript@5")
	cmd := exec.Command("node", filepath.Join(dir, "run.cjs"))
	cmd.Env = os.Environ()
	return cmd
}

// preparePython installs what the sample needs.
func preparePython(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	copySamples(t, dir, "agent.py", "run.py")
	cmd := exec.Command("python3", "-u", filepath.Join(dir, "run.py"))
	cmd.Env = append(os.Environ(), installWebsockets(t, dir))
	return cmd
}

// installWebsockets unpacks Debian's python3-websockets into a directory, and returns the variable
// by which Python finds it.
func installWebsockets(t *testing.T, dir string) (variable string) {
	t.Helper()
	installDebian(t, dir, "python3-websockets")
	return "PYTHONPATH=" + filepath.Join(dir, "usr/lib/python3/dist-packages")
}

func copySamples(t *testing.T, dir string, files ...string) {
	t.Helper()
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join("testdata/parallax", f))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, f), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
