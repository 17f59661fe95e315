package command_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

// Every command with --json prints one object, except those that print a line for each event.
func TestJSONIsAnObject(t *testing.T) {
	hub := fakeHub(t, map[string]string{
		"GET /v1/agents": `{"agents":[]}`, "GET /v1/agents/a": `{"id":"a"}`, "POST /v1/agents/a/restart": `{"id":"a"}`, "PATCH /v1/agents/a": `{"id":"a"}`,
		"GET /v1/packs": `{"packs":[]}`, "GET /v1/threads": `{"threads":[]}`, "GET /v1/hub": `{"cluster":{"hubs":[]}}`, "POST /v1/hub/drain": `{"id":"h"}`, "POST /v1/hubs/b/forget": `{"name":"b"}`, "GET /v1/approvals": `{"approvals":[]}`, "GET /v1/questions": `{"questions":[]}`, "GET /v1/usage": `{}`, "GET /v1/audit": "",
		"GET /v1/tasks": `{"tasks":[]}`, "GET /v1/tasks/t": `{"id":"t","state":"done"}`, "GET /v1/tasks/t/readers": `{"readers":[]}`, "GET /v1/tasks/t/frames": `{"frames":[{"at":"2026-01-01T00:00:00Z","frame":1,"became":[]}]}`,
		"POST /v1/tasks": `{"id":"t"}`, "POST /mcp": `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`, "POST /v1/notices": `{"id":"t","state":"done"}`, "POST /v1/tasks/t/cancel": `{}`, "POST /v1/tasks/t/decisions": `{}`, "POST /v1/questions/q/answer": `{}`,
	})
	tested := []string{
		"again", "ask", "tail", // a line for each event
		"inject", "approve", "deny", // they ask the hub more than once: in e2e
	}
	for _, args := range [][]string{
		{"agents", hub}, {"agents", "a", hub}, {"agents", "restart", "a", hub}, {"config", "set-agent", "a", "--max-concurrent=2", hub}, {"packs", hub}, {"call", "x", hub}, {"hubs", hub}, {"hubs", "forget", "b", hub}, {"drain", hub},
		{"approvals", hub}, {"questions", hub}, {"audit", hub}, {"audit", "--verify", hub}, {"usage", hub}, {"tasks", hub}, {"threads", hub}, {"search", "x", hub}, {"tasks", "t", hub}, {"tasks", "t", "--readers", hub}, {"frames", "t", hub}, {"delegate", "a", "x", hub}, {"notify", "a", "x", hub},
		{"cancel", "t", hub}, {"answer", "q", "yes", hub}, {"version"}, {"check"}, {"check", "--envelope"}, {"check", "--envelope", "query"}, {"demo"},
	} {
		tested = append(tested, args[0])
		code, out, stderr := run(t, append(args, "--json")...)
		var object map[string]any
		if err := json.Unmarshal([]byte(out), &object); err != nil || code != command.ExitDone || stderr != "" {
			t.Errorf("%q: got %d, %.200q and %q, want an object: %v", args, code, out, stderr, err)
		}
	}
	for _, c := range command.NewRoot(command.Streams{}).Commands() {
		if c.Flags().Lookup("json") != nil && !slices.Contains(tested, c.Name()) {
			t.Errorf("dragoman %s --json is not tested here", c.Name())
		}
	}
}
