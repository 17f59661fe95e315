package e2e

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
)

// modernMCP sends a request of MCP 2026-07-28 by a client with the tasks extension, and decodes the
// result.
func modernMCP(t *testing.T, url, method, params, name string, result any) {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params + `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`
	status, answer := askMCP(t, url+"/mcp", body, "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: "+method, "Mcp-Name: "+name)
	var r struct{ Result json.RawMessage }
	if err := json.Unmarshal([]byte(answer), &r); err != nil || r.Result == nil || json.Unmarshal(r.Result, result) != nil {
		t.Fatalf("%s: got %d %s, want a result", method, status, answer)
	}
}

// A hub is killed right after an MCP client has got the handle of a task. After a restart the task
// is there under its id: it failed, and the client learns why.
func TestATaskOfAnMCPClientOutlivesTheHub(t *testing.T) {
	dir := t.TempDir()
	first := serveHub(t, dir, "interval")
	ctx, leave := context.WithCancel(t.Context())
	in, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- service.Joins()[coven.Name](ctx, client.Hub{GRPC: first.grpc}, core.Card{ID: "keeper"}, func(ctx context.Context, _ core.Request, _ func(core.Body) error) error {
			<-ctx.Done()
			return ctx.Err()
		}, func(client.AskFunc) { close(in) }, slog.New(slog.DiscardHandler))
	}()
	defer func() {
		leave()
		<-ended
	}()
	select {
	case <-in:
	case <-time.After(watchdog):
		t.Fatal("the agent did not join")
	}
	type state struct {
		ResultType, TaskID, Status string
		Result                     mcpResult
	}
	var handle, after state
	modernMCP(t, first.URL, "tools/call", `"name":"agent_ask","arguments":{"to":"keeper","content":"wait"}`, "agent_ask", &handle)
	first.kill()
	if handle.ResultType != "task" || handle.Status != "working" {
		t.Fatalf("got %+v, want a task that works", handle)
	}
	second := serveHub(t, dir, "interval")
	modernMCP(t, second.URL, "tasks/get", `"taskId":"`+handle.TaskID+`"`, handle.TaskID, &after)
	if r := after.Result; after.Status != "completed" || !r.IsError || len(r.Content) == 0 || !strings.HasPrefix(r.Content[0].Text, "unreachable: ") {
		t.Errorf("got %+v, want it completed with a failure: unreachable", after)
	}
}
