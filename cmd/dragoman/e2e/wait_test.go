package e2e

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
)

// agentProgram runs the program as an agent, and returns its log.
func agentProgram(t *testing.T, env []string, args ...string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := program(t, append([]string{"agent"}, args...)...)
	cmd.Env = append(withoutVariables(cmd.Env), env...)
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

// The address of the hub's gRPC listener is looked up.
func TestAnAgentOfAnyDialectNeedsOnlyTheHubsAddress(t *testing.T) {
	h := newTestHub(t, nil)
	for _, dialect := range []string{coven.Name, parallax.Dialect, acp.Dialect} {
		agentProgram(t, []string{"DRAGOMAN_HUB=http://" + h.service.Addresses().HTTP}, "--dialect", dialect, "--name", "by variable "+dialect, "--", "cat")
		agentProgram(t, nil, "--dialect", dialect, "--name", "by flag "+dialect, "--hub", h.url(), "--", "cat")
		h.await(t, "joined by variable "+dialect)
		h.await(t, "joined by flag "+dialect)
	}
	// A flag wins over the hub's answer.
	agentProgram(t, nil, "--dialect", coven.Name, "--name", "overridden", "--hub", "http://"+fixedAddr(t), "--grpc-addr", h.service.Addresses().GRPC, "--", "cat")
	h.await(t, "joined overridden")
}

func TestACovenAgentIsToldThatTheHubServesNoGRPC(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) { c.GRPCAddr = "" })
	hub := h.url()
	code, _, stderr := run(t, "agent", "--dialect", coven.Name, "--name", "a", "--hub", hub, "--", "cat")
	want := "the hub at " + hub + " names no gRPC address that can be reached from here: start it with one, or name it with --grpc-addr"
	if code != command.ExitFailed || !strings.Contains(stderr, want) {
		t.Errorf("got %d and %q, want %d and %q", code, stderr, command.ExitFailed, want)
	}
}

func TestAgentWaitsForAHub(t *testing.T) {
	addr := fixedAddr(t)
	printed := map[string]*bufio.Reader{}
	for _, dialect := range []string{coven.Name, parallax.Dialect} {
		_, printed[dialect] = agentProgram(t, nil, "--dialect", dialect, "--name", dialect, "--hub", "http://"+addr, "--wait", "--", "cat")
	}
	for dialect, log := range printed {
		if line, err := log.ReadString('\n'); !strings.Contains(line, "waiting for a hub") || !strings.Contains(line, "no hub answers at http://"+addr) {
			t.Errorf("%s: got %q and %v, want it to say that it waits, and why", dialect, line, err)
		}
	}
	h := newTestHub(t, func(c *config.Config) { c.HTTPAddr = addr })
	for dialect := range printed {
		h.await(t, "joined "+dialect)
	}
}

func TestAskWaitsForAHubAndAnAgent(t *testing.T) {
	addr := fixedAddr(t)
	cmd := program(t, "ask", "--hub", "http://"+addr, "--wait", "kettle", "hello")
	var answer bytes.Buffer
	cmd.Stdout = &answer
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	printed := bufio.NewReader(stderr)
	if line, err := printed.ReadString('\n'); !strings.HasPrefix(line, "[waiting up to 5m: no hub answers at http://"+addr) {
		t.Fatalf("got %q and %v, want it to say that it waits, and why", line, err)
	}
	h := newTestHub(t, func(c *config.Config) { c.HTTPAddr = addr })
	agentProgram(t, nil, "--dialect", acp.Dialect, "--name", "kettle", "--hub", "http://"+addr, "--", "tr", "a-z", "A-Z")
	h.await(t, "joined kettle")
	rest, _ := io.ReadAll(printed)
	if err := cmd.Wait(); err != nil || answer.String() != "HELLO\n" || len(rest) > 0 {
		t.Errorf("got %v, %q and %q, want HELLO and an empty stderr", err, answer.String(), rest)
	}
}

