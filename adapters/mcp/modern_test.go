package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/mcp"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// Capabilities of clients.
const (
	canNothing = `{}`
	canAsk     = `{"elicitation":{"form":{}}}`
	canTasks   = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	canBoth    = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
)

const streams = "Accept: application/json, text/event-stream"

// modern returns a request of version 2026-07-28; params are its members beside _meta.
func modern(method, capabilities, params string) string {
	if params != "" {
		params += ","
	}
	return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params + `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":` + capabilities + `}}}`
}

// headersOf returns the headers that belong to a request of version 2026-07-28.
func headersOf(body string) []string {
	var m struct {
		Method string
		Params struct{ Name, TaskID string }
	}
	_ = json.Unmarshal([]byte(body), &m)
	all := []string{"Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: " + m.Method}
	if name := m.Params.Name + m.Params.TaskID; name != "" {
		all = append(all, "Mcp-Name: "+name)
	}
	return all
}

// ask posts a request of version 2026-07-28.
func (g *testServer) ask(body string, headers ...string) answer {
	g.t.Helper()
	return g.post("", body, append(headersOf(body), headers...)...)
}

// askLater is ask in a goroutine.
func (g *testServer) askLater(ctx context.Context, body string, headers ...string) <-chan answer {
	return g.later(ctx, "", body, append(headersOf(body), headers...)...)
}

// result reads the result of a request into a map of its members.
func (a answer) result() map[string]json.RawMessage {
	a.t.Helper()
	var all map[string]json.RawMessage
	if r := a.rpc(http.StatusOK); json.Unmarshal(r.Result, &all) != nil || all == nil {
		a.t.Fatalf("got %s, want a result", a.body)
	}
	return all
}

func TestEveryModernResultSaysItsTypeAndListsSayHowLongTheyHold(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	for method, want := range map[string]string{"server/discover": `"public"`, "tools/list": `"private"`} {
		r := g.ask(modern(method, canNothing, "")).result()
		if string(r["resultType"]) != `"complete"` || string(r["ttlMs"]) != "0" || string(r["cacheScope"]) != want {
			t.Errorf("%s: got %s, %s and %s, want complete, 0 and %s", method, r["resultType"], r["ttlMs"], r["cacheScope"], want)
		}
	}
	r := g.ask(modern("server/discover", canNothing, "")).result()
	if v := string(r["supportedVersions"]); !strings.HasPrefix(v, `["2026-07-28","2025-11-25"`) {
		t.Errorf("server/discover: got the versions %s, want the newest first", v)
	}
	if v := string(r["capabilities"]); v != `{"extensions":{"io.modelcontextprotocol/tasks":{}},"tools":{"listChanged":true}}` {
		t.Errorf("server/discover: got %s, want tools and the tasks extension", v)
	}
	r = g.ask(modern("tools/call", canNothing, `"name":"agents_list"`)).result()
	if string(r["resultType"]) != `"complete"` {
		t.Errorf("tools/call: got %s, want complete", r["resultType"])
	}
}

func TestAnUnknownVersionIsAnsweredWithThoseThatThereAre(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	body := strings.ReplaceAll(modern("server/discover", canNothing, ""), "2026-07-28", "2027-01-01")
	a := g.post("", body, "Mcp-Protocol-Version: 2027-01-01", "Mcp-Method: server/discover")
	a.fails(http.StatusBadRequest, -32022, "unsupported")
	var e struct {
		Error struct {
			Data struct {
				Supported []string
				Requested string
			}
		}
	}
	if err := json.Unmarshal(a.body, &e); err != nil || !slices.Contains(e.Error.Data.Supported, "2026-07-28") || e.Error.Data.Requested != "2027-01-01" {
		t.Errorf("got %s, want the supported versions and the requested one", a.body)
	}
}

