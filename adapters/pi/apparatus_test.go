package pi_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/pitest"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/task"
)

// testTimeout bounds the waits of a test. Only a failing test reaches it.
const testTimeout = 2 * time.Minute

// unlimited are the rates of servers in tests of anything but rates.
var unlimited = command.Rates{Client: -1, Session: -1, Server: -1, Answers: -1}

func newServer(t *testing.T, opts pi.Options) (*hub.Hub, *pi.Server) {
	t.Helper()
	return newServerOn(t, hub.Options{}, opts)
}

func newServerOn(t *testing.T, hubOpts hub.Options, opts pi.Options) (*hub.Hub, *pi.Server) {
	t.Helper()
	h := coretest.NewHub(t, hubOpts)
	opts.RetryDelay = cmp.Or(opts.RetryDelay, time.Millisecond)
	if opts.Commands.Rates == (command.Rates{}) {
		opts.Commands.Rates = unlimited
	}
	s := pi.NewServer(h, opts)
	t.Cleanup(s.Close)
	return h, s
}

// countsOf returns the counts of a server's engine.
func countsOf(s *pi.Server) command.Counts {
	e := s.Parts().Engine
	e.Lock()
	defer e.Unlock()
	return e.Counts()
}

// stall keeps that many workers of a queue busy until release is called, as a slow disk does.
func stall(jobs *command.Jobs, workers int) (release func()) {
	until := make(chan struct{})
	for range workers {
		jobs.Add(func(context.Context) { <-until })
	}
	return func() { close(until) }
}

// testAgent is an agent that is connected to the hub without a dialect.
type testAgent struct {
	*hub.Session
	t *testing.T
}

// joinAgent joins an agent that calls work with every batch.
func joinAgent(t *testing.T, h *hub.Hub, card core.Card, work func(a *testAgent, b hub.Batch)) *testAgent {
	t.Helper()
	if card.Dialect == "" {
		card.Dialect = "coven"
	}
	a := &testAgent{h.Connect(hub.Identity{Principal: core.Principal{ID: string(card.ID)}, Dialect: card.Dialect}), t}
	if err := a.Join(card, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			b, err := a.Next(context.Background())
			if err != nil {
				return
			}
			work(a, b)
		}
	})
	t.Cleanup(func() {
		a.Close(nil)
		wg.Wait()
	})
	return a
}

func (a *testAgent) report(task *task.Task, bodies ...core.Body) {
	for _, b := range bodies {
		if err := a.Report(task.ID(), b, nil); err != nil {
			a.t.Errorf("reporting %s: %v", b.Kind(), err)
		}
	}
}

// assigned reports whether the batch gives the agent a task.
func assigned(b hub.Batch) bool {
	for _, e := range b.Events {
		if _, ok := e.Body.(core.Assigned); ok {
			return true
		}
	}
	return false
}

// answerWith returns the work of an agent that answers every task with the bodies.
func answerWith(bodies ...core.Body) func(*testAgent, hub.Batch) {
	return func(a *testAgent, b hub.Batch) {
		if assigned(b) {
			a.report(b.Task, bodies...)
		}
	}
}

// echoAgent is the work of an agent that repeats the request.
func echoAgent(a *testAgent, b hub.Batch) {
	if assigned(b) {
		a.report(b.Task, core.Text{Text: "you said " + b.Task.Request().Content}, core.Done{})
	}
}

// testClient is a client that keeps the frames it receives.
type testClient struct {
	*pitest.Conn
	t      *testing.T
	served chan link.Reason

	mu     sync.Mutex
	frames []pitest.Frame
	times  []time.Time // of the frames
	news   chan struct{}
}

func dial(t *testing.T, s *pi.Server, o pi.ConnOptions) *testClient {
	t.Helper()
	hubs, clients := coretest.Pipe[[]byte, []byte](64)
	return dialOver(t, s, o, hubs, clients)
}

