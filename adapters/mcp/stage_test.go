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

// stage is a hub behind a real HTTP server on loopback.
type stage struct {
	t      *testing.T
	hub    *hub.Hub
	door   *mcp.Server
	url    string // of the endpoint
	client *http.Client
}

func start(t *testing.T, opts mcp.Options) *stage {
	t.Helper()
	g := &stage{t: t, hub: coretest.NewHub(t, hub.Options{})}
	opts.Anonymous = core.Principal{ID: "anybody"}
	opts.Version = "1.2.3"
	g.door = mcp.New(g.hub, opts)
	g.serve(g.door)
	return g
}

// serve puts a door where the test asks from now on.
func (g *stage) serve(door *mcp.Server) {
	srv := httptest.NewServer(door)
	g.url, g.client = srv.URL+mcp.Path, srv.Client()
	g.t.Cleanup(func() {
		door.Close()
		srv.Close()
	})
}

// actor is an agent of which a test plays what it does.
type actor struct {
	*hub.Session
	t *testing.T
}

func (g *stage) actor(id string, capabilities ...string) *actor {
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
	return &actor{s, g.t}
}

// next waits for the next event of a kind of a task that the agent has.
func (a *actor) next(k core.Kind) *task.Task {
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

func (a *actor) say(task *task.Task, bodies ...core.Body) {
	a.t.Helper()
	for _, b := range bodies {
		if err := a.Report(task.ID(), b, nil); err != nil {
			a.t.Errorf("reporting %s: got %v, want no error", b.Kind(), err)
		}
	}
}

// answer is an answer that was read to its end.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   []byte
}

// send sends a request; headers are "Name: value". Its error is the client's.
func (g *stage) send(ctx context.Context, method, below, body string, headers ...string) (*http.Response, error) {
	g.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, g.url+below, strings.NewReader(body))
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

// post sends a message below the endpoint as a client does that knows nothing of
// sessions.
func (g *stage) post(below, body string, headers ...string) answer {
	g.t.Helper()
	resp, err := g.send(g.t.Context(), http.MethodPost, below, body, headers...)
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

// fails holds the answer to be an error of the protocol that says something.
func (a answer) fails(status, code int, says string) {
	a.t.Helper()
	r := a.rpc(status)
	if r.Error == nil || r.Error.Code != code || !strings.Contains(r.Error.Message, says) {
		a.t.Errorf("got %s, want error %d saying %q", a.body, code, says)
	}
}

// outcome is what a tool came to.
type outcome struct {
	IsError bool `json:"isError"`
	Content []struct {
		Type, Text string
	} `json:"content"`
}

// texts joins what the outcome says.
func (o outcome) texts() string {
	var all []string
	for _, c := range o.Content {
		all = append(all, c.Text)
	}
	return strings.Join(all, "\n")
}

// outcome reads the answer to a call of a tool.
func (a answer) outcome() outcome {
	a.t.Helper()
	r := a.rpc(http.StatusOK)
	var o outcome
	if err := json.Unmarshal(r.Result, &o); err != nil {
		a.t.Fatalf("got %s, want what a tool came to", a.body)
	}
	return o
}

// says holds the outcome to be a failure, or not, that says something.
func (o outcome) says(t *testing.T, failure bool, text string) {
	t.Helper()
	if o.IsError != failure || !strings.Contains(o.texts(), text) {
		t.Errorf("got %+v, want isError %t saying %q", o, failure, text)
	}
}

// calling is the message that calls a tool.
func calling(id, tool, input string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + input + `}}`
}
