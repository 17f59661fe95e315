package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// overA2A is a client of A2A over one of its bindings. It reads the stream of its task and has the
// cursors of the hub's extension.
func overA2A(rpc bool) *clientDialect {
	ends := map[core.Code]wire.State{
		core.CodeUnsupported: wire.StateRejected, core.CodeNotAuthorized: wire.StateRejected, core.CodeLoop: wire.StateRejected, core.CodeBudget: wire.StateRejected, core.CodeInvalid: wire.StateRejected,
	}
	failed := func(f *core.Fault) outcome {
		end := wire.StateFailed
		if state, ok := ends[f.Code]; ok {
			end = state
		}
		return outcome{End: string(end), Code: string(f.Code), Message: f.Message, Retry: strconv.FormatBool(f.Retryable)}
	}
	name := "A2A over HTTP+JSON"
	if rpc {
		name = "A2A over JSON-RPC"
	}
	connect := func(t *testing.T, h *testHub) *a2aClient { return &a2aClient{newHTTPClient(t, h), rpc} }
	return &clientDialect{
		name:    name,
		connect: func(t *testing.T, h *testHub, _ string) requester { return connect(t, h) },
		streams: true, data: true,
		reports: map[string]func([]string) []string{"tool": keepAll, "approval": keepAll, "injection": keepAll, "usage": sum, "file": keepAll},
		done:    outcome{End: string(wire.StateCompleted)},
		failed:  failed,
		refused: func(f *core.Fault) outcome {
			return outcome{End: "error", Code: strings.ToUpper(string(f.Code)), Message: f.Message, Retry: strconv.FormatBool(f.Retryable)}
		},
		cancelled:  func(reason string) outcome { return outcome{End: string(wire.StateCanceled), Message: reason} },
		reconnects: func(t *testing.T, d *pair) string { return a2aReconnects(t, d, connect) },
	}
}

// a2aClient is a client over one binding.
type a2aClient struct {
	*httpClient
	rpc bool
}