func TestAskThatWaitsForAnAgentLeavesNoFailedTask(t *testing.T) {
	tier.Full(t, "it waits between tries to ask, for longer each time")
	for to, flags := range map[string][]string{
		"kettle":                nil,
		"capability:tea,coffee": {"--capability", "tea", "--capability", "coffee"},
		"domain:kitchen.hot":    {"--domain", "kitchen.*"},
		"*":                     nil,
	} {
		t.Run(to, func(t *testing.T) {
			h := newTestHub(t, nil)
			if to != "*" { // an agent that does not answer for the address
				agentProgram(t, nil, "--dialect", acp.Dialect, "--name", "pot", "--capability", "tea", "--domain", "kitchen.cold", "--hub", h.url(), "--", "cat")
				h.await(t, "joined pot")
			}
			at, tries := countTries(t, h)
			asked := make(chan string, 1)
			go func() {
				code, answer, stderr := run(t, "ask", "--hub", at, "--wait", to, "hello")
				if code != command.ExitDone {
					t.Errorf("got %d and %s, want it answered", code, stderr)
				}
				asked <- answer
			}()
			awaitTries(t, tries, 4)
			agentProgram(t, nil, slices.Concat([]string{"--dialect", acp.Dialect, "--name", "kettle"}, flags, []string{"--hub", h.url(), "--", "tr", "a-z", "A-Z"})...)
			if answer := <-asked; answer != "HELLO\n" {
				t.Errorf("got %q, want HELLO", answer)
			}
			if _, tasks, _ := run(t, "tasks", "--hub", h.url()); strings.Contains(tasks, "failed") || strings.Count(tasks, "done") != 1 {
				t.Errorf("got the tasks\n%s\nwant one, which is done", tasks)
			}
		})
	}
}

// countTries returns an address at which the hub is reached, and a channel that has a value for each request that asks
// an agent or looks for one.
func countTries(t *testing.T, h *testHub) (at string, tries <-chan struct{}) {
	t.Helper()
	to, err := url.Parse(h.url())
	if err != nil {
		t.Fatal(err)
	}
	counted := make(chan struct{}, 1000)
	pass := httputil.NewSingleHostReverseProxy(to)
	pass.FlushInterval = -1 // events are passed on at once
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex() // else an answer that comes before the request was passed on ends both
		pass.ServeHTTP(w, r)
		if r.URL.Path == "/v1/tasks" || strings.HasPrefix(r.URL.Path, "/v1/agents") {
			counted <- struct{}{}
		}
	}))
	t.Cleanup(proxy.Close)
	return proxy.URL, counted
}

// awaitTries waits for a number of tries.
func awaitTries(t *testing.T, tries <-chan struct{}, want int) {
	t.Helper()
	timeout := time.After(watchdog)
	for got := range want {
		select {
		case <-tries:
		case <-timeout:
			t.Fatalf("got %d tries within %s, want %d", got, watchdog, want)
		}
	}
}

// An ACP peer without capabilities can be asked, but is not in the list of agents before.
func TestAskWaitsForAPeerThatIsFoundByItsIDAlone(t *testing.T) {
	h := newTestHub(t, nil)
	at, tries := countTries(t, h)
	asked := make(chan string, 1)
	go func() {
		_, answer, _ := run(t, "ask", "--hub", at, "--wait=1m", "quiet", "hello")
		asked <- answer
	}()
	awaitTries(t, tries, 2)
	connectQuietPeer(t, h).answer("yes")
	if answer := <-asked; answer != "yes\n" {
		t.Errorf("got %q, want yes", answer)
	}
}

// Who may ask an agent but not see it does not find it: see docs/rights.md.
func TestAskThatMayNotSeeTheAgentWaitsInVain(t *testing.T) {
	tier.Full(t, "it waits until ask gives up, a second for each address")
	h := newTestHub(t, ruled(t, `  - {who: alice, may: ask, to: "*"}`))
	agentProgram(t, nil, "--dialect", acp.Dialect, "--name", "kettle", "--capability", "tea", "--token", "bob", "--hub", h.url(), "--", "cat")
	h.await(t, "joined kettle")
	for to, want := range map[string]string{
		"kettle":         `no agent "kettle" is here`,
		"capability:tea": "no agent here has the capability tea",
		"*":              "no agent is here to ask",
	} {
		code, _, stderr := run(t, "ask", "--hub", h.url(), "--token", "alice", "--wait=1s", to, "hello")
		if code != command.ExitFailed || !strings.Contains(stderr, "dragoman: gave up after 1s: "+want) {
			t.Errorf("%s: got %d and %q, want %d and %q", to, code, stderr, command.ExitFailed, want)
		}
	}
	if _, tasks, _ := run(t, "tasks", "--hub", h.url(), "--token", "root"); tasks != "" {
		t.Errorf("got the tasks\n%s\nwant none", tasks)
	}
}

