package e2e

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/proto/parallax/gateway"
)

// gatewayStream is the agent's end of a stream of the gateway.
type gatewayStream struct {
	*testing.T
	gateway.AgentGateway_ConnectClient
}

// connectGateway opens a stream on a connection of its own, as each agent does.
func connectGateway(t *testing.T, h *testHub, headers ...string) gatewayStream {
	t.Helper()
	conn, err := grpc.NewClient(h.service.Addresses().GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	stream, err := gateway.NewAgentGatewayClient(conn).Connect(metadata.AppendToOutgoingContext(t.Context(), headers...))
	if err != nil {
		t.Fatal(err)
	}
	return gatewayStream{t, stream}
}

func (g gatewayStream) mustSend(m *gateway.AgentToControlPlane) {
	g.Helper()
	if err := g.Send(m); err != nil {
		g.Fatal(err)
	}
}

func (g gatewayStream) hello(id string) {
	g.Helper()
	g.mustSend(&gateway.AgentToControlPlane{RequestId: "hello-" + id, Payload: &gateway.AgentToControlPlane_Hello{
		Hello: &gateway.AgentHello{AgentId: id, AgentName: "Edge", Capabilities: []string{"shouting"}},
	}})
}

func (g gatewayStream) mustRecv() *gateway.ControlPlaneToAgent {
	g.Helper()
	m, err := g.Recv()
	if err != nil {
		g.Fatal(err)
	}
	return m
}

func TestAGatewayAgentAnswersAPiClient(t *testing.T) {
	h := newTestHub(t, nil)
	agent := connectGateway(t, h)
	agent.hello("edge")
	if ack := agent.mustRecv().GetAck(); !ack.GetAccepted() {
		t.Fatalf("got %v, want it accepted first of all", ack)
	}
	c := connectPiClient(t, dialFrames(t, h.service.Addresses().Pi, "/", 64<<20))
	defer c.leave()
	x := c.begin(query{to: "edge", content: "hello"})
	m := agent.mustRecv()
	task := m.GetTaskRequest()
	if task.GetTaskDescription() != "hello" || task.GetData().GetFields()["content"].GetStringValue() != "hello" {
		t.Errorf("got %v, want what was asked as the task and in its data", task)
	}
	agent.mustSend(&gateway.AgentToControlPlane{RequestId: m.RequestId, Payload: &gateway.AgentToControlPlane_TaskResult{
		TaskResult: &gateway.TaskResult{TaskId: task.TaskId, ValueJson: `"HELLO"`, Confidence: 1},
	}})
	if got, want := x.wait(t), (outcome{End: "stop"}); got.End != want.End || !strings.Contains(x.text.String(), "HELLO") {
		t.Errorf("got %+v and %q, want %+v and HELLO", got, x.text.String(), want)
	}
}

func TestTheGatewayRequiresATokenIfTheHubDoes(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) { c.Auth.Tokens = tokensFile(t, "sample", "root") })
	if _, err := connectGateway(t, h).Recv(); status.Code(err) != codes.Unauthenticated {
		t.Errorf("without a token: got %v, want UNAUTHENTICATED", err)
	}
	agent := connectGateway(t, h, "authorization", "Bearer sample")
	agent.hello("edge")
	if ack := agent.mustRecv().GetAck(); !ack.GetAccepted() {
		t.Errorf("with one: got %v, want it accepted", ack)
	}
	if a, _ := h.service.Hub().Agent(core.Principal{Operator: true}, "edge"); !a.Principal.Authenticated {
		t.Errorf("got %+v, want it authenticated by its token", a.Principal)
	}
}

// installSDK installs the published package of Parallax and returns where. The package depends on
// one that the registry does not have and its code never uses: a stub replaces it, as for the
// package's own users.
func installSDK(t *testing.T, guides ...string) (dir string) {
	t.Helper()
	needs(t, "node", "npm")
	dir = t.TempDir()
	copySamples(t, dir, guides...)
	for name, text := range map[string]string{
		"package.json":      `{"private": true, "dependencies": {"@parallaxai/sdk-typescript": "0.4.0"}, "overrides": {"@prism-lang/confidence": "file:./stub"}}`,
		"stub/package.json": `{"name": "@prism-lang/confidence", "version": "1.2.7"}`,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	installNode(t, dir)
	return dir
}

// nodeProgram is a running program of Node and its output.
type nodeProgram struct {
	*testing.T
	out *bufio.Scanner
	cmd *exec.Cmd
}

// runNode runs a program of Node, which is killed when the test ends.
func runNode(t *testing.T, dir string, env []string, args ...string) nodeProgram {
	t.Helper()
	cmd := exec.Command("node", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait() // it was killed
	})
	return nodeProgram{t, bufio.NewScanner(out), cmd}
}

// waitLine waits for a line with the prefix and returns it.
func (p nodeProgram) waitLine(want string) string {
	p.Helper()
	for p.out.Scan() {
		p.Log(p.out.Text())
		if strings.HasPrefix(p.out.Text(), want) {
			return p.out.Text()
		}
	}
	p.Fatalf("it ended without printing %q: %v", want, p.out.Err())
	return ""
}

// printedAfter returns when a program has printed a line, by its own clock: the test may read it late.
func printedAfter(t *testing.T, line string) time.Duration {
	t.Helper()
	_, after, _ := strings.Cut(line, " @")
	ms, err := strconv.Atoi(after)
	if err != nil {
		t.Fatalf("got the line %q, want when it was printed behind it", line)
	}
	return time.Duration(ms) * time.Millisecond
}

func TestThePublishedSDKOfParallaxAnswersAPiClient(t *testing.T) {
	t.Parallel()
	dir := installSDK(t, "sdk.cjs")
	h := newTestHub(t, nil)
	run := func(id string) nodeProgram {
		return runNode(t, dir, []string{"HUB=" + h.service.Addresses().GRPC}, "sdk.cjs", id)
	}
	first := run("shout")
	first.waitLine("IN")
	card := h.await(t, "joined shout").(core.Card)
	if diff := cmp.Diff([]string{"Shouting Agent", "parallax", "shouting"}, append([]string{card.Name, card.Dialect}, card.Capabilities...)); diff != "" {
		t.Errorf("the agent differs (-want +got):\n%s", diff)
	}

	c := connectPiClient(t, dialFrames(t, h.service.Addresses().Pi, "/", 64<<20))
	defer c.leave()
	x := c.begin(query{to: "capability:shouting", content: "hello"})
	if got := x.wait(t); got.End != "stop" || !strings.Contains(x.text.String(), "HELLO") {
		t.Errorf("got %+v and %q, want HELLO", got, x.text.String())
	}
	ask := func(args ...string) int {
		t.Helper()
		code, _, _ := h.run(t, append([]string{"ask"}, args...)...)
		return code
	}
	if code := ask("shout", "fail"); code != command.ExitFailed {
		t.Errorf("asked to fail: got %d, want %d", code, command.ExitFailed)
	}
	// A second agent of the same id is refused, and its reconnects are slowed down.
	second := run("shout")
	took := -printedAfter(t, second.waitLine("OUT: Gateway rejected"))
	for range 2 {
		second.waitLine("Gateway stream ended")
	}
	took += printedAfter(t, second.waitLine("Gateway stream ended"))
	if took < 5*time.Second { // its own backoff is 1 s, then 2 s
		t.Errorf("it was refused twice more within %s, want each answer held up longer", took)
	}
	if code := ask("shout", "still here?"); code != command.ExitDone {
		t.Errorf("after that: got %d, want %d", code, command.ExitDone)
	}
}
