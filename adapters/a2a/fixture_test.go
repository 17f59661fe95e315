package a2a_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/a2a"
	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/schemas"
)

// fixture is a hub behind a real HTTP server on loopback.
type fixture struct {
	t      *testing.T
	hub    *hub.Hub
	server *a2a.Server
	url    string
	// left receives the path of every request that the server has served.
	left chan string
}

func start(t *testing.T, opts a2a.Options) *fixture {
	t.Helper()
	return startBehind(t, opts, time.Minute)
}

// bounded is the ResponseWriter of the server of the program, which bounds each write.
type bounded struct {
	http.ResponseWriter
	timeout time.Duration
}

func (b bounded) Unwrap() http.ResponseWriter { return b.ResponseWriter }

func (b bounded) Write(p []byte) (int, error) {
	if err := http.NewResponseController(b.ResponseWriter).SetWriteDeadline(time.Now().Add(b.timeout)); err != nil {
		return 0, err
	}
	return b.ResponseWriter.Write(p)
}

// startBehind starts a fixture whose server bounds each write.
func startBehind(t *testing.T, opts a2a.Options, writes time.Duration) *fixture {
	t.Helper()
	f := &fixture{t: t, hub: coretest.NewHub(t, hub.Options{}), left: make(chan string, 1024)}
	opts.Principal = func(r *http.Request) (core.Principal, error) {
		switch user := r.Header.Get("X-User"); user {
		case "":
			return core.Principal{ID: "local", Operator: true}, nil
		case "nobody":
			return core.Principal{}, nil
		default:
			return core.Principal{ID: user, Authenticated: true}, nil
		}
	}
	opts.Version = "1.2.3"
	handler := a2a.New(f.hub, opts)
	f.server = handler
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { f.left <- r.URL.Path }()
		handler.ServeHTTP(bounded{w, writes}, r)
	}))
	srv.Config.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		_ = conn.(*net.TCPConn).SetWriteBuffer(128 << 10) // so that a client that reads nothing blocks writes soon
		return ctx
	}
	srv.Start()
	t.Cleanup(func() {
		srv.Close()
		handler.Close()
	})
	f.url = srv.URL
	return f
}

// request sends a request and returns the answer, which the caller closes; headers are
// "Name: value".
func (f *fixture) request(ctx context.Context, method, path, body string, headers ...string) *http.Response {
	f.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, f.url+path, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header.Set(wire.VersionHeader, wire.Version)
	r.Header.Set("Content-Type", "application/json")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if value == "" {
			r.Header.Del(name)
			continue
		}
		r.Header.Set(name, value)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		f.t.Fatalf("%s %s: got %v, want an answer", method, path, err)
	}
	return resp
}

// binding is one of the two ways to call an operation.
type binding string

const (
	rpc  binding = "JSON-RPC"
	rest binding = "HTTP+JSON"
)

var bindings = []binding{rpc, rest}

// call calls a method of the agent's interface with params in the form of JSON-RPC, and
// returns the status of HTTP and the result, or the error in the form of JSON-RPC.
func (f *fixture) call(b binding, agent, method, params string, headers ...string) (int, json.RawMessage, *failure) {
	f.t.Helper()
	resp := f.open(context.Background(), b, agent, method, params, headers...)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		f.t.Fatalf("%s: reading the answer: %v", method, err)
	}
	var out struct {
		Result json.RawMessage
		Error  *failure
	}
	if b == rest {
		if resp.StatusCode < 400 {
			conforms(f.t, method, body)
			return resp.StatusCode, body, nil
		}
		var in struct {
			Error struct {
				Code    int
				Status  string
				Message string
				Details json.RawMessage
			}
		}
		if err := json.Unmarshal(body, &in); err != nil {
			f.t.Fatalf("%s: got %s, want an error: %v", method, body, err)
		}
		return resp.StatusCode, nil, &failure{Code: in.Error.Code, Message: in.Error.Message, Data: in.Error.Details}
	}
	if err := json.Unmarshal(body, &out); err != nil {
		f.t.Fatalf("%s: got %s: %v", method, body, err)
	}
	if out.Error == nil {
		conforms(f.t, method, out.Result)
	}
	return resp.StatusCode, out.Result, out.Error
}

