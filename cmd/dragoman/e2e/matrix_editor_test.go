package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/editor"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/stdio"
)

// editorOverWebSocket is an editor at the hub's own path.
func editorOverWebSocket() *clientDialect {
	return editorDialect("editor WebSocket", func(t *testing.T, h *testHub, to string) frames {
		return dialFrames(t, h.service.Addresses().HTTP, editor.Path+"?agent="+url.QueryEscape(to), editor.DefaultMaxMessageBytes)
	})
}

// editorOverStdio is an editor that starts the program.
func editorOverStdio() *clientDialect {
	return editorDialect("editor stdio", func(t *testing.T, h *testHub, to string) frames {
		cmd := program(t, "editor", "--agent", to, "--hub", h.url())
		cmd.Stderr = os.Stderr
		child, err := stdio.Command(context.Background(), cmd, stdio.ChildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { child.Close(link.Reason{Cause: link.Normal}) })
		return frames{child, func() { _ = cmd.Process.Kill() }} // it may have ended by itself
	})
}

// editorDialect is the protocol of editors. A prompt outlives its editor, and session/load shows
// what became of it. A connection is for one agent: a requester opens one for each.
func editorDialect(name string, open func(t *testing.T, h *testHub, to string) frames) *clientDialect {
	failed := func(f *core.Fault) outcome {
		return outcome{End: "error", Code: string(f.Code), Message: f.Message, Retry: strconv.FormatBool(f.Retryable)}
	}
	connect := func(t *testing.T, h *testHub) *editorClient {
		return &editorClient{t: t, open: func(to string) frames { return open(t, h, to) }, all: map[string]*editorConn{}}
	}
	return &clientDialect{
		name: name, streams: true, foldsData: "editor.folded.data",
		connect:   func(t *testing.T, h *testHub, _ string) requester { return connect(t, h) },
		reports:   map[string]func([]string) []string{"tool": keepAll, "approval": except("approved"), "usage": sum, "file": keepAll},
		done:      outcome{End: "end_turn"},
		failed:    failed,
		refused:   failed,
		cancelled: func(string) outcome { return outcome{End: "cancelled"} },
		reconnects: func(t *testing.T, d *pair) string {
			first := connect(t, d.testHub)
			defer first.leave()
			key, x := d.startHalf(t, first, query{})
			session := x.id
			first.cut()
			if got := x.wait(t); got.End != "lost" {
				t.Errorf("got %+v, want the connection lost", got)
			}
			second := connect(t, d.testHub)
			defer second.leave()
			y := second.to(string(d.agent)).load(session)
			if d.streamed() {
				y.waitText(t, firstHalf)
			}
			d.finish(t, key)
			y.waitText(t, firstHalf+secondHalf)
			return "runs on, replayed"
		},
	}
}

// editorClient is an editor with a connection for each agent.
type editorClient struct {
	t    *testing.T
	open func(to string) frames

	mu  sync.Mutex
	all map[string]*editorConn
}

// to returns the connection for an agent.
func (e *editorClient) to(agent string) *editorConn {
	e.t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if c := e.all[agent]; c != nil {
		return c
	}
	c := &editorConn{frames: e.open(agent), answers: map[string]func(editorMessage){}, sessions: map[string]*exchange{}, asked: map[string]json.RawMessage{}, read: make(chan struct{})}
	e.all[agent] = c
	go c.hear()
	c.must(e.t, "initialize", `{"protocolVersion":1,"clientCapabilities":{}}`)
	return c
}

func (e *editorClient) begin(q query) *exchange { return e.to(q.to).prompt(e.t, q.content) }

func (e *editorClient) cut() {
	for _, c := range e.all {
		c.frames.cut()
		<-c.read
	}
}

func (e *editorClient) leave() {
	for _, c := range e.all {
		_ = c.frames.Close(link.Reason{Cause: link.Normal})
		<-c.read
	}
}

// editorConn is one connection of an editor.
type editorConn struct {
	frames frames
	read   chan struct{} // closed once nothing more is read

	mu       sync.Mutex
	last     int
	answers  map[string]func(editorMessage) // by the id of the request
	sessions map[string]*exchange
	asked    map[string]json.RawMessage // the permission request of a session
	ended    error
}

// editorMessage is a message of the hub.
type editorMessage struct {
	ID     json.RawMessage
	Method string
	Params struct {
		SessionID string
		Update    editorUpdate
		ToolCall  struct{ Title string }
	}
	Result struct {
		SessionID  string
		StopReason string
		Usage      struct{ TotalTokens int64 }
	}
	Error *struct {
		Code    int
		Message string
		Data    struct {
			Code      string
			Retryable bool
		}
	}
}

// editorUpdate is the update of a session/update.
type editorUpdate struct {
	SessionUpdate string
	Title, Name   string
	Status        string
	RawInput      json.RawMessage
	RawOutput     json.RawMessage
	Content       json.RawMessage
}

