package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/coven"
)

// The published SDK of the editors' protocol, as an editor: its schema checks everything that it
// gets.
func TestTheSDKOfEditorsAsksACovenAgent(t *testing.T) {
	t.Parallel()
	needs(t, "node", "npm")
	dir := t.TempDir()
	source, err := os.ReadFile("testdata/editor/client.mjs")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "client.mjs"), source, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	installNode(t, dir, "--no-save", "@agentclientprotocol/sdk@2.4.0")
	h := newTestHub(t, nil)
	h.startAgent(t, coven.Name, "coder", 4)

	bridge := program(t, "editor", "--agent", "coder", "--hub", h.url())
	args, err := json.Marshal(bridge.Args)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", "client.mjs")
	cmd.Dir, cmd.Env = dir, append(bridge.Environ(), "EDITOR_COMMAND="+string(args))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	type turn struct {
		StopReason  string
		Agent, User string
		Kinds       []string
		Permissions []struct {
			SessionID string
			ToolCall  struct{ ToolCallID, Title string }
		}
	}
	var got struct {
		SessionID  string
		Initialize struct {
			ProtocolVersion   int
			AgentCapabilities struct{ LoadSession bool }
		}
		Tool, Leave, Hang, Load turn
		Fail, Unknown           struct {
			Code    int
			Message string
		}
		List struct {
			Sessions []struct{ SessionID, CWD, Title string }
		}
		Exit int
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s\n%s", err, out, stderr.String())
	}
	if got.Initialize.ProtocolVersion != 1 || !got.Initialize.AgentCapabilities.LoadSession {
		t.Errorf("initialize: got %+v", got.Initialize)
	}
	if got.Tool.StopReason != "end_turn" || got.Tool.Agent != shortAnswer("k1") || !slices.Contains(got.Tool.Kinds, "tool_call") {
		t.Errorf("tool: got %+v, want the answer and a tool call", got.Tool)
	}
	if p := got.Leave.Permissions; got.Leave.Agent != leaveGiven || len(p) != 1 || p[0].ToolCall.Title != "remove" || p[0].SessionID != got.SessionID {
		t.Errorf("permission: got %+v, want it asked once and given", got.Leave)
	}
	if got.Hang.StopReason != "cancelled" || got.Hang.Agent != firstHalf {
		t.Errorf("cancel: got %+v, want the first half and cancelled", got.Hang)
	}
	if got.Fail.Code != -32603 || !strings.Contains(got.Fail.Message, "reads 7%") {
		t.Errorf("failure: got %+v, want the agent's own message", got.Fail)
	}
	if want := "tool k1leave k2hang k3fail k4 overloaded"; got.Load.User != want || !strings.HasPrefix(got.Load.Agent, shortAnswer("k1")+leaveGiven+firstHalf) {
		t.Errorf("load: got %+v, want all that was said", got.Load)
	}
	if l := got.List.Sessions; len(l) != 1 || l[0].SessionID != got.SessionID || l[0].Title != "tool k1" || l[0].CWD != dir {
		t.Errorf("list: got %+v, want the session", l)
	}
	if got.Unknown.Code != -32002 || got.Exit != 0 {
		t.Errorf("got %+v for an unknown session and the exit code %d, want -32002 and 0", got.Unknown, got.Exit)
	}
	if n := strings.Count(stderr.String(), "\n"); n != 0 {
		t.Errorf("got %q on stderr, want nothing", stderr.String())
	}
}