// conforms checks a result against the schema of its method.
func conforms(t *testing.T, method string, result []byte) {
	t.Helper()
	if s := schemas.A2AResult(method); s != nil {
		if err := s.Validate(result); err != nil {
			t.Errorf("%s: got %s, which its schema refuses: %v", method, result, err)
		}
	}
}

// failure is an error of either binding.
type failure struct {
	Code    int
	Message string
	Data    json.RawMessage
}

func (e *failure) reason() string {
	if e == nil {
		return ""
	}
	var all []struct{ Reason string }
	if json.Unmarshal(e.Data, &all) != nil || len(all) == 0 {
		return "no reason in " + string(e.Data)
	}
	return all[0].Reason
}

// open sends the request of a method.
func (f *fixture) open(ctx context.Context, b binding, agent, method, params string, headers ...string) *http.Response {
	f.t.Helper()
	at := "/a2a"
	if agent != "" {
		at += "/" + agent
	}
	if b == rpc {
		return f.request(ctx, http.MethodPost, at, fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":%s}`, method, params), headers...)
	}
	if agent != "" {
		at += "/rest"
	}
	var in struct{ ID, TaskID, Tenant string }
	if err := json.Unmarshal([]byte(params), &in); err != nil {
		f.t.Fatal(err)
	}
	if in.Tenant != "" {
		at += "/" + in.Tenant
	}
	switch method {
	case wire.MethodSend:
		return f.request(ctx, http.MethodPost, at+"/message:send", params, headers...)
	case wire.MethodStream:
		return f.request(ctx, http.MethodPost, at+"/message:stream", params, headers...)
	case wire.MethodGetTask:
		return f.request(ctx, http.MethodGet, at+"/tasks/"+in.ID+query(f.t, params), "", headers...)
	case wire.MethodListTasks:
		return f.request(ctx, http.MethodGet, at+"/tasks"+query(f.t, params), "", headers...)
	case wire.MethodCancelTask:
		return f.request(ctx, http.MethodPost, at+"/tasks/"+in.ID+":cancel", "", headers...)
	case wire.MethodSubscribe:
		return f.request(ctx, http.MethodPost, at+"/tasks/"+in.ID+":subscribe", params, headers...)
	case wire.MethodCreatePush:
		return f.request(ctx, http.MethodPost, at+"/tasks/"+in.TaskID+"/pushNotificationConfigs", params, headers...)
	case wire.MethodListPush:
		return f.request(ctx, http.MethodGet, at+"/tasks/"+in.TaskID+"/pushNotificationConfigs", "", headers...)
	case wire.MethodGetPush:
		return f.request(ctx, http.MethodGet, at+"/tasks/"+in.TaskID+"/pushNotificationConfigs/"+in.ID, "", headers...)
	case wire.MethodDeletePush:
		return f.request(ctx, http.MethodDelete, at+"/tasks/"+in.TaskID+"/pushNotificationConfigs/"+in.ID, "", headers...)
	case wire.MethodExtendedCard:
		return f.request(ctx, http.MethodGet, at+"/extendedAgentCard", "", headers...)
	}
	f.t.Fatalf("no path of %s", method)
	return nil
}

// query returns the other members of params as a query.
func query(t *testing.T, params string) string {
	var all map[string]any
	if err := json.Unmarshal([]byte(params), &all); err != nil {
		t.Fatal(err)
	}
	sep, out := "?", ""
	for name, value := range all {
		if name == "id" || name == "taskId" || name == "tenant" {
			continue
		}
		out += fmt.Sprintf("%s%s=%v", sep, name, value)
		sep = "&"
	}
	return out
}

// message returns the params of a message of text.
func message(id, text, more string) string {
	quoted, _ := json.Marshal(text) // a string always encodes
	return fmt.Sprintf(`{"message":{"messageId":%q,"role":"ROLE_USER","parts":[{"text":%s}]%s}}`, id, quoted, more)
}

// send sends a message and returns the task.
func (f *fixture) send(b binding, agent, params string, headers ...string) wire.Task {
	f.t.Helper()
	status, result, failed := f.call(b, agent, wire.MethodSend, params, headers...)
	if failed != nil {
		f.t.Fatalf("send: got %d %s %s, want a task", status, failed.reason(), failed.Message)
	}
	v, err := wire.Parse(result)
	if err != nil {
		f.t.Fatal(err)
	}
	r, err := new(wire.ItemReader).Read(v)
	if err != nil || r.Task == nil {
		f.t.Fatalf("got %s and %v, want a task", result, err)
	}
	return *r.Task
}

// get returns a task.
func (f *fixture) get(b binding, agent, id string, headers ...string) wire.Task {
	f.t.Helper()
	_, result, failed := f.call(b, agent, wire.MethodGetTask, fmt.Sprintf(`{"id":%q}`, id), headers...)
	if failed != nil {
		f.t.Fatalf("get %s: got %s, want a task", id, failed.Message)
	}
	return readTask(f.t, result)
}

func readTask(t *testing.T, text []byte) wire.Task {
	t.Helper()
	v, err := wire.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	out, err := wire.ReadTask(v)
	if err != nil {
		t.Fatalf("got %s and %v, want a task", text, err)
	}
	return out
}

// agent is an agent that the test controls.
type agent struct {
	t *testing.T
	s *hub.Session
}

const features = core.FeatureStreaming | core.FeatureCancellation | core.FeatureInjection | core.FeatureApprovals | core.FeatureNotices

func (f *fixture) agent(id string, change ...func(*core.Card)) *agent {
	f.t.Helper()
	s := f.hub.Connect(hub.Identity{Principal: core.Principal{ID: id}, Dialect: "test"})
	f.t.Cleanup(func() { s.Close(nil) })
	card := core.Card{ID: core.AgentID(id), Name: strings.ToUpper(id), Dialect: "test", Capabilities: []string{"shouting"}, Features: features, MaxConcurrent: 8}
	for _, c := range change {
		c(&card)
	}
	if err := s.Join(card, hub.JoinOptions{}); err != nil {
		f.t.Fatalf("joining %s: %v", id, err)
	}
	return &agent{f.t, s}
}

// next waits for an event of the kind for the agent.
func (a *agent) next(kind core.Kind) (*task.Task, core.Event) {
	for {
		b, err := a.s.Next(context.Background())
		if err != nil {
			a.t.Errorf("waiting for %s: %v", kind, err)
			return nil, core.Event{}
		}
		for _, e := range b.Events {
			if e.Body.Kind() == kind {
				return b.Task, e
			}
		}
	}
}

// say reports events of a task.
func (a *agent) say(t *task.Task, bodies ...core.Body) {
	a.t.Helper()
	for _, b := range bodies {
		if err := a.s.Report(t.ID(), b, nil); err != nil {
			a.t.Errorf("reporting %s: %v", b.Kind(), err)
		}
	}
}

// does answers every task by calling work, until the hub or the test ends.
func (a *agent) does(work func(*task.Task)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			b, err := a.s.Next(context.Background())
			if err != nil {
				return
			}
			for _, e := range b.Events {
				if _, ok := e.Body.(core.Assigned); ok {
					work(b.Task)
				}
			}
		}
	}()
	a.t.Cleanup(func() {
		a.s.Close(nil)
		<-done
	})
}

// shouts answers in capitals, a chunk per word.
func (a *agent) shouts() *agent {
	a.does(func(t *task.Task) {
		for _, word := range strings.SplitAfter(strings.ToUpper(t.Request().Content), " ") {
			a.say(t, core.Text{Text: word})
		}
		a.say(t, core.Usage{Input: 3, Output: 4}, core.Done{})
	})
	return a
}

// hubIdentity is the identity of a session of a principal.
func hubIdentity(id string) hub.Identity {
	return hub.Identity{Principal: core.Principal{ID: id, Operator: true}, Dialect: "test"}
}