func dialOver(t *testing.T, s *pi.Server, o pi.ConnOptions, hubs, clients link.Conn[[]byte, []byte]) *testClient {
	t.Helper()
	c := &testClient{t: t, served: make(chan link.Reason, 1), news: make(chan struct{}, 1)}
	if !o.Principal.Authenticated {
		o.Principal.Operator = true // as every user of an open hub
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { c.served <- s.Serve(ctx, hubs, o) }()
	var err error
	c.Conn, err = pitest.Connect(ctx, clients, func(f pitest.Frame) {
		c.mu.Lock()
		c.frames, c.times = append(c.frames, f), append(c.times, time.Now())
		c.mu.Unlock()
		fifo.Signal(c.news)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		cancel()
		c.served <- <-c.served
	})
	return c
}

// received returns the frames so far.
func (c *testClient) received() []pitest.Frame {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.frames[:len(c.frames):len(c.frames)]
}

// until waits for a frame that contains all of the parts, and returns it.
func (c *testClient) until(parts ...string) pitest.Frame {
	c.t.Helper()
	limit := time.After(testTimeout)
	for i := 0; ; {
		for frames := c.received(); i < len(frames); i++ {
			if has(frames[i], parts...) {
				return frames[i]
			}
		}
		select {
		case <-c.news:
		case <-limit:
			c.t.Fatalf("no frame with %q among\n%s", parts, c.log())
		}
	}
}

func has(f pitest.Frame, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(string(f.Raw), p) {
			return false
		}
	}
	return true
}

// count returns the number of frames that contain all of the parts.
func (c *testClient) count(parts ...string) int {
	n := 0
	for _, f := range c.received() {
		if has(f, parts...) {
			n++
		}
	}
	return n
}

func (c *testClient) log() string {
	var b strings.Builder
	for _, f := range c.received() {
		fmt.Fprintf(&b, "%.300s\n", f.Raw)
	}
	return b.String()
}

// do sends a command, written as JSON, and returns the response.
func (c *testClient) do(command string) pitest.Frame {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	var m map[string]any
	if err := json.Unmarshal([]byte(command), &m); err != nil {
		c.t.Fatal(err)
	}
	f, err := c.Do(ctx, m)
	if err != nil {
		c.t.Fatalf("%.300s: %v\n%s", command, err, c.log())
	}
	return f
}

// ok is do for a command that must succeed.
func (c *testClient) ok(command string) pitest.Frame {
	c.t.Helper()
	f := c.do(command)
	if !f.Success {
		c.t.Fatalf("%.300s: got failure %q, want success\n%s", command, f.Error, c.log())
	}
	return f
}

// fails is do for a command that must fail with the text.
func (c *testClient) fails(command, want string) {
	c.t.Helper()
	if f := c.do(command); f.Success || f.Error != want {
		c.t.Errorf("%.300s: got success %v and error %q, want error %q", command, f.Success, f.Error, want)
	}
}

// send sends a frame without waiting for a response.
func (c *testClient) send(frame string) {
	c.t.Helper()
	if err := c.Send(context.Background(), []byte(frame)); err != nil {
		c.t.Fatal(err)
	}
}

// open creates a session and subscribes to it.
func (c *testClient) open(session, agent string) {
	c.t.Helper()
	create := map[string]string{"type": "create_session", "sessionId": session}
	if agent != "" {
		create["agent"] = agent
	}
	c.ok(string(strictjson.Encode(create)))
	c.ok(`{"type":"switch_session","sessionId":"` + session + `"}`)
}

// transcript assembles the events of a session.
func (c *testClient) transcript(session string) *pitest.Transcript {
	var tr pitest.Transcript
	for _, f := range c.received() {
		if f.SessionID == session {
			tr.Add(f)
		}
	}
	return &tr
}

// doUnlimited is do without a timeout, for tests in a synctest bubble.
func (c *testClient) doUnlimited(command string) pitest.Frame {
	c.t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(command), &m); err != nil {
		c.t.Fatal(err)
	}
	f, err := c.Do(context.Background(), m)
	if err != nil {
		c.t.Fatal(err)
	}
	return f
}

// messagesOf returns the messages of a session.
func messagesOf(t *testing.T, c *testClient, session string) []conversation.Message {
	t.Helper()
	var data struct {
		Messages []json.RawMessage `json:"messages"`
	}
	if err := json.Unmarshal(c.ok(`{"type":"get_messages","sessionId":"`+session+`"}`).Data, &data); err != nil {
		t.Fatal(err)
	}
	var ms []conversation.Message
	for _, raw := range data.Messages {
		var shape struct {
			Role string `json:"role"`
		}
		if err := json.Unmarshal(raw, &shape); err != nil {
			t.Fatal(err)
		}
		ms = append(ms, conversation.Message{Role: shape.Role, JSON: raw})
	}
	return ms
}
