package e2e

import (
	"bufio"
	"bytes"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

// agentProgram runs the program as an agent, and returns what it logs.
func agentProgram(t *testing.T, env []string, args ...string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := program(t, append([]string{"agent"}, args...)...)
	cmd.Env = append(config.WithoutVariables(cmd.Env), env...)
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_, _ = io.Copy(io.Discard, stderr)
		_ = cmd.Wait()
	})
	return cmd, bufio.NewReader(stderr)
}

// Whoever knows where the hub is need not know where it serves gRPC.
func TestAnAgentOfEveryDialectNeedsTheAddressOfTheHubAlone(t *testing.T) {
	s := newStage(t, nil)
	for _, dialect := range []string{coven.Name, parallax.Dialect, acp.Dialect} {
		agentProgram(t, []string{"DRAGOMAN_HUB=http://" + s.service.Addresses().HTTP}, "--dialect", dialect, "--name", "by variable "+dialect, "--", "cat")
		agentProgram(t, nil, "--dialect", dialect, "--name", "by flag "+dialect, "--hub", "http://"+s.service.Addresses().HTTP, "--", "cat")
		s.await(t, "joined by variable "+dialect)
		s.await(t, "joined by flag "+dialect)
	}
	// What a flag says wins over what the hub says.
	agentProgram(t, nil, "--dialect", coven.Name, "--name", "overridden", "--hub", "http://"+closedDoor(t), "--grpc-addr", s.service.Addresses().GRPC, "--", "cat")
	s.await(t, "joined overridden")
}

func TestAHubThatServesNoGRPCIsSaidSoToAnAgentOfCoven(t *testing.T) {
	s := newStage(t, func(c *config.Config) { c.GRPCAddr = "" })
	hub := "http://" + s.service.Addresses().HTTP
	code, _, complaint := typed(t, "agent", "--dialect", coven.Name, "--name", "a", "--hub", hub, "--", "cat")
	want := "the hub at " + hub + " names no gRPC address that can be reached from here: start it with one, or name it with --grpc-addr"
	if code != command.ExitFailed || !strings.Contains(complaint, want) {
		t.Errorf("got %d and %q, want %d and %q", code, complaint, command.ExitFailed, want)
	}
}

func TestAnAgentWaitsForAHubThatIsNotThereYet(t *testing.T) {
	addr := closedDoor(t)
	said := map[string]*bufio.Reader{}
	for _, dialect := range []string{coven.Name, parallax.Dialect} {
		_, said[dialect] = agentProgram(t, nil, "--dialect", dialect, "--name", dialect, "--hub", "http://"+addr, "--wait", "--", "cat")
	}
	for dialect, log := range said {
		if line, err := log.ReadString('\n'); !strings.Contains(line, "waiting for a hub") || !strings.Contains(line, "no hub answers at http://"+addr) {
			t.Errorf("%s: got %q and %v, want it to say that it waits, and why", dialect, line, err)
		}
	}
	s := newStage(t, func(c *config.Config) { c.HTTPAddr = addr })
	for dialect := range said {
		s.await(t, "joined "+dialect)
	}
}

func TestAPersonWaitsForAHubAndAnAgentThatAreNotThereYet(t *testing.T) {
	addr := closedDoor(t)
	asks := program(t, "ask", "--hub", "http://"+addr, "--wait", "kettle", "hello")
	var answer bytes.Buffer
	asks.Stdout = &answer
	stderr, err := asks.StderrPipe()
	if err == nil {
		err = asks.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	said := bufio.NewReader(stderr)
	if line, err := said.ReadString('\n'); !strings.HasPrefix(line, "[waiting up to 5m0s: no hub answers at http://"+addr) {
		t.Fatalf("got %q and %v, want it to say that it waits, and why", line, err)
	}
	s := newStage(t, func(c *config.Config) { c.HTTPAddr = addr })
	agentProgram(t, nil, "--dialect", acp.Dialect, "--name", "kettle", "--hub", "http://"+addr, "--", "tr", "a-z", "A-Z")
	s.await(t, "joined kettle")
	rest, _ := io.ReadAll(said)
	if err := asks.Wait(); err != nil || answer.String() != "HELLO\n" || len(rest) > 0 {
		t.Errorf("got %v, %q and %q, want HELLO and nothing more said", err, answer.String(), rest)
	}
}

func TestWhoWaitsInVainIsToldForHowLongAndForWhom(t *testing.T) {
	s := newStage(t, nil)
	hub, nobody := "http://"+s.service.Addresses().HTTP, "http://"+closedDoor(t)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"agent", "--dialect", acp.Dialect, "--name", "a", "--wait=1ms", "--hub", nobody, "--", "cat"}, "dragoman: gave up after 1ms: no hub answers at " + nobody + ": start one"},
		{[]string{"agent", "--dialect", coven.Name, "--name", "a", "--wait=1ms", "--hub", nobody, "--", "cat"}, "dragoman: gave up after 1ms: no hub answers at " + nobody + ": start one"},
		{[]string{"ask", "--wait=1ms", "--hub", nobody, "a", "b"}, "dragoman: gave up after 1ms: no hub answers at " + nobody},
		{[]string{"ask", "--wait=1ms", "--hub", hub, "a", "b"}, `dragoman: gave up after 1ms: no agent "a" is here; 'dragoman agents`},
		{[]string{"agent", "--wait", "--hub", hub, "--dialect", "acp", "--name", "a", "1ms", "--", "cat"}, "1ms would be the command: write --wait=1ms"},
		{[]string{"ask", "--wait", "1ms", "a", "b", "--hub", hub}, "1ms would be the agent to ask: write --wait=1ms"},
	} {
		code, _, complaint := typed(t, tt.args...)
		if !strings.Contains(complaint, tt.want) || code == command.ExitDone {
			t.Errorf("dragoman %q: got %d and %q, want %q", tt.args, code, complaint, tt.want)
		}
	}
	if code, _, complaint := typed(t, "ask", "--wait", "--hub", hub, "--data", `"x"`, "capability:none", "--thread", "t", "b", "--max-tokens", "-1"); code != command.ExitUsage {
		t.Errorf("what is wrong in itself: got %d and %q, want it refused at once", code, complaint)
	}
}

func TestAgentsAreListedWithTheirNames(t *testing.T) {
	s := newStage(t, nil)
	s.cast(t, parallax.Dialect, "actor", 1)
	_, out, _ := typed(t, "agents", "--hub", "http://"+s.service.Addresses().HTTP)
	head, row, _ := strings.Cut(out, "\n")
	if !strings.HasPrefix(head, "ID ") || strings.Fields(head)[1] != "NAME" || !strings.Contains(row, "the agent actor") {
		t.Errorf("got\n%s\nwant the column NAME", out)
	}
}
