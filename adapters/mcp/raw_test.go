package mcp_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/mcp"
)

// hello is the first message of the MCP client of a Coven agent.
const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"mux","version":"1"}}}`

func TestAClientWithoutASessionHeaderIsServed(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	var welcome struct {
		ProtocolVersion string `json:"protocolVersion"`
		ServerInfo      struct{ Name, Version string }
		Capabilities    map[string]struct{ ListChanged bool }
	}
	r := g.post("", hello).rpc(http.StatusOK)
	if err := json.Unmarshal(r.Result, &welcome); err != nil || string(r.ID) != "1" {
		t.Fatalf("initialize: got %s, want a result for 1", r.Result)
	}
	if welcome.ProtocolVersion != "2024-11-05" || welcome.ServerInfo.Name != "dragoman" || welcome.ServerInfo.Version != "1.2.3" ||
		len(welcome.Capabilities) != 1 || !welcome.Capabilities["tools"].ListChanged {
		t.Errorf("initialize: got %+v, want 2024-11-05, dragoman 1.2.3 and only tools", welcome)
	}
	if r := g.post("", `{"jsonrpc":"2.0","id":7,"method":"ping"}`).rpc(http.StatusOK); string(r.Result) != "{}" {
		t.Errorf("ping: got %s, want {}", r.Result)
	}
	var tools struct {
		CacheScope string
		Tools      []struct {
			Name, Description string
			InputSchema       map[string]any
		}
	}
	r = g.post("", `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`).rpc(http.StatusOK)
	if err := json.Unmarshal(r.Result, &tools); err != nil {
		t.Fatalf("tools/list: got %s, want tools", r.Result)
	}
	if tools.CacheScope != "private" {
		t.Errorf("cacheScope: got %q, want private, since other callers may have other tools", tools.CacheScope)
	}
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
		if tool.Description == "" || tool.InputSchema["type"] != "object" {
			t.Errorf("got %+v, want a description and a schema", tool)
		}
	}
	want := []string{"agents_list", "agent_ask", "agent_delegate", "agent_result", "agent_notify", "agent_cancel", "task_readers"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("tools/list (-want +got):\n%s", diff)
	}
	g.agent("bob", "chat")
	g.post("", toolCall("100", "agents_list", `{"capability":"chat"}`)).outcome().contains(t, false, `"id":"bob"`)
}

func TestTheIDOfARequestIsReturnedUnchanged(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	for _, id := range []string{
		`1`, `0`, `-5`, `"a"`, `""`, `"1"`, `1.5`, `1e3`, `1.0`, `9007199254740993`, `18446744073709551615`, `"\u00e9\ud800<&>"`, `"` + strings.Repeat("x", 1000) + `"`,
	} {
		for what, body := range map[string]string{
			"a result":          `{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`,
			"a tool":            toolCall(id, "agents_list", `{}`),
			"a failure":         toolCall(id, "agent_ask", `{"to":"nobody","content":"hi"}`),
			"an unknown tool":   toolCall(id, "nothing", `{}`),
			"an unknown method": `{"jsonrpc":"2.0","id":` + id + `,"method":"prompts/list"}`,
			"a bad request":     `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call"}`,
		} {
			a := g.post("", body)
			if got := a.rpc(a.status).ID; string(got) != id {
				t.Errorf("%s: got id %.100s, want %.100s", what, got, id)
			}
		}
	}
}

