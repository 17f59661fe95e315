package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core/link"
	coven "github.com/dragoman-hub/dragoman/proto/coven"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

// A client of Coven sends at one hub, gets the answer as it comes at the next, and the history at the
// third.
func covenFindsItsOwn(t *testing.T, all hubCluster, _ *worker) {
	connectCovenClient(t, all[0].grpc).send("worker", "hello you")
	all[2].until("the message has its answer", func() error {
		for _, e := range connectCovenClient(t, all[2].grpc).history("worker", 10) {
			if strings.Contains(e.GetText(), "HELLO YOU") {
				return nil
			}
		}
		return errors.New("it has none")
	})
	stream := connectCovenClient(t, all[1].grpc).open("worker", "")
	if got := describe(stream.readUntil(isDone)); !strings.Contains(strings.Join(got, " "), "HELLO YOU") {
		t.Errorf("at b: got %q, want the answer as it comes", got)
	}
}

// An editor begins a session at one hub, and loads it at the others.
func editorFindsItsOwn(t *testing.T, all hubCluster, _ *worker) {
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	dial := func(h *clusterHub) *ws.Conn {
		t.Helper()
		conn, err := client.DialWebSocket(ctx, client.Hub{URL: h.URL}, "/ws/editor?agent=worker", nil, 10<<20)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(link.Reason{Cause: link.Normal}) })
		return conn
	}
	// call returns everything up to the answer.
	call := func(conn *ws.Conn, method string, params any) (all string) {
		t.Helper()
		if err := conn.Send(ctx, plainJSON(map[string]any{"jsonrpc": "2.0", "id": method, "method": method, "params": params})); err != nil {
			t.Fatal(err)
		}
		for {
			m, err := conn.Receive(ctx)
			if err != nil {
				t.Fatalf("%s: %v after %s", method, err, all)
			}
			all += string(m)
			var answer struct{ ID any }
			if json.Unmarshal(m, &answer) == nil && answer.ID == method {
				return all
			}
		}
	}
	first := dial(all[0])
	call(first, "initialize", map[string]any{"protocolVersion": 1})
	var began struct {
		Result struct{ SessionID string }
	}
	if text := call(first, "session/new", map[string]any{"cwd": "/", "mcpServers": []any{}}); json.Unmarshal([]byte(text), &began) != nil || began.Result.SessionID == "" {
		t.Fatalf("got %s, want a session", text)
	}
	session := began.Result.SessionID
	prompt := func(conn *ws.Conn, words string) {
		t.Helper()
		text := call(conn, "session/prompt", map[string]any{"sessionId": session, "prompt": []any{map[string]any{"type": "text", "text": words}}})
		if !strings.Contains(text, strings.ToUpper(words)) {
			t.Errorf("got %s, want the answer", text)
		}
	}
	prompt(first, "edit at a")
	for i, h := range all[1:] {
		conn := dial(h)
		call(conn, "initialize", map[string]any{"protocolVersion": 1})
		loaded := call(conn, "session/load", map[string]any{"sessionId": session, "cwd": "/", "mcpServers": []any{}})
		if want := []string{"EDIT AT A", "EDIT AT B"}[i]; !strings.Contains(loaded, want) {
			t.Errorf("loaded at %s: got %s, want %s in it", h.name, loaded, want)
		}
		prompt(conn, "edit at "+h.name)
	}
}

// An agent calls the tools of the hub with the token of its connection, at whichever hub.
func agentFindsItsTools(t *testing.T, all hubCluster, _ *worker) {
	cc, err := grpcserver.Dial(t.Context(), all[1].grpc, grpcserver.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	stream, err := coven.NewCovenControlClient(cc).AgentStream(t.Context())
	if err == nil {
		err = stream.Send(&coven.AgentMessage{Payload: &coven.AgentMessage_Register{Register: &coven.RegisterAgent{AgentId: "tooled", Name: "tooled"}}})
	}
	if err != nil {
		t.Fatal(err)
	}
	welcome, err := stream.Recv()
	if err != nil || welcome.GetWelcome().GetMcpToken() == "" {
		t.Fatalf("got %v and %v, want a Welcome with a token", welcome, err)
	}
	for _, h := range all {
		status, text := askMCP(t, h.URL+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"agent_ask","arguments":{"to":"worker","content":"hello there"}}}`,
			"Authorization: Bearer "+welcome.GetWelcome().GetMcpToken())
		if status != http.StatusOK || !strings.Contains(text, "HELLO THERE") {
			t.Errorf("at %s: got %d %s, want the answer", h.name, status, text)
		}
	}
	if status, text := askMCP(t, all[0].URL+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Authorization: Bearer "+welcome.GetWelcome().GetMcpToken()+"X"); status != http.StatusUnauthorized {
		t.Errorf("with another token: got %d %s, want it refused", status, text)
	}
}
