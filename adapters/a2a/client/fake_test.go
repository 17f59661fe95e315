package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/a2a/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/question"
)

// watchdog ends a test that hangs. Nothing takes that long.
const watchdog = 30 * time.Second

// fake is a remote agent that a test plays, over real sockets.
type fake struct {
	testing.TB
	*httptest.Server

	mu    sync.Mutex
	card  string // with %s for the address of the server
	calls []string
	// on has what answers the methods of the JSON-RPC binding.
	on map[string]func(*exchange)
	// serve, unless it is nil, answers everything but the card.
	serve http.HandlerFunc
}

// exchange is one request of the client.
type exchange struct {
	testing.TB
	w      http.ResponseWriter
	r      *http.Request
	params json.RawMessage
}

const streamingCard = `{"name":"Fake","description":"a fake","version":"1.2.3","supportedInterfaces":[{"url":"%s/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0","tenant":"t 1"}],
 "capabilities":{"streaming":true},"defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],"skills":[{"id":"shout","name":"Shout","description":"in capitals","tags":["loud"]}]}`

// remote starts a fake that answers the methods.
func remote(t testing.TB, on map[string]func(*exchange)) *fake {
	f := &fake{TB: t, card: streamingCard, on: on}
	f.Server = httptest.NewServer(http.HandlerFunc(f.handle))
	t.Cleanup(func() {
		f.Server.CloseClientConnections()
		f.Server.Close()
	})
	return f
}

func (f *fake) setCard(card string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.card = card
}

// called returns what the client sent, a line each: the method and the params.
func (f *fake) called() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.calls...)
}

func (f *fake) note(line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, line)
}

func (f *fake) handle(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, ".json") {
		f.mu.Lock()
		card := f.card
		f.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, strings.ReplaceAll(card, "%s", f.URL))
		return
	}
	if v := r.Header.Get("A2A-Version"); v != "1.0" {
		f.Errorf("%s %s: got the A2A-Version %q, want 1.0", r.Method, r.URL, v)
	}
	if f.serve != nil {
		f.serve(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	var call struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params"`
	}
	if err = errors.Join(err, json.Unmarshal(body, &call)); err != nil || call.Version != "2.0" || string(call.ID) != "1" {
		f.Errorf("got the request %s (%v), want JSON-RPC", body, err)
	}
	f.note(call.Method + " " + string(call.Params))
	on := f.on[call.Method]
	x := &exchange{TB: f.TB, w: w, r: r, params: call.Params}
	if on == nil {
		x.fails(-32601, "no such method")
		return
	}
	on(x)
}

// say sends items of a stream, and flushes them.
func (x *exchange) say(items ...string) {
	var b strings.Builder
	for _, it := range items {
		fmt.Fprintf(&b, "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":%s}\n\n", it)
	}
	x.raw(b.String())
}

// raw sends a piece of a stream as it is, and flushes it.
func (x *exchange) raw(text string) {
	x.w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(x.w, text)
	_ = http.NewResponseController(x.w).Flush()
}

// result answers a request that is no stream.
func (x *exchange) result(result string) {
	x.w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(x.w, `{"jsonrpc":"2.0","id":1,"result":%s}`, result)
}

func (x *exchange) fails(code int, message string) {
	x.w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(x.w, `{"jsonrpc":"2.0","id":1,"error":{"code":%d,"message":%q}}`, code, message)
}

// wait waits until the client has gone away.
func (x *exchange) wait() { <-x.r.Context().Done() }

// cut breaks the connection.
func (x *exchange) cut() { panic(http.ErrAbortHandler) }

// The items of streams.
func task(state string) string {
	return `{"task":{"id":"T","contextId":"C","status":{"state":"TASK_STATE_` + state + `"}}}`
}

func status(state string) string {
	return `{"statusUpdate":{"taskId":"T","contextId":"C","status":{"state":"TASK_STATE_` + state + `"}}}`
}

func statusSaying(state, id, text string) string {
	return fmt.Sprintf(`{"statusUpdate":{"taskId":"T","contextId":"C","status":{"state":"TASK_STATE_%s","message":{"messageId":%q,"role":"ROLE_AGENT","parts":[{"text":%q}]}}}}`, state, id, text)
}

func chunk(text string) string {
	return fmt.Sprintf(`{"artifactUpdate":{"taskId":"T","contextId":"C","artifact":{"artifactId":"answer","parts":[{"text":%q}]},"append":true}}`, text)
}

// turn is a task of the hub that a test plays.
type turn struct {
	testing.TB
	id      core.TaskID
	request core.Request
	from    core.Principal
	hops    int
	trace   core.Trace
	heard   chan core.Body
	// ask answers questions; nil says that nobody is there.
	ask func(context.Context, question.Question) (question.Outcome, error)
	// reported is called with every event.
	reported func(core.Body)

	mu        sync.Mutex
	events    []core.Event
	delivered int
	ended     bool
}

func newTurn(t testing.TB, content string) *turn {
	return &turn{TB: t, id: "task-1", request: core.Request{Intent: core.IntentAsk, Thread: "thread-1", Content: content}, heard: make(chan core.Body, 8)}
}