// hear reads until the connection ends.
func (c *editorConn) hear() {
	defer close(c.read)
	for {
		raw, err := c.frames.Receive(context.Background())
		if err != nil {
			c.mu.Lock()
			c.ended = err
			open := c.answers
			c.answers = nil
			for _, x := range c.sessions {
				x.lost(err)
			}
			c.mu.Unlock()
			for _, answer := range open {
				answer(editorMessage{Method: "lost"})
			}
			return
		}
		var m editorMessage
		if err := json.Unmarshal(raw, &m); err != nil {
			panic(fmt.Sprintf("%s: %v", raw, err))
		}
		c.mu.Lock()
		x, answer := c.sessions[m.Params.SessionID], c.answers[string(m.ID)]
		if m.Method == "" {
			delete(c.answers, string(m.ID))
		}
		c.mu.Unlock()
		switch {
		case m.Method == "" && answer != nil:
			answer(m)
		case x == nil:
		case m.Method == "session/request_permission":
			c.mu.Lock()
			c.asked[m.Params.SessionID] = m.ID
			c.mu.Unlock()
			x.report("approval", "asked %s", m.Params.ToolCall.Title)
		case m.Method == "session/update":
			m.Params.Update.tell(x)
		}
	}
}

// tell adds an update to an exchange.
func (u editorUpdate) tell(x *exchange) {
	var block struct {
		Text     *string
		Resource struct{ Text string }
	}
	switch u.SessionUpdate {
	case "agent_message_chunk":
		_ = json.Unmarshal(u.Content, &block) // what it lacks stays empty
		if block.Text == nil {
			x.report("file", "%s", block.Resource.Text)
			return
		}
		text := *block.Text
		if fenced, is := strings.CutPrefix(text, "\n```json\n"); is {
			text = strings.TrimSuffix(fenced, "\n```\n")
		}
		x.addText(text)
	case "tool_call":
		x.report("tool", "call %s %s", cmp.Or(u.Name, u.Title), u.RawInput)
	case "tool_call_update":
		switch {
		case u.Status == "in_progress":
			x.report("tool", "running")
		case u.RawOutput != nil:
			output := string(u.RawOutput)
			_ = json.Unmarshal(u.RawOutput, &output) // if it is a text
			x.report("tool", "result %s", output)
		case u.Content != nil: // of an agent of the protocol
			var content []struct{ Content struct{ Text string } }
			if err := json.Unmarshal(u.Content, &content); err != nil || len(content) != 1 {
				x.violates("the content of a tool call is %s", u.Content)
				return
			}
			x.report("tool", "result %s", content[0].Content.Text)
		default:
			x.report("tool", "%s", u.Status)
		}
	}
}

// call sends a request, and calls answered with its answer.
func (c *editorConn) call(method, params string, answered func(editorMessage)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != nil {
		return c.ended
	}
	c.last++
	id := json.RawMessage(strconv.Itoa(c.last))
	c.answers[string(id)] = answered
	return c.frames.Send(context.Background(), jsonrpc.AppendRequest(nil, id, method, json.RawMessage(params)))
}

// must sends a request that has to succeed.
func (c *editorConn) must(t *testing.T, method, params string) editorMessage {
	t.Helper()
	got := make(chan editorMessage, 1)
	if err := c.call(method, params, func(m editorMessage) { got <- m }); err != nil {
		t.Fatal(err)
	}
	m := <-got
	if m.Error != nil || m.Method == "lost" {
		t.Fatalf("%s: got %+v, want it to succeed", method, m.Error)
	}
	return m
}

// prompt asks in a session of its own.
func (c *editorConn) prompt(t *testing.T, text string) *exchange {
	t.Helper()
	session := c.must(t, "session/new", `{"cwd":"/tmp","mcpServers":[]}`).Result.SessionID
	x := c.listen(session)
	err := c.call("session/prompt", string(plainJSON(map[string]any{"sessionId": session, "prompt": []any{map[string]string{"type": "text", "text": text}}})), func(m editorMessage) {
		switch {
		case m.Method == "lost":
		case m.Error != nil:
			x.end(outcome{End: "error", Code: m.Error.Data.Code, Message: m.Error.Message, Retry: strconv.FormatBool(m.Error.Data.Retryable)})
		default:
			if n := m.Result.Usage.TotalTokens; n > 0 {
				x.report("usage", "%d", n)
			}
			x.end(outcome{End: m.Result.StopReason})
		}
	})
	if err != nil {
		x.lost(err)
	}
	x.cancel = func(ctx context.Context, _ string) error {
		return c.notify(ctx, "session/cancel", map[string]string{"sessionId": session})
	}
	x.decide = func(ctx context.Context, approved bool) error {
		option := "reject_once"
		if approved {
			option = "allow_once"
		}
		c.mu.Lock()
		id := c.asked[session]
		c.mu.Unlock()
		return c.send(ctx, jsonrpc.AppendResult(nil, id, plainJSON(map[string]any{"outcome": map[string]string{"outcome": "selected", "optionId": option}})))
	}
	return x
}

// load loads a session, without an end of its own.
func (c *editorConn) load(session string) *exchange {
	x := c.listen(session)
	params := string(plainJSON(map[string]any{"sessionId": session, "cwd": "/tmp", "mcpServers": []any{}}))
	if err := c.call("session/load", params, func(editorMessage) {}); err != nil {
		x.lost(err)
	}
	return x
}

// listen collects what a session says.
func (c *editorConn) listen(session string) *exchange {
	x := newExchange()
	x.id = session
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions[session] = x
	return x
}

func (c *editorConn) notify(ctx context.Context, method string, params any) error {
	return c.send(ctx, jsonrpc.AppendNotification(nil, method, plainJSON(params)))
}

func (c *editorConn) send(ctx context.Context, frame []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.frames.Send(ctx, frame)
}
