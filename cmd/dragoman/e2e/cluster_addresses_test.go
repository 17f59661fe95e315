package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

// Agents of every dialect that know the addresses of several hubs join one that serves, and go to the next
// one when theirs is drained or dies. So do the commands.
func TestAgentsGoToTheNextOfSeveralAddresses(t *testing.T) {
	t.Parallel()
	all := startCluster(t, 3)
	a, b, c := all[0], all[1], all[2]
	addresses := "http://" + fixedAddr(t) + "," + a.URL + "/, " + b.URL
	agents := map[string][]string{
		"coven":    {"--dialect", "coven", "--", "tr", "a-z", "A-Z"},
		"parallax": {"--dialect", "parallax", "--", "tr", "a-z", "A-Z"},
		"acp":      {"--dialect", "acp", "--", "tr", "a-z", "A-Z"},
		"native":   {"--dialect", "native", "--", "tr", "a-z", "A-Z"},
	}
	if python, err := exec.LookPath("python3"); err == nil {
		agents["parrot"] = []string{"--speaks", "native", "--", python, "../../../docs/examples/native/agent.py"}
	} else {
		t.Log("NOT RUN with a native command: there is no python3")
	}
	ctx, leave := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer leave()
	for name, args := range agents {
		running.Go(func() {
			code, _, stderr := runWith(ctx, "", append([]string{"agent", "--name", name, "--hub", addresses}, args...)...)
			if code != command.ExitDone {
				t.Errorf("agent %s: got the exit code %d and %q, want it to stay", name, code, stderr)
			}
		})
	}
	c.untilAllAt(agents, a)
	for name := range agents {
		if code, out, stderr := run(t, "ask", name, "hello", "--hub", addresses); code != command.ExitDone || !strings.Contains(strings.ToLower(out), "hello") {
			t.Errorf("asking %s at the first hub that answers: got %d, %q and %q, want its answer", name, code, out, stderr)
		}
	}
	if code, _, stderr := run(t, "drain", "--hub", a.URL); code != command.ExitDone {
		t.Fatalf("dragoman drain: got %d and %q, want the hub empty", code, stderr)
	}
	c.untilAllAt(agents, b)
	if code := a.interrupt(); code != 0 {
		t.Errorf("stopping the drained hub: got the exit code %d, want 0", code)
	}
	a.start()
	all.untilAllUp()
	b.kill()
	c.untilAllAt(agents, a)
}

// untilAllAt waits until the agents are all at a hub, as this one sees it.
func (h *clusterHub) untilAllAt(agents map[string][]string, at *clusterHub) {
	h.t.Helper()
	h.until("all agents are at hub "+at.name, func() error {
		var v struct{ Agents []struct{ ID, Hub string } }
		if err := h.Get(h.t.Context(), "/v1/agents", &v); err != nil {
			return err
		}
		here := 0
		for _, one := range v.Agents {
			if _, is := agents[one.ID]; is && one.Hub == at.name {
				here++
			}
		}
		return notYet(here == len(agents), fmt.Sprintf("the agents are %+v", v.Agents))
	})
}
