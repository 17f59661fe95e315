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

// guide is a sample agent of the Parallax page, which stands in testdata as the page
// has it.
type guide struct {
	file, capability, name string
	// needs are the programs that have to be there.
	needs []string
	// prepare installs the rest into a directory and returns the command.
	prepare func(t *testing.T, dir string) *exec.Cmd
	// steered tells that the agent fails and can be cancelled when it is asked to.
	steered bool
}

var guideAgents = []guide{
	{"agent.ts", "classification", "typescript-sample", []string{"node", "npm"}, prepareNode, true},
	{"agent.py", "analysis", "python-sample", []string{"python3", "apt-get", "dpkg-deb"}, preparePython, false},
}

// The sample agents of the page answer through a hub that asks for tokens, unchanged
// but for their address. What they need comes from npm and from Debian, into a
// directory of the test; nobody has to be root.
func TestTheSampleAgentsOfTheParallaxPageRunAsTheyStand(t *testing.T) {
	t.Parallel()
	for _, g := range guideAgents {
		t.Run(g.file, func(t *testing.T) {
			t.Parallel()
			needs(t, g.needs...)
			cmd := g.prepare(t, t.TempDir())
			s := newStage(t, func(c *config.Config) { c.Auth.Tokens = tokensFile(t, "sample", "root") })
			cmd.Env = append(cmd.Env, "HUB=ws://"+s.service.Addresses().HTTP+service.ParallaxPath, "TOKEN=sample")
			var said bytes.Buffer
			cmd.Stdout, cmd.Stderr = &said, &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			t.Cleanup(func() {
				_ = cmd.Process.Kill() // it may have ended
				<-ended
				t.Logf("%s said:\n%s", g.file, said.String())
			})
			card := s.await(t, "joined sample").(core.Card)
			if card.Name != g.name || card.Capabilities[0] != g.capability {
				t.Errorf("got %+v, want what the sample registers", card)
			}
			if a, _ := s.service.Hub().Agent(card.ID); !a.Principal.Authenticated {
				t.Errorf("got %+v, want it authenticated by its token", a.Principal)
			}
			g.asks(t, s)
		})
	}
}

// asks asks the agent, on the command line of an operator.
func (g guide) asks(t *testing.T, s *stage) {
	t.Helper()
	ask := func(args ...string) (string, int) {
		t.Helper()
		return runCommand(t, append(args, "--hub", "http://"+s.service.Addresses().HTTP, "--token", "root")...)
	}
	if out, code := ask("ask", "capability:"+g.capability, "hello"); code != command.ExitDone || strings.TrimSpace(out) != "HELLO" {
		t.Errorf("got %q and %d, want HELLO", out, code)
	}
	if !g.steered {
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

// prepareNode installs ws, and TypeScript to read the sample with.
func prepareNode(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	copyGuide(t, dir, "agent.ts", "run.cjs")
	installNode(t, dir, "--no-save", "ws@8", "typescript@5")
	cmd := exec.Command("node", filepath.Join(dir, "run.cjs"))
	cmd.Env = os.Environ()
	return cmd
}

// preparePython unpacks Debian's python3-websockets, whose lists it reads into
// a directory of its own: the machine's are root's.
func preparePython(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	copyGuide(t, dir, "agent.py", "run.py")
	for _, below := range []string{"state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, below), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	own := []string{
		"-q", "-o", "Dir::State=" + filepath.Join(dir, "state"), "-o", "Dir::State::status=/var/lib/dpkg/status",
		"-o", "Dir::Cache=" + filepath.Join(dir, "cache"), "-o", "APT::Sandbox::User=", "-o", "APT::Update::Post-Invoke-Success::=", "-o", "APT::Update::Post-Invoke::=",
		// What fails is to fail, and soon.
		"-o", "APT::Update::Error-Mode=any", "-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=20", "-o", "Acquire::https::Timeout=20",
	}
	install(t, dir, "apt-get", append(own, "update")...)
	install(t, dir, "apt-get", append(own, "download", "python3-websockets")...)
	packages, err := filepath.Glob(filepath.Join(dir, "python3-websockets_*.deb"))
	if err != nil || len(packages) != 1 {
		t.Fatalf("got %q and %v, want one package", packages, err)
	}
	install(t, dir, "dpkg-deb", "-x", packages[0], dir)
	cmd := exec.Command("python3", "-u", filepath.Join(dir, "run.py"))
	cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(dir, "usr/lib/python3/dist-packages"))
	return cmd
}

func copyGuide(t *testing.T, dir string, files ...string) {
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