func TestAnInvalidMessageIsRefusedWithAReason(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	for _, tt := range []struct {
		body         string
		status, code int
		detail       string
	}{
		{``, 400, -32600, "empty"},
		{`nonsense`, 400, -32700, "JSON"},
		{`[` + hello + `]`, 400, -32600, "batch"},
		{`"text"`, 400, -32600, "object"},
		{`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, 400, -32700, "id"},
		{`{"jsonrpc":"2.0","ID":1,"method":"ping"}`, 400, -32700, "id"},
		{`{"jsonrpc":"1.0","id":1,"method":"ping"}`, 400, -32600, "jsonrpc"},
		{`{"id":1,"method":"ping"}`, 400, -32600, "jsonrpc"},
		{`{"jsonrpc":"2.0","id":null,"method":"ping"}`, 400, -32600, "id"},
		{`{"jsonrpc":"2.0","id":{},"method":"ping"}`, 400, -32600, "id"},
		{`{"jsonrpc":"2.0","id":1}`, 400, -32600, "method"},
		{`{"jsonrpc":"2.0","id":1,"method":5}`, 400, -32600, "method"},
		{`{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}`, 400, -32600, "params"},
		{`{"jsonrpc":"2.0","id":1,"method":"prompts/list"}`, 200, -32601, "tools/call"},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, 400, -32600, "params"},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}`, 200, -32602, "name"},
		{toolCall("1", "nothing", `{}`), 200, -32602, `unknown tool "nothing": see tools/list`},
		{toolCall("1", "agents_lst", `{}`), 200, -32602, `unknown tool "agents_lst": did you mean agents_list? See tools/list`},
		{strings.Repeat(`{"a":`, 200) + `1` + strings.Repeat(`}`, 200), 400, -32700, "deep"},
	} {
		g.post("", tt.body).fails(tt.status, tt.code, tt.detail)
	}
	g.post("", "a=b", "Content-Type: application/x-www-form-urlencoded").fails(415, -32600, "application/json")
	g.post("", hello, "Mcp-Protocol-Version: 1999-01-01").fails(400, -32600, "version")
	g.post("", `{"jsonrpc":"2.0","id":1,"method":"prompts/list"}`, "Mcp-Protocol-Version: 2026-07-28").fails(404, -32601, "prompts/list")
	for _, message := range []string{
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled"}`,
		`{"jsonrpc":"2.0","method":"notifications/unheard/of"}`,
	} {
		if a := g.post("", message); a.status != http.StatusAccepted || len(a.body) > 0 {
			t.Errorf("%s: got %d %s, want 202 and nothing", message, a.status, a.body)
		}
	}
	a := g.post("", hello)
	if a.rpc(http.StatusOK).Error != nil {
		t.Errorf("after all that: got %s, want a result", a.body)
	}
}

func TestATooLargeMessageIsRefusedWithTheLimit(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{MaxBodyBytes: 2000})
	g.post("", toolCall("1", "agent_ask", `{"to":"bob","content":"`+strings.Repeat("x", 2000)+`"}`)).fails(413, -32600, "2000 bytes")
}

func TestOtherHTTPMethodsAreRefusedWithTheAllowedOnes(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	resp, err := g.send(t.Context(), http.MethodDelete, "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != "GET, POST" {
		t.Errorf("DELETE: got %d, Allow %q; want 405 and GET, POST", resp.StatusCode, resp.Header.Get("Allow"))
	}
}

func TestAnInvalidInputIsAToolFailureThatNamesTheField(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	for _, tt := range []struct{ tool, input, detail string }{
		{"agent_ask", `{"content":"hi"}`, "'to'"},
		{"agent_ask", `{"to":"bob","content":5}`, "content"},
		{"agent_ask", `{"to":"bob","content":"hi","timeout_seconds":-1}`, "timeout_seconds"},
		{"agent_ask", `{"to":"bob","content":"hi","contents":1}`, "contents"},
		{"agent_ask", `{"to":"bob:;","content":"hi"}`, "bob:;"},
		{"agent_delegate", `{"to":"bob","content":"hi","context":"x"}`, "context"},
		{"agent_result", `{}`, "'task_id'"},
		{"agent_result", `null`, "'task_id'"},
	} {
		g.post("", toolCall("1", tt.tool, tt.input)).outcome().contains(t, true, tt.detail)
	}
	g.post("", toolCall("1", "agent_result", `[]`)).outcome().contains(t, true, "object")
}