// call calls a method and returns the answer; the path is that of the HTTP+JSON binding.
func (c *a2aClient) call(ctx context.Context, agent, method, path string, params any) (*http.Response, error) {
	at, body := "/a2a/"+agent+"/rest/"+path, plainJSON(params)
	if c.rpc {
		at, body = "/a2a/"+agent, plainJSON(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+at, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(wire.VersionHeader, wire.Version)
	r.Header.Set(wire.ExtensionsHeader, wire.CursorExtension)
	return c.http.Do(r)
}

// a2aExchange is a task that a client follows.
type a2aExchange struct {
	*exchange
	agent  string
	cursor string
	opened chan string
	data   json.RawMessage
}

func (c *a2aClient) begin(q query) *exchange { return c.open(q).exchange }

func (c *a2aClient) open(q query) *a2aExchange {
	x := &a2aExchange{exchange: newExchange(), agent: q.to, opened: make(chan string, 1)}
	parts := []any{map[string]any{"text": q.content}}
	if q.data != nil {
		parts = append(parts, map[string]any{"data": q.data})
	}
	message := func(parts []any, task string) any {
		m := map[string]any{"messageId": core.NewID(), "role": wire.RoleUser, "parts": parts}
		if task != "" {
			m["taskId"] = task
		} else if q.thread != "" {
			m["contextId"] = q.thread
		}
		return map[string]any{"message": m, "configuration": map[string]any{"returnImmediately": true}}
	}
	follow := func(ctx context.Context, parts ...any) error {
		id, err := x.task(ctx)
		if err != nil {
			return err
		}
		return c.once(ctx, q.to, wire.MethodSend, "message:send", message(parts, id))
	}
	x.cancel = func(ctx context.Context, reason string) error {
		id, err := x.task(ctx)
		if err != nil {
			return err
		}
		return c.once(ctx, q.to, wire.MethodCancelTask, "tasks/"+id+":cancel", map[string]any{"id": id, "metadata": map[string]string{"reason": reason}})
	}
	x.inject = func(ctx context.Context, content string) error { return follow(ctx, map[string]any{"text": content}) }
	x.decide = func(ctx context.Context, approved bool) error {
		return follow(ctx, map[string]any{"data": map[string]any{"approval": map[string]any{"id": parseInstruction(q.content).key, "approved": approved}}})
	}
	c.group.Go(func() { c.read(x, wire.MethodStream, "message:stream", message(parts, "")) })
	return x
}

// task waits for the id of the task.
func (x *a2aExchange) task(ctx context.Context) (string, error) {
	select {
	case id := <-x.opened:
		x.opened <- id
		return id, nil
	case <-x.ended:
		return "", errors.New("the request was refused")
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// once calls a method that has one answer.
func (c *a2aClient) once(ctx context.Context, agent, method, path string, params any) error {
	resp, err := c.call(ctx, agent, method, path, params)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if e := c.errorIn(resp.StatusCode, body); e != nil {
		return e
	}
	return err
}

// errorIn returns the error in an answer, nil for a result.
func (c *a2aClient) errorIn(status int, body []byte) *wire.Error {
	if !c.rpc {
		if status < 300 {
			return nil
		}
		return wire.ReadErrorBody(status, body)
	}
	v, err := wire.Parse(body)
	if err != nil {
		return &wire.Error{Message: string(body)}
	}
	e := v.Get("error")
	if !e.Exists() {
		return nil
	}
	var code int
	message, _ := e.Get("message").Text()
	if err := e.Get("code").Decode(&code); err != nil {
		return &wire.Error{Message: string(body)}
	}
	return wire.ReadError(status, code, message, e.Get("data"))
}

// read calls a method and reads the stream to its end.
func (c *a2aClient) read(x *a2aExchange, method, path string, params any) {
	resp, err := c.call(c.ctx, x.agent, method, path, params)
	if err != nil {
		x.lost(err)
		return
	}
	defer resp.Body.Close()
	if media := resp.Header.Get("Content-Type"); media != wire.MediaEvents {
		body, _ := io.ReadAll(resp.Body) // checked below
		e := c.errorIn(resp.StatusCode, body)
		if e == nil {
			x.violates("got %s: %s, want a stream", media, body)
			e = &wire.Error{}
		}
		x.end(outcome{End: "error", Code: e.Reason, Message: e.Message, Retry: strconv.FormatBool(e.Metadata["retryable"] == "true")})
		return
	}
	lines := bufio.NewReaderSize(resp.Body, 64<<10)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			x.lost(fmt.Errorf("the stream ended without a terminal state: %w", err))
			return
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		v, err := wire.Parse([]byte(data))
		if c.rpc && err == nil {
			v = v.Get("result")
		}
		if err == nil {
			var item wire.StreamResponse
			if item, err = new(wire.ItemReader).Read(v); err == nil && x.item(item) {
				return
			}
		}
		if err != nil {
			x.violates("%s: %s", data, err)
		}
	}
}

// item takes an item, and reports whether it is the last.
func (x *a2aExchange) item(item wire.StreamResponse) (last bool) {
	var metadata json.RawMessage
	switch {
	case item.Task != nil:
		metadata = item.Task.Metadata
		x.opened <- item.Task.ID
		x.report("assigned", "%s", item.Task.Status.State)
		for _, a := range item.Task.Artifacts {
			x.artifact(a)
		}
		last = x.status(item.Task.Status, metadata)
	case item.ArtifactUpdate != nil:
		metadata = item.ArtifactUpdate.Metadata
		x.artifact(item.ArtifactUpdate.Artifact)
	case item.StatusUpdate != nil:
		metadata = item.StatusUpdate.Metadata
		last = x.status(item.StatusUpdate.Status, metadata)
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(metadata, &m) != nil || json.Unmarshal(m[wire.CursorExtension], &x.cursor) != nil {
		x.violates("an item has the metadata %s, without a cursor", metadata)
	}
	return last
}

func (x *a2aExchange) artifact(a wire.Artifact) {
	for _, p := range a.Parts {
		switch p.Kind {
		case wire.PartText:
			x.addText(p.Text)
		case wire.PartRaw:
			x.report("file", "%s", p.Raw)
		case wire.PartData:
			x.data = p.Data
		}
	}
}

// status takes a status and the metadata beside it, and reports whether it is the end of the task.
func (x *a2aExchange) status(s wire.Status, metadata json.RawMessage) (last bool) {
	var m struct {
		Usage *core.Usage
		Fault *core.Fault
	}
	if len(metadata) > 0 && json.Unmarshal(metadata, &m) != nil {
		x.violates("got the metadata %s", metadata)
	}
	text := ""
	if s.Message != nil {
		text = wire.Text(s.Message.Parts)
		x.event(*s.Message)
	}
	if !s.State.Terminal() {
		return false
	}
	if m.Usage != nil {
		x.report("usage", "%d", m.Usage.Total())
	}
	out := outcome{End: string(s.State), Message: text, Data: x.data}
	if m.Fault != nil {
		out.Code, out.Retry = string(m.Fault.Code), strconv.FormatBool(m.Fault.Retryable)
	}
	x.end(out)
	return true
}

// event reports the event of the hub that a message of the status tells.
func (x *a2aExchange) event(m wire.Message) {
	var in struct {
		Event struct {
			Kind                string
			Name, Input, Output string
			State               string
			Approved, Accepted  bool
		}
	}
	if len(m.Metadata) > 0 && json.Unmarshal(m.Metadata, &in) != nil {
		x.violates("got the metadata %s", m.Metadata)
	}
	switch e := in.Event; e.Kind {
	case "tool_call":
		x.report("tool", "call %s %s", e.Name, e.Input)
	case "tool_state":
		x.report("tool", "%s", e.State)
	case "tool_result":
		x.report("tool", "result %s", e.Output)
	case "approval_decided":
		x.report("approval", "%s", decisionText(e.Approved))
	case "injection_answered":
		x.report("injection", "taken %t", e.Accepted)
	}
	for _, p := range m.Parts {
		var asks struct{ Approval struct{ Name string } }
		if p.Kind == wire.PartData && json.Unmarshal(p.Data, &asks) == nil && asks.Approval.Name != "" {
			x.report("approval", "asked %s", asks.Approval.Name)
		}
	}
}

// a2aReconnects cuts off the reader of a task, which continues and is resumed from its cursor.
func a2aReconnects(t *testing.T, d *pair, connect func(*testing.T, *testHub) *a2aClient) string {
	first := connect(t, d.testHub)
	defer first.leave()
	key, rest := d.key(), firstHalf+secondHalf
	x := first.open(d.query("hang " + key))
	d.await(t, key+d.startedSignal())
	if x.waitReport(t, "assigned"); d.streamed() {
		x.waitText(t, firstHalf)
		rest = secondHalf
	}
	first.cut()
	if got := x.wait(t); got.End != "lost" {
		t.Errorf("got %+v, want the connection lost", got)
	}
	id, cursor := <-x.opened, x.cursor
	second := connect(t, d.testHub)
	defer second.leave()
	z := &a2aExchange{exchange: newExchange(), agent: x.agent, opened: make(chan string, 1)}
	second.group.Go(func() {
		second.read(z, wire.MethodSubscribe, "tasks/"+id+":subscribe", map[string]any{"id": id, "metadata": map[string]string{wire.CursorExtension: cursor}})
	})
	d.finish(t, key)
	wantResult(t, z.wait(t), d.wantAnswer(rest))
	return "runs on, resumed"
}