func TestAMethodOfTheOtherEraIsUnknown(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	for _, method := range []string{"initialize", "ping", "tasks/result", "tasks/list", "prompts/list"} {
		g.ask(modern(method, canNothing, "")).fails(http.StatusNotFound, -32601, method)
	}
	for _, method := range []string{"server/discover", "subscriptions/listen", "tasks/get"} {
		g.post("", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{}}`).fails(http.StatusOK, -32601, method)
	}
}

func TestAModernRequestIsCheckedAgainstItsHeaders(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	call, get := modern("tools/call", canNothing, `"name":"agents_list"`), modern("tasks/get", canTasks, `"taskId":"x"`)
	const version = "Mcp-Protocol-Version: 2026-07-28"
	g.post("", call, version, "Mcp-Method: tools/call", "Mcp-Name: =?base64?YWdlbnRzX2xpc3Q=?=").outcome().contains(t, false, "agents")
	for _, tt := range []struct {
		body    string
		headers []string
		detail  string
	}{
		{call, []string{version, "Mcp-Method: tools/call"}, "Mcp-Name"},
		{call, []string{version, "Mcp-Name: agents_list"}, "Mcp-Method"},
		{call, []string{version, "Mcp-Method: Tools/call", "Mcp-Name: agents_list"}, "Mcp-Method"},
		{call, []string{"Mcp-Method: tools/call", "Mcp-Name: agents_list"}, "Mcp-Protocol-Version"},
		{call, []string{"Mcp-Protocol-Version: 2025-11-25", "Mcp-Method: tools/call", "Mcp-Name: agents_list"}, "Mcp-Protocol-Version"},
		{get, []string{version, "Mcp-Method: tasks/get", "Mcp-Name: y"}, "Mcp-Name"},
		{get, []string{version, "Mcp-Method: tasks/get"}, "Mcp-Name"},
	} {
		g.post("", tt.body, tt.headers...).fails(http.StatusBadRequest, -32020, tt.detail)
	}
	for _, tt := range []struct{ old, with, detail string }{
		{`"io.modelcontextprotocol/clientCapabilities":{}`, `"x":1`, "clientCapabilities"},
		{`"io.modelcontextprotocol/clientCapabilities":{}`, `"io.modelcontextprotocol/clientCapabilities":7`, "clientCapabilities"},
		{`{"name":"x","version":"1"}`, `7`, "clientInfo"},
		{`"io.modelcontextprotocol/protocolVersion":"2026-07-28",`, ``, "protocolVersion"},
	} {
		g.post("", strings.Replace(call, tt.old, tt.with, 1), headersOf(call)...).fails(http.StatusBadRequest, -32602, tt.detail)
	}
}

func TestAModernCallIsCheckedAgainstTheHeadersOfItsArguments(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	s := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: "maps"}, Dialect: "test"})
	t.Cleanup(func() { s.Close(nil) })
	schema := `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"near":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}`
	if err := s.Provide("maps", []tool.Definition{{Name: "find", InputSchema: json.RawMessage(schema)}}); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			b, err := s.Next(t.Context())
			if err != nil {
				return
			}
			if b.Execute != nil {
				_ = s.AnswerTool(b.Execute.ID, tool.Result{Output: json.RawMessage(`"here"`)}) // the call may be gone
			}
		}
	}()
	call := func(arguments string) string {
		return modern("tools/call", canNothing, `"name":"find","arguments":`+arguments)
	}
	for _, tt := range []struct {
		arguments string
		headers   []string
		want      string // in the error; "" for a call that is served
	}{
		{`{}`, nil, ""},
		{`{"region":"eu"}`, []string{"Mcp-Param-Region: eu"}, ""},
		{`{"region":"eu"}`, []string{"Mcp-Param-Region: =?base64?ZXU=?="}, ""},
		{`{"region":"Zürich","near":{"n":7}}`, []string{"Mcp-Param-Region: =?base64?WsO8cmljaA==?=", "Mcp-Param-N: 7"}, ""},
		{`{"region":"=?base64?ZXU="}`, []string{"Mcp-Param-Region: =?base64?ZXU="}, ""},
		{`{"region":null}`, nil, "invalid input for find"}, // by the schema, as the result of the call
		{`{"region":"eu"}`, nil, "missing required Mcp-Param-Region header"},
		{`{"region":"eu"}`, []string{"Mcp-Param-Region: us"}, `"us" does not match the argument region, "eu"`},
		{`{"region":"eu"}`, []string{"Mcp-Param-Region: =?base64?ZXU?="}, "does not match"},
		{`{"region":"=?base64?ZXU?="}`, []string{"Mcp-Param-Region: =?base64?ZXU?="}, "does not match"},
		{`{"near":{"n":7}}`, []string{"Mcp-Param-N: 8"}, "the argument near.n"},
		{`{}`, []string{"Mcp-Param-Region: eu"}, "which is missing"},
	} {
		body := call(tt.arguments)
		switch got := g.ask(body, tt.headers...); {
		case tt.want == "":
			got.outcome().contains(t, false, "here")
		case strings.HasPrefix(tt.want, "invalid"):
			got.outcome().contains(t, true, tt.want)
		default:
			got.fails(http.StatusBadRequest, -32020, tt.want)
		}
	}
	legacy := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"find","arguments":{"region":"eu"}}}`
	g.post("", legacy).outcome().contains(t, false, "here")
}

func TestASubscriptionIsAcknowledgedWithWhatTheServerCanTell(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	for asked, agreed := range map[string]string{`{}`: `{}`, `{"promptsListChanged":true,"resourceSubscriptions":["x"]}`: `{}`} {
		a := g.ask(modern("subscriptions/listen", canNothing, `"notifications":`+asked), streams)
		if body := string(a.body); !strings.Contains(body, `"method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1},"notifications":`+agreed+`}`) ||
			!strings.Contains(body, `"result":{"resultType":"complete"`) {
			t.Errorf("%s: got %s, want an acknowledgement of %s and the end", asked, body, agreed)
		}
	}
	g.ask(modern("subscriptions/listen", canNothing, ``)).fails(http.StatusBadRequest, -32602, "notifications")
	g.ask(modern("subscriptions/listen", canNothing, `"notifications":{"taskIds":["x"]}`)).fails(http.StatusBadRequest, -32021, "tasks")
	var many []string
	for i := range 65 {
		many = append(many, fmt.Sprintf(`"%d"`, i))
	}
	g.ask(modern("subscriptions/listen", canTasks, `"notifications":{"taskIds":[`+strings.Join(many, ",")+`]}`)).fails(http.StatusBadRequest, -32602, "at most 64")
}

// open sends a request and returns the stream of its answer.
func (g *testServer) open(ctx context.Context, body string, headers ...string) *eventStream {
	g.t.Helper()
	resp, err := g.send(ctx, http.MethodPost, "", body, append(headers, streams)...)
	if err != nil {
		g.t.Fatalf("POST: got %v, want a stream", err)
	}
	g.t.Cleanup(func() { resp.Body.Close() })
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" || resp.Header.Get("X-Accel-Buffering") != "no" {
		b, _ := io.ReadAll(resp.Body)
		g.t.Fatalf("got %s %s, want a stream that proxies do not hold back", got, b)
	}
	return newEventStream(g.t, resp.Body)
}