func (t *turn) Task() core.TaskID     { return t.id }
func (t *turn) Request() core.Request { return t.request }
func (t *turn) From() core.Principal  { return t.from }
func (t *turn) Hops() int             { return t.hops }
func (t *turn) Trace() core.Trace     { return t.trace }

func (t *turn) Delivered() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.delivered++
}

func (t *turn) Report(body core.Body, foreign *core.Foreign) error {
	t.mu.Lock()
	if t.ended {
		t.Errorf("%s was reported after the end", body.Kind())
	}
	t.ended = t.ended || body.Kind().Ends()
	t.events = append(t.events, core.Event{Body: body, Foreign: foreign})
	t.mu.Unlock()
	if t.reported != nil {
		t.reported(body)
	}
	return nil
}

func (t *turn) Next(ctx context.Context) (core.Body, error) {
	select {
	case b := <-t.heard:
		return b, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (t *turn) Ask(ctx context.Context, q question.Question) (question.Outcome, error) {
	if t.ask == nil {
		return question.Outcome{}, core.NewFault(core.CodeUnsupported, "nobody is there")
	}
	return t.ask(ctx, q)
}

func (t *turn) CallTool(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return nil, core.NewFault(core.CodeUnsupported, "no tools here")
}

// story returns what was reported, a line each, and consecutive text as one.
func (t *turn) story() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	last := core.Kind(0)
	for _, e := range t.events {
		line := ""
		switch b := e.Body.(type) {
		case core.Text:
			if last == core.KindText {
				lines[len(lines)-1] += b.Text
				continue
			}
			line = b.Text
		case core.Thinking:
			line = b.Text
		case core.File:
			line = b.Name + " " + b.MediaType + " " + string(b.Data)
		case core.Done:
			line = string(b.Data)
		case core.Failed:
			line = string(b.Fault.Code) + ": " + b.Fault.Message
		case core.Cancelled:
			line = b.Reason
		case core.SessionStarted:
			line = b.Session
		default:
			if raw, err := json.Marshal(b); err == nil && string(raw) != "{}" {
				line = string(raw)
			}
		}
		last = e.Body.Kind()
		lines = append(lines, last.String()+" "+line)
	}
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n")
}

// said returns the text of the answer.
func (t *turn) said() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return core.Fold(t.events).Text
}

// counted are the counters of a client.
type counted struct {
	mu sync.Mutex
	by map[string]int
}

func (c *counted) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[string]int{}
	}
	c.by[name]++
}

func (c *counted) of(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.by[name]
}

// ran is an agent whose Run is ready.
type ran struct {
	*client.Agent
	testing.TB
	profile agent.Profile
	counted counted
	// profiles gets what Run is ready with, and over what it returned.
	profiles chan agent.Profile
	over     chan error
	stop     context.CancelFunc
}

// run runs the client against the fake until the test ends.
func run(t testing.TB, opts client.Options) *ran {
	t.Helper()
	r := start(t, opts)
	select {
	case err := <-r.over:
		t.Fatalf("Run: got %v, want it to get ready", err)
	case <-time.After(watchdog):
		t.Fatal("Run is not ready")
	case r.profile = <-r.profiles:
	}
	return r
}

// start starts Run.
func start(t testing.TB, opts client.Options) *ran {
	r := &ran{TB: t, profiles: make(chan agent.Profile, 8), over: make(chan error, 1)}
	transport := &http.Transport{}
	opts.HTTP = &http.Client{Transport: transport}
	opts.Count = r.counted.add
	if opts.Backoff == 0 {
		opts.Backoff = 5 * time.Millisecond
	}
	r.Agent = client.New(opts)
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.over <- r.Run(ctx, func(p agent.Profile) { r.profiles <- p })
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		transport.CloseIdleConnections()
	})
	return r
}

// readyOnce runs the client until it is ready, and returns why that failed.
func readyOnce(c *client.Agent) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ready := false
	err := c.Run(ctx, func(agent.Profile) {
		ready = true
		cancel()
	})
	if ready {
		return nil
	}
	return err
}

// work gives the agent a task, waits for its end, and returns the error of Work.
func (r *ran) work(t *turn) error {
	r.Helper()
	ctx, cancel := context.WithTimeoutCause(context.Background(), watchdog, errors.New("the test hangs"))
	defer cancel()
	return r.Work(ctx, t)
}

// does gives the agent a task and expects what it reports; it returns nothing else.
func (r *ran) does(t *turn, want string) {
	r.Helper()
	if err := r.work(t); err != nil {
		r.Fatalf("Work: got %v, want no error; it reported:\n%s", err, t.story())
	}
	if got := t.story(); got != want {
		r.Errorf("the agent reported:\n%s\nwant:\n%s", got, want)
	}
}

// fails gives the agent a task and expects its Fault.
func (r *ran) fails(t *turn, code core.Code, about string) {
	r.Helper()
	err := r.work(t)
	var f *core.Fault
	if !errors.As(err, &f) || f.Code != code || !strings.Contains(f.Message, about) {
		r.Errorf("Work: got %v, want %s about %q; it reported:\n%s", err, code, about, t.story())
	}
}
