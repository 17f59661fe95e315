package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	acpwire "github.com/dragoman-hub/dragoman/adapters/acp/wire"

	covendialect "github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

// worker is an agent at one hub of a cluster: it answers in capitals, what begins with "wait" once
// it is released.
type worker struct {
	asked   chan string // what it was asked to wait with
	release chan struct{}
}

func joinWorker(t *testing.T, at *clusterHub, id core.AgentID) *worker {
	t.Helper()
	return joinWorkerAs(t, at, id, "")
}

// joinWorkerAs is joinWorker with a token.
func joinWorkerAs(t *testing.T, at *clusterHub, id core.AgentID, token string) *worker {
	t.Helper()
	w := &worker{asked: make(chan string, 100), release: make(chan struct{}, 100)}
	ctx, leave := context.WithCancel(t.Context())
	in, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- service.Joins()[covendialect.Name](ctx, client.Hub{GRPC: at.grpc, Token: token}, core.Card{ID: id}, func(ctx context.Context, r core.Request, report func(core.Body) error) error {
			if strings.HasPrefix(r.Content, "wait") {
				w.asked <- r.Content
				select {
				case <-w.release:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return report(core.Done{Text: strings.ToUpper(r.Content)})
		}, func(client.AskFunc) { close(in) }, slog.New(slog.DiscardHandler))
	}()
	t.Cleanup(func() {
		leave()
		<-ended
	})
	select {
	case <-in:
	case <-time.After(watchdog):
		t.Fatal("the agent did not join")
	}
	return w
}

// A client of each dialect talks at one hub, goes on at the next, then at the third.
func TestClientsFindTheirOwn(t *testing.T) {
	t.Setenv("DRAGOMAN_A2A_PUSH_TARGETS", "any")
	all := startCluster(t, 3)
	w := joinWorker(t, all[1], "worker")
	for _, h := range all {
		h.until(h.name+" knows the agent", func() error { return h.Get(t.Context(), "/v1/agents/worker", new(any)) })
	}
	for name, finds := range map[string]func(t *testing.T, all hubCluster, w *worker){
		"pi": piFindsItsOwn, "ACP": acpFindsItsOwn, "ACP over HTTP": acpHTTPFindsItsOwn, "MCP": mcpFindsItsOwn,
		"editor": editorFindsItsOwn, "MCP as an agent": agentFindsItsTools, "A2A": a2aFindsItsOwn, "Coven": covenFindsItsOwn,
	} {
		t.Run(name, func(t *testing.T) { finds(t, all, w) })
	}
	t.Run("pi, whose home is killed", func(t *testing.T) { piGoesOnElsewhere(t, all) })
}

// said is an HTTP answer.
func said(t *testing.T, h *clusterHub, method, path, body string, headers ...string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, h.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	resp, err := h.HTTP.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// A peer delegates at one hub and leaves; it gets the result at the next, where it delegates again.
func acpFindsItsOwn(t *testing.T, all hubCluster, w *worker) {
	var conn *ws.Conn
	read := func(what string, is func(acpwire.Envelope) bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), watchdog)
		defer cancel()
		for {
			raw, err := conn.Receive(ctx)
			if err != nil {
				t.Fatalf("waiting for %s: %v", what, err)
			}
			if e, err := acpwire.Decode(raw, client.MaxACPBytes); err == nil && is(e) {
				return
			}
		}
	}
	last := ""
	for _, h := range all {
		var err error
		if conn, err = client.DialWebSocket(t.Context(), client.Hub{URL: h.URL}, "/ws/acp", http.Header{"X-Agent-Id": {"roamer"}}, client.MaxACPBytes); err != nil {
			t.Fatal(err)
		}
		if last != "" {
			read("the result at "+h.name, func(e acpwire.Envelope) bool { return e.Kind == acpwire.KindResult && e.Ref == last })
		}
		e := acpRequest("roamer", query{to: "worker", content: "wait for " + h.name, delegate: true, deadline: watchdog})
		e.Payload = plainJSON(acpwire.Delegate{Task: "wait for " + h.name, DeadlineMS: watchdog.Milliseconds(), ReportBack: new(true)})
		if err := conn.Send(t.Context(), e.Encode()); err != nil {
			t.Fatal(err)
		}
		read("the ack", func(a acpwire.Envelope) bool { return a.Kind == acpwire.KindAck && a.Ref == e.ID })
		<-w.asked
		_ = conn.Close(link.Reason{Cause: link.Normal})
		w.release <- struct{}{}
		last = e.ID
	}
}

// A peer that has only HTTP posts at one hub and reads at another.
func acpHTTPFindsItsOwn(t *testing.T, all hubCluster, w *worker) {
	const id = "X-Agent-Id: poster"
	resp := make(chan string, 100)
	ctx, cancel := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	defer reading.Wait()
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, all[2].URL+"/acp?agent_id=poster", nil)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := all[2].HTTP.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	reading.Go(func() {
		defer stream.Body.Close()
		for lines := bufio.NewScanner(stream.Body); lines.Scan(); {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				resp <- data
			}
		}
	})
	for _, h := range all {
		e := acpwire.Envelope{ID: core.NewID(), From: "poster", To: "worker", TS: time.Now().UnixMilli(), Kind: acpwire.KindDelegate}
		e.Payload = plainJSON(acpwire.Delegate{Task: "wait for " + h.name, DeadlineMS: watchdog.Milliseconds(), ReportBack: new(true)})
		if status, text := said(t, h, http.MethodPost, "/acp", string(e.Encode()), id); status != http.StatusOK || !strings.Contains(text, `"ack"`) {
			t.Fatalf("posting at %s: got %d %s, want an ack", h.name, status, text)
		}
		<-w.asked
		w.release <- struct{}{}
		for late := time.After(watchdog); ; {
			var data string
			select {
			case data = <-resp:
			case <-late:
				t.Fatalf("posted at %s: the result did not come at c", h.name)
			}
			if strings.Contains(data, e.ID) && strings.Contains(data, `"result"`) {
				break
			}
		}
	}
}