func TestWaitGivesUpWithTheTimeAndTheReason(t *testing.T) {
	h := newTestHub(t, nil)
	hub, unused := h.url(), "http://"+fixedAddr(t)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"agent", "--dialect", acp.Dialect, "--name", "a", "--wait=1ms", "--hub", unused, "--", "cat"}, "dragoman: gave up after 1ms: no hub answers at " + unused + ": start one"},
		{[]string{"agent", "--dialect", coven.Name, "--name", "a", "--wait=1ms", "--hub", unused, "--", "cat"}, "dragoman: gave up after 1ms: no hub answers at " + unused + ": start one"},
		{[]string{"ask", "--wait=1ms", "--hub", unused, "a", "b"}, "dragoman: gave up after 1ms: no hub answers at " + unused},
		{[]string{"ask", "--wait=1ms", "--hub", hub, "a", "b"}, `dragoman: gave up after 1ms: no agent "a" is here; 'dragoman agents`},
		{[]string{"agent", "--wait", "--hub", hub, "--dialect", "acp", "--name", "a", "1ms", "--", "cat"}, "1ms would be the command: write --wait=1ms"},
		{[]string{"ask", "--wait", "1ms", "a", "b", "--hub", hub}, "1ms would be the agent to ask: write --wait=1ms"},
	} {
		code, _, stderr := run(t, tt.args...)
		if !strings.Contains(stderr, tt.want) || code == command.ExitDone {
			t.Errorf("dragoman %q: got %d and %q, want %q", tt.args, code, stderr, tt.want)
		}
	}
	if code, _, stderr := run(t, "ask", "--wait", "--hub", hub, "--data", `"x"`, "capability:none", "--thread", "t", "b", "--max-tokens", "-1"); code != command.ExitUsage {
		t.Errorf("an invalid command line: got %d and %q, want it refused at once", code, stderr)
	}
}

func TestAgentsAreListedWithTheirNames(t *testing.T) {
	h := newTestHub(t, nil)
	h.startAgent(t, parallax.Dialect, "actor", 1)
	_, out, _ := run(t, "agents", "--hub", h.url())
	head, row, _ := strings.Cut(out, "\n")
	if !strings.HasPrefix(head, "ID ") || strings.Fields(head)[1] != "NAME" || !strings.Contains(row, "the agent actor") {
		t.Errorf("got\n%s\nwant the column NAME", out)
	}
}

func TestAskAndAgentWaitForAHubThatIsDrained(t *testing.T) {
	addr := fixedAddr(t)
	h := newTestHub(t, func(c *config.Config) { c.HTTPAddr = addr })
	if code, _, stderr := run(t, "drain", "--hub", h.url()); code != command.ExitDone {
		t.Fatalf("draining: got %d and %s", code, stderr)
	}
	asker := program(t, "ask", "--hub", h.url(), "--wait", "kettle", "hello")
	var answer bytes.Buffer
	asker.Stdout = &answer
	stderr, err := asker.StderrPipe()
	if err == nil {
		err = asker.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stderr).ReadString('\n'); !strings.HasPrefix(line, "[waiting up to 5m: the hub is stopping (an operator drains it)") {
		t.Errorf("ask: got %q and %v, want it to say that it waits, and why", line, err)
	}
	_, agent := agentProgram(t, nil, "--dialect", coven.Name, "--name", "kettle", "--hub", h.url(), "--wait", "--", "tr", "a-z", "A-Z")
	if line, err := agent.ReadString('\n'); !strings.Contains(line, "waiting for a hub") {
		t.Errorf("agent: got %q and %v, want it to say that it waits", line, err)
	}
	if err := h.service.Stop(t.Context(), "it is started again"); err != nil {
		t.Fatal(err)
	}
	newTestHub(t, func(c *config.Config) { c.HTTPAddr = addr })
	if err := asker.Wait(); err != nil || answer.String() != "HELLO\n" {
		t.Errorf("got %v and %q, want HELLO", err, answer.String())
	}
}
