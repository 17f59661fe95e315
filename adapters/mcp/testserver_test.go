package mcp_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/mcp"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// testServer is a hub with an MCP server on loopback.
type testServer struct {
	t      *testing.T
	hub    *hub.Hub
	server *mcp.Server
	url    string // of the endpoint
	client *http.Client
}

func start(t *testing.T, opts mcp.Options) *testServer {
	t.Helper()
	g := &testServer{t: t, hub: coretest.NewHub(t, hub.Options{})}
	opts.Anonymous = core.Principal{ID: "anybody"}
	opts.Version = "1.2.3"
	g.server = mcp.New(g.hub, opts)
	g.serve(g.server)
	return g
}

// serve starts an HTTP server for an MCP server; later requests of the test go there.
func (g *testServer) serve(server *mcp.Server) {
	srv := httptest.NewServer(server)
	g.url, g.client = srv.URL+mcp.Path, srv.Client()
	g.t.Cleanup(func() {
		server.Close()
		srv.Close()
	})
}

// testAgent is an agent that the test controls.
type testAgent struct {
	*hub.Session
	t *testing.T
}

func (g *testServer) agent(id string, capabilities ...string) *testAgent {
	g.t.Helper()
	s := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: id}, Dialect: "test"})
	g.t.Cleanup(func() { s.Close(nil) })
	card := core.Card{
		ID: core.AgentID(id), Dialect: "test", Capabilities: capabilities, MaxConcurrent: 8,
		Features: core.FeatureStreaming | core.FeatureCancellation | core.FeatureSessions,
	}
	if err := s.Join(card, hub.JoinOptions{}); err != nil {
		g.t.Fatalf("joining %s: got %v, want no error", id, err)
	}
	return &testAgent{s, g.t}
}

// next waits for an event of the kind and returns its task.
func (a *testAgent) next(k core.Kind) *task.Task {
	a.t.Helper()
	for {
		b, err := a.Next(a.t.Context())
		if err != nil {
			a.t.Fatalf("waiting for %s: got %v, want no error", k, err)
		}
		for _, e := range b.Events {
			if e.Body.Kind() == k {
				return b.Task
			}
		}
	}
}

func (a *testAgent) report(task *task.Task, bodies ...core.Body) {
	a.t.Helper()
	for _, b := range bodies {
		if err := a.Report(task.ID(), b, nil); err != nil {
			a.t.Errorf("reporting %s: got %v, want no error", b.Kind(), err)
		}
	}
}

// answer is a response that was read completely.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   []byte
}

// send sends a request; headers are "Name: value". It returns the error of the client.
func (g *testServer) send(ctx context.Context, method, path, body string, headers ...string) (*http.Response, error) {
	g.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, g.url+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	return g.client.Do(req)
}

// post sends a message to a path below the endpoint, without a session header.
func (g *testServer) post(path, body string, headers ...string) answer {
	g.t.Helper()
	resp, err := g.send(g.t.Context(), http.MethodPost, path, body, headers...)
	if err != nil {
		g.t.Fatalf("POST: got %v, want an answer", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		g.t.Fatalf("reading the answer: got %v, want no error", err)
	}
	return answer{g.t, resp.StatusCode, resp.Header, b}
}

// rpc is a JSON-RPC answer.
type rpc struct {
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// rpc reads the answer, which must have the status.
func (a answer) rpc(status int) rpc {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("got status %d: %s, want %d", a.status, a.body, status)
	}
	var r rpc
	if err := json.Unmarshal(a.body, &r); err != nil {
		a.t.Fatalf("got %q, want a JSON-RPC answer: %v", a.body, err)
	}
	return r
}

// fails checks that the answer is a protocol error with a text.
func (a answer) fails(status, code int, text string) {
	a.t.Helper()
	r := a.rpc(status)
	if r.Error == nil || r.Error.Code != code || !strings.Contains(r.Error.Message, text) {
		a.t.Errorf("got %s, want error %d with %q", a.body, code, text)
	}
}

// outcome is the result of a tool call.
type outcome struct {
	IsError bool `json:"isError"`
	Content []struct {
		Type, Text string
	} `json:"content"`
}

// texts joins the texts of the outcome.
func (o outcome) texts() string {
	var all []string
	for _, c := range o.Content {
		all = append(all, c.Text)
	}
	return strings.Join(all, "\n")
}

// outcome reads the result of a tool call.
func (a answer) outcome() outcome {
	a.t.Helper()
	r := a.rpc(http.StatusOK)
	var o outcome
	if err := json.Unmarshal(r.Result, &o); err != nil {
		a.t.Fatalf("got %s, want the result of a tool", a.body)
	}
	return o
}

// contains checks whether the outcome is a failure and contains a text.
func (o outcome) contains(t *testing.T, failure bool, text string) {
	t.Helper()
	if o.IsError != failure || !strings.Contains(o.texts(), text) {
		t.Errorf("got %+v, want isError %t and %q", o, failure, text)
	}
}

// toolCall returns the message that calls a tool.
func toolCall(id, tool, input string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + input + `}}`
}

// direct serves a message of version 2026-07-28 without a socket, as tests in a bubble of fake
// time need it.
func (g *testServer) direct(server *mcp.Server, body string, headers ...string) <-chan answer {
	done := make(chan answer, 1)
	r := httptest.NewRequestWithContext(g.t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
	for _, h := range append(headersOf(body), headers...) {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	go func() {
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		done <- answer{g.t, w.Code, w.Header(), w.Body.Bytes()}
	}()
	return done
}

func contextWithCancel(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithCancel(t.Context())
}
