package rest_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/rest"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// testServer is a hub behind a real HTTP server on loopback.
type testServer struct {
	t   *testing.T
	hub *hub.Hub
	url string
	// left receives the path of every request that the server has served.
	left chan string
}

// operator is the principal of requests without X-User.
const operator = "local"

func start(t *testing.T, hubOpts hub.Options, opts rest.Options) *testServer {
	t.Helper()
	g := &testServer{t: t, hub: coretest.NewHub(t, hubOpts)}
	return g.serve(opts)
}

// serve starts another server for the hub.
func (g *testServer) serve(opts rest.Options) *testServer {
	opts.Principal = func(r *http.Request) (core.Principal, error) {
		switch user := r.Header.Get("X-User"); user {
		case "":
			return core.Principal{ID: operator, Operator: true}, nil
		case "unauthenticated":
			return core.Principal{}, nil
		case "wrong token":
			return core.Principal{}, core.NewFault(core.CodeUnauthenticated, "the token is wrong: ask for another")
		default:
			return core.Principal{ID: user, Authenticated: true}, nil
		}
	}
	opts.Version = "1.2.3"
	handler := rest.New(g.hub, opts)
	left := make(chan string, 1024)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { left <- r.URL.Path }()
		handler.ServeHTTP(w, r)
	}))
	srv.Config.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		_ = conn.(*net.TCPConn).SetWriteBuffer(128 << 10) // so that a client that reads nothing blocks writes soon
		return ctx
	}
	srv.Start()
	g.t.Cleanup(srv.Close)
	return &testServer{t: g.t, hub: g.hub, url: srv.URL, left: left}
}

// answer is a response that was read to its end.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   []byte
}

// request sends a request and returns the answer, which the caller closes; headers are "Name: value".
func (g *testServer) request(ctx context.Context, method, path, body string, headers ...string) *http.Response {
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
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		g.t.Fatalf("%s %s: got %v, want an answer", method, path, err)
	}
	return resp
}

// do sends a request and validates the answer against the OpenAPI document.
func (g *testServer) do(method, path, body string, headers ...string) answer {
	g.t.Helper()
	resp := g.request(context.Background(), method, path, body, headers...)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		g.t.Fatalf("%s %s: reading the answer: got %v, want no error", method, path, err)
	}
	a := answer{g.t, resp.StatusCode, resp.Header, b}
	a.conforms(method, path)
	return a
}

func (g *testServer) get(path string, headers ...string) answer {
	g.t.Helper()
	return g.do(http.MethodGet, path, "", headers...)
}

func (g *testServer) post(path, body string, headers ...string) answer {
	g.t.Helper()
	return g.do(http.MethodPost, path, body, headers...)
}

// into decodes the answer, which must have the status.
func (a answer) into(status int, v any) {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("got status %d with %s, want %d", a.status, a.body, status)
	}
	if err := json.Unmarshal(a.body, v); err != nil {
		a.t.Fatalf("decoding %s: %v", a.body, err)
	}
}

// problem is a problem document as clients see it.
type problem struct {
	Type, Title, Detail string
	Status              int
	Code                core.Code
	Retryable           bool
	Task                core.TaskID
}

// refused checks that the answer is a problem of the code, whose detail contains all
// of the texts.
func (a answer) refused(status int, code core.Code, texts ...string) problem {
	a.t.Helper()
	var p problem
	a.into(status, &p)
	if p.Code != code || p.Status != status {
		a.t.Errorf("got %s with status %d, want %s with %d: %s", p.Code, p.Status, code, status, p.Detail)
	}
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		a.t.Errorf("got Content-Type %q, want application/problem+json", got)
	}
	for _, w := range texts {
		if !strings.Contains(p.Detail, w) {
			a.t.Errorf("got detail %q, want %q in it", p.Detail, w)
		}
	}
	return p
}

// taskJSON is the part of a task document that tests read.
type taskJSON struct {
	ID     core.TaskID
	Thread core.ThreadID
	Branch core.TaskID
	State  string
	Agent  core.AgentID
	Intent string
	To     string
	From   core.Principal
	Hops   int
	Answer struct {
		Text       string
		Data       json.RawMessage
		Files      []core.File
		Usage      core.Usage
		Truncated  bool
		TokensUsed int64 `json:"tokens_used"`
		End        string
		Fault      *core.Fault
	}
	Receipt core.Receipt
}

// opened opens a task and returns its id.
func (g *testServer) opened(body string, headers ...string) core.TaskID {
	g.t.Helper()
	var o struct{ ID core.TaskID }
	g.post("/v1/tasks", body, headers...).into(http.StatusCreated, &o)
	return o.ID
}

// document reads a task.
func (g *testServer) document(id core.TaskID) taskJSON {
	g.t.Helper()
	var d taskJSON
	g.get("/v1/tasks/"+string(id)).into(http.StatusOK, &d)
	return d
}

// agent is an agent that the test controls.
type agent struct {
	t *testing.T
	s *hub.Session
}

const features = core.FeatureStreaming | core.FeatureCancellation | core.FeatureInjection | core.FeatureApprovals | core.FeatureNotices

// agent connects an agent; change modifies its card.
func (g *testServer) agent(id string, change ...func(*core.Card)) *agent {
	g.t.Helper()
	s := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: id}, Dialect: "test"})
	g.t.Cleanup(func() { s.Close(nil) })
	card := core.Card{ID: core.AgentID(id), Dialect: "test", Features: features, MaxConcurrent: 8}
	for _, c := range change {
		c(&card)
	}
	if err := s.Join(card, hub.JoinOptions{}); err != nil {
		g.t.Fatalf("joining %s: got %v, want no error", id, err)
	}
	return &agent{g.t, s}
}

// next waits for an event of the kind for the agent.
func (a *agent) next(kind core.Kind) (*task.Task, core.Event) {
	for {
		b, err := a.s.Next(context.Background())
		if err != nil {
			a.t.Errorf("waiting for %s: got %v, want no error", kind, err)
			return nil, core.Event{}
		}
		for _, e := range b.Events {
			if e.Body.Kind() == kind {
				return b.Task, e
			}
		}
	}
}

// accept waits for the next task and confirms its delivery.
func (a *agent) accept() *task.Task {
	t, _ := a.next(core.KindAssigned)
	a.s.Delivered(t.ID())
	return t
}

// report reports events of a task.
func (a *agent) report(t *task.Task, bodies ...core.Body) {
	for _, b := range bodies {
		if err := a.s.Report(t.ID(), b, nil); err != nil {
			a.t.Errorf("reporting %s: got %v, want no error", b.Kind(), err)
		}
	}
}

// answer answers n tasks in a goroutine, which ends before the test does.
func (a *agent) answer(n int, bodies ...core.Body) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range n {
			a.report(a.accept(), bodies...)
		}
	}()
	a.t.Cleanup(func() { <-done })
}

// ended waits for the last event of a task and returns it.
func (g *testServer) ended(id core.TaskID) core.Event {
	g.t.Helper()
	t, err := g.hub.Task(context.Background(), core.Principal{Operator: true}, id)
	if err != nil {
		g.t.Fatalf("finding task %s: got %v, want no error", id, err)
	}
	s := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: "test", Operator: true}})
	defer s.Close(nil)
	if err := s.Watch(t, core.Cursor{}, nil); err != nil {
		g.t.Fatal(err)
	}
	for {
		b, err := s.Next(context.Background())
		if err != nil {
			g.t.Fatalf("waiting for the end: got %v, want no error", err)
		}
		if n := len(b.Events); n > 0 && b.Events[n-1].Body.Kind().Ends() {
			return b.Events[n-1]
		}
	}
}
