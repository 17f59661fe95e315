package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
)

// overMCP is a client of MCP 2025-11-25 that calls agent_ask, and can ask its user. A failure is the
// result of the tool.
func overMCP() *clientDialect {
	failed := func(f *core.Fault) outcome { return outcome{End: "isError", Code: string(f.Code), Message: f.Message} }
	return &clientDialect{
		name:    "MCP",
		connect: func(t *testing.T, h *testHub, _ string) requester { return connectMCP(t, h) },
		data:    true, deadlines: true, reports: map[string]func([]string) []string{"file": keepAll, "approval": except("approved")},
		done: outcome{End: "result"}, failed: failed, refused: failed,
		cancelled: func(reason string) outcome {
			return outcome{End: "isError", Code: string(core.CodeCancelled), Message: "the client cancelled the call: " + reason}
		},
		reconnects: mcpReconnects,
	}
}

// mcpClient is a client with a session.
type mcpClient struct {
	*httpClient
	session string
	ids     atomic.Int64
}

func connectMCP(t *testing.T, h *testHub) *mcpClient {
	t.Helper()
	c := &mcpClient{httpClient: newHTTPClient(t, h)}
	if err := c.initialize(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// initialize begins the session.
func (c *mcpClient) initialize(ctx context.Context) error {
	resp, err := c.post(ctx, map[string]any{"id": 0, "method": "initialize", "params": map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{"elicitation": map[string]any{}}, "clientInfo": map[string]any{"name": "matrix", "version": "1"},
	}})
	if err != nil {
		return err
	}
	c.session = resp.Header.Get("Mcp-Session-Id")
	return resp.Body.Close()
}

// post sends a message.
func (c *mcpClient) post(ctx context.Context, m map[string]any) (*http.Response, error) {
	m["jsonrpc"] = "2.0"
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/mcp", strings.NewReader(string(plainJSON(m))))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Session-Id", c.session)
	r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	return c.http.Do(r)
}

// tell sends a message that has no answer.
func (c *mcpClient) tell(ctx context.Context, m map[string]any) error {
	resp, err := c.post(ctx, m)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		body, _ := io.ReadAll(resp.Body) // only shown
		return fmt.Errorf("%v: %d %s", m, resp.StatusCode, body)
	}
	return nil
}

func (c *mcpClient) begin(q query) *exchange {
	x, asked := newExchange(), make(chan json.RawMessage, 1)
	id := c.ids.Add(1)
	input := map[string]any{"to": q.to, "content": q.content}
	if q.data != nil {
		input["data"] = q.data
	}
	if q.deadline > 0 {
		input["timeout_seconds"] = q.deadline.Seconds()
	}
	x.cancel = func(ctx context.Context, reason string) error {
		return c.tell(ctx, map[string]any{"method": "notifications/cancelled", "params": map[string]any{"requestId": id, "reason": reason}})
	}
	x.decide = func(ctx context.Context, approved bool) error {
		select {
		case elicitation := <-asked:
			return c.tell(ctx, map[string]any{"id": elicitation, "result": map[string]any{"action": "accept", "content": map[string]any{"allow": approved}}})
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	c.group.Go(func() {
		resp, err := c.post(c.ctx, map[string]any{"id": id, "method": "tools/call", "params": map[string]any{
			"name": "agent_ask", "arguments": input, "_meta": map[string]any{"progressToken": strconv.FormatInt(id, 10)},
		}})
		if err != nil {
			x.lost(err)
			return
		}
		defer resp.Body.Close()
		var body io.Reader = resp.Body
		if resp.Header.Get("Content-Type") == "application/json" { // a call that is refused has no stream
			body = io.MultiReader(strings.NewReader("data: "), body, strings.NewReader("\n"))
		}
		c.read(x, body, asked)
	})
	return x
}

// askedToRun matches what a user is asked.
var askedToRun = regexp.MustCompile(`^\S+ asks to run (.*):\n`)

// read reads the stream of a call to its end.
func (c *mcpClient) read(x *exchange, body io.Reader, asked chan<- json.RawMessage) {
	var progress float64
	lines := bufio.NewReaderSize(body, 64<<10)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			x.lost(fmt.Errorf("the stream ended without a result: %w", err))
			return
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Progress float64
				Message  string
			}
			Result *mcpResult
		}
		if err := json.Unmarshal([]byte(data), &m); err != nil {
			x.violates("%.100s: %s", data, err)
			return
		}
		switch {
		case m.Method == "notifications/progress":
			if m.Params.Progress <= progress {
				x.violates("progress %g came after %g", m.Params.Progress, progress)
			}
			progress = m.Params.Progress
		case m.Method == "elicitation/create":
			if tool := askedToRun.FindStringSubmatch(m.Params.Message); tool != nil {
				x.report("approval", "asked %s", tool[1])
			}
			asked <- m.ID
		case m.Method == "notifications/cancelled": // of the elicitation: somebody else decided
		case m.Result != nil:
			m.Result.end(x)
			return
		default:
			x.violates("got %.100s, want a result", data)
			return
		}
	}
}

// mcpResult is the result of a tool.
type mcpResult struct {
	IsError bool
	Content []struct {
		Type, Text string
		Resource   struct{ Text string }
	}
	StructuredContent json.RawMessage
}

// end ends an exchange with the result.
func (r *mcpResult) end(x *exchange) {
	if len(r.Content) == 0 {
		x.violates("the result is empty")
		return
	}
	text := r.Content[0].Text
	if r.IsError {
		code, message, _ := strings.Cut(text, ": ")
		x.end(outcome{End: "isError", Code: code, Message: message})
		return
	}
	var answer struct {
		Text string
		Data json.RawMessage
	}
	err := json.Unmarshal([]byte(text), &answer)
	if answer.Data != nil && string(r.StructuredContent) != text {
		err = errors.Join(err, fmt.Errorf("the structured content is %.100s, want the text", r.StructuredContent))
	}
	if err != nil {
		x.violates("%.100s: %s", text, err)
	}
	for _, c := range r.Content[1:] {
		x.report("file", "%s", c.Resource.Text)
	}
	x.end(outcome{End: "result", Text: answer.Text, Data: answer.Data})
}

// mcpReconnects cuts off a client, whose call is cancelled.
func mcpReconnects(t *testing.T, d *pair) string {
	first := connectMCP(t, d.testHub)
	defer first.leave()
	key, x := d.startHalf(t, first, query{})
	first.cut()
	if got := x.wait(t); got.End != "lost" {
		t.Errorf("got %+v, want the connection lost", got)
	}
	d.wantCancelled(t, key)
	return "cancelled"
}