// A client of MCP follows its task at every hub, and cancels a call of its session at another one.
func mcpFindsItsOwn(t *testing.T, all hubCluster, w *worker) {
	type state struct{ ResultType, TaskID, Status string }
	var handle, there, after state
	modernMCP(t, all[0].URL, "tools/call", `"name":"agent_ask","arguments":{"to":"worker","content":"wait"}`, "agent_ask", &handle)
	<-w.asked
	modernMCP(t, all[2].URL, "tasks/get", `"taskId":"`+handle.TaskID+`"`, handle.TaskID, &there)
	if there.Status != "working" {
		t.Errorf("at c: got %+v, want the task that works", there)
	}
	modernMCP(t, all[1].URL, "tasks/cancel", `"taskId":"`+handle.TaskID+`"`, handle.TaskID, &after)
	all[0].until("the task is cancelled", func() error {
		if modernMCP(t, all[0].URL, "tasks/get", `"taskId":"`+handle.TaskID+`"`, handle.TaskID, &after); after.Status != "cancelled" {
			return fmt.Errorf("it is %s", after.Status)
		}
		return nil
	})

	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, all[0].URL+"/mcp", strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	began, err := all[0].HTTP.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	began.Body.Close()
	session := "Mcp-Session-Id: " + began.Header.Get("Mcp-Session-Id")
	ended := make(chan string, 1)
	go func() {
		_, text := askMCP(t, all[1].URL+"/mcp", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"agent_ask","arguments":{"to":"worker","content":"wait"}}}`, session)
		ended <- text
	}()
	<-w.asked
	said(t, all[2], http.MethodPost, "/mcp", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"enough"}}`, session)
	select {
	case text := <-ended:
		if !strings.Contains(text, "enough") {
			t.Errorf("the call at b: got %s, want it cancelled from c", text)
		}
	case <-time.After(watchdog):
		t.Error("the call at b goes on after it was cancelled at c")
	}
}

// A client of A2A reads its task at every hub, and the notifications that it configured.
func a2aFindsItsOwn(t *testing.T, all hubCluster, w *worker) {
	posted := make(chan string, 10)
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		posted <- string(body)
	}))
	t.Cleanup(target.Close)
	call := func(h *clusterHub, method string, params any, result any) {
		t.Helper()
		body := plainJSON(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
		_, text := said(t, h, http.MethodPost, "/a2a/worker", string(body), "A2A-Version: 1.0")
		var r struct{ Result json.RawMessage }
		if err := json.Unmarshal([]byte(text), &r); err != nil || r.Result == nil || json.Unmarshal(r.Result, result) != nil {
			t.Fatalf("%s at %s: got %s, want a result", method, h.name, text)
		}
	}
	var sent struct{ Task struct{ ID string } }
	call(all[0], "SendMessage", map[string]any{
		"message":       map[string]any{"messageId": core.NewID(), "role": "ROLE_USER", "parts": []any{map[string]any{"text": "wait"}}},
		"configuration": map[string]any{"returnImmediately": true, "taskPushNotificationConfig": map[string]any{"id": "mine", "url": target.URL}},
	}, &sent)
	<-w.asked
	var task struct {
		Status struct{ State string }
	}
	for begun := time.Now(); task.Status.State != "TASK_STATE_WORKING" && time.Since(begun) < watchdog; { // once that is stored
		call(all[2], "GetTask", map[string]any{"id": sent.Task.ID}, &task)
	}
	if task.Status.State != "TASK_STATE_WORKING" {
		t.Errorf("at c: got %+v, want the task that works", task)
	}
	var list struct{ Configs []struct{ ID string } }
	call(all[1], "ListTaskPushNotificationConfigs", map[string]any{"taskId": sent.Task.ID}, &list)
	if len(list.Configs) != 1 || list.Configs[0].ID != "mine" {
		t.Errorf("the notifications at b: got %+v, want the one that was configured at a", list)
	}
	call(all[1], "CreateTaskPushNotificationConfig", map[string]any{"taskId": sent.Task.ID, "id": "more", "url": target.URL + "/more"}, new(any))
	call(all[2], "DeleteTaskPushNotificationConfig", map[string]any{"taskId": sent.Task.ID, "id": "mine"}, new(any))
	call(all[0], "ListTaskPushNotificationConfigs", map[string]any{"taskId": sent.Task.ID}, &list)
	if len(list.Configs) != 1 || list.Configs[0].ID != "more" {
		t.Errorf("the notifications at a: got %+v, want that of b alone", list)
	}
	w.release <- struct{}{}
	select {
	case text := <-posted:
		if !strings.Contains(text, sent.Task.ID) {
			t.Errorf("got %s, want the end of the task", text)
		}
	case <-time.After(watchdog):
		t.Error("nothing was posted at the end of the task")
	}
}
