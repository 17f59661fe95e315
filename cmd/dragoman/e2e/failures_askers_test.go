package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/acp/acptest"
	acpclient "github.com/dragoman-hub/dragoman/adapters/acp/client"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	covenclient "github.com/dragoman-hub/dragoman/adapters/coven/client"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	parallaxclient "github.com/dragoman-hub/dragoman/adapters/parallax/client"
	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/pitest"
	"github.com/dragoman-hub/dragoman/adapters/rest"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

// askers ask over pipes in memory, with every field that their dialect has.
func askers() []asker {
	query := func(a requestFields) requestFields {
		a.Intent, a.Thread, a.Priority, a.ReportBack = core.IntentAsk, "", core.PriorityNormal, true
		return a
	}
	delegate := func(a requestFields) requestFields {
		if a.Priority == core.PriorityLow {
			a.Priority = core.PriorityNormal
		}
		a.Intent, a.Thread, a.ReportBack = core.IntentDelegate, "", true
		return a
	}
	textAndData := func(a answerFields) answerFields { return answerFields{Text: a.Text, Data: a.Data} }
	return []asker{
		{"REST", unchanged[requestFields], unchanged[answerFields], askByREST},
		{"Parallax", unchanged[requestFields], unchanged[answerFields], askByParallax},
		{"ACP query", query, acpAnswer, askByACP},
		{"ACP delegate", delegate, acpAnswer, askByACP},
		{"agent_ask", func(a requestFields) requestFields {
			return requestFields{Intent: core.IntentAsk, Priority: core.PriorityNormal, Content: a.Content, Data: a.Data}
		}, textAndData, askByCoven(askTool)},
		{"agent_delegate", func(a requestFields) requestFields {
			return requestFields{Intent: core.IntentDelegate, Priority: core.PriorityNormal, Content: a.Content, Context: a.Context}
		}, textAndData, askByCoven(delegateTool)},
		{"pi", func(a requestFields) requestFields {
			for i := range a.Attachments {
				a.Attachments[i].Name, a.Attachments[i].MediaType = fmt.Sprintf("image-%d", i+1), "image/png"
			}
			return requestFields{Intent: core.IntentAsk, Priority: core.PriorityNormal, Content: a.Content, Attachments: a.Attachments}
		}, func(a answerFields) answerFields { return answerFields{Text: a.Text + string(a.Data)} }, askByPi},
	}
}

// runForTest runs a function until the test ends. end makes it return.
func runForTest(t *testing.T, run func(ctx context.Context), end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var life sync.WaitGroup
	life.Go(func() { run(ctx) })
	t.Cleanup(func() {
		cancel()
		end()
		life.Wait()
	})
}

// pipes returns the hub's end and the peer's end of a connection.
func pipes() (hubs, peers *coretest.End[[]byte, []byte]) { return coretest.Pipe[[]byte, []byte](16) }

func closeFunc(conn link.Conn[[]byte, []byte]) func() {
	return func() { conn.Close(link.Reason{Cause: link.Normal}) }
}

// joinObserver signals which agents have joined.
type joinObserver struct{ signals }

func (a *joinObserver) Joined(c core.Card)               { a.signal("joined "+string(c.ID), nil) }
func (a *joinObserver) Left(core.AgentID, bool)          {}
func (a *joinObserver) Appended(core.TaskID, core.Event) {}
func (a *joinObserver) Recorded(core.TaskID, uint64)     {}

func joinParallaxInMemory(t *testing.T, h *hub.Hub, card core.Card, handle core.Handler) {
	serveParallax(t, h, card, handle, func(*parallaxclient.Agent) {})
}

func serveParallax(t *testing.T, h *hub.Hub, card core.Card, handle core.Handler, registered func(*parallaxclient.Agent)) {
	hubs, peers := pipes()
	runForTest(t, func(ctx context.Context) {
		parallax.Serve(ctx, h, hubs, &parallax.Options{MaxMessagesPerSecond: 1 << 20})
	}, closeFunc(peers))
	runForTest(t, func(ctx context.Context) {
		_ = parallaxclient.Work(ctx, peers, card, handle, parallaxclient.WorkOptions{Registered: registered})
	}, func() {})
}

func joinACPInMemory(t *testing.T, h *hub.Hub, card core.Card, handle core.Handler) {
	hubs, peers := pipes()
	runForTest(t, func(ctx context.Context) {
		acp.Serve(ctx, h, hubs, &acp.Options{Peers: acp.NewPeers(h, acp.PeersOptions{})})
	}, closeFunc(peers))
	runForTest(t, func(ctx context.Context) { _ = acpclient.Work(ctx, peers, card, handle, acpclient.WorkOptions{}) }, func() {})
}

// serveCovenPipe serves a Coven stream and returns the agent's end of it.
func serveCovenPipe(t *testing.T, h *hub.Hub) link.Conn[*wire.ServerMessage, *wire.AgentMessage] {
	server, agent := coretest.ProtoPipe[wire.AgentMessage, wire.ServerMessage](16)
	runForTest(t, func(ctx context.Context) { coven.Serve(ctx, h, server, &coven.Options{}) }, func() { agent.Close(link.Reason{Cause: link.Normal}) })
	return agent
}

func joinCovenInMemory(t *testing.T, h *hub.Hub, card core.Card, handle core.Handler) {
	conn := serveCovenPipe(t, h)
	runForTest(t, func(ctx context.Context) { _ = covenclient.Work(ctx, conn, card, handle, covenclient.WorkOptions{}) }, func() {})
}

// members are the fields of a request in a JSON form with the hub's own names.
func (a requestFields) members() map[string]any {
	m := map[string]any{"content": a.Content}
	if a.Data != nil {
		m["data"] = a.Data
	}
	if a.Context != nil {
		m["context"] = a.Context
	}
	return m
}

func askByREST(t *testing.T, h *hub.Hub) func(rapid.TB, requestFields) answerFields {
	handler := rest.New(h, rest.Options{Principal: func(*http.Request) (core.Principal, error) { return core.Principal{ID: "asker"}, nil }})
	return func(tb rapid.TB, a requestFields) (out answerFields) {
		body := a.members()
		body["to"], body["intent"], body["priority"], body["report_back"] = "answerer", a.Intent.String(), a.Priority.String(), a.ReportBack
		body["domain"], body["max_tokens"], body["thread"], body["attachments"] = a.Domain, a.MaxTokens, a.Thread, a.Attachments
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/tasks", bytes.NewReader(plainJSON(body)))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", client.NDJSON)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			tb.Fatalf("got %d %s, want the events", w.Code, w.Body)
		}
		for lines := bufio.NewScanner(w.Body); lines.Scan(); {
			var l client.Line
			if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
				tb.Fatal(err)
			}
			out.add(l.Body)
		}
		return out
	}
}

func askByParallax(t *testing.T, h *hub.Hub) func(rapid.TB, requestFields) answerFields {
	registered := make(chan *parallaxclient.Agent, 1)
	serveParallax(t, h, core.Card{ID: "asker"}, func(context.Context, core.Request, func(core.Body) error) error {
		return errors.New("it only asks")
	}, func(a *parallaxclient.Agent) { registered <- a })
	agent := <-registered
	return func(tb rapid.TB, a requestFields) (out answerFields) {
		if _, err := agent.Ask(t.Context(), a.request("answerer"), out.add); err != nil {
			tb.Fatalf("got %v, want an answer", err)
		}
		return out
	}
}

func askByACP(t *testing.T, h *hub.Hub) func(rapid.TB, requestFields) answerFields {
	hubs, peers := pipes()
	runForTest(t, func(ctx context.Context) {
		acp.Serve(ctx, h, hubs, &acp.Options{Peers: acp.NewPeers(h, acp.PeersOptions{})})
	}, func() {})
	client := acptest.New(peers, acptest.Options{ID: "asker", Progress: true})
	t.Cleanup(client.Close)
	return func(tb rapid.TB, a requestFields) (out answerFields) {
		answer, err := client.Ask(t.Context(), a.request("answerer"), out.add)
		if err != nil {
			tb.Fatalf("got %v, want an answer", err)
		}
		out.Text, out.Data, out.Truncated = answer.Text, answer.Data, answer.Truncated // the rest arrived before
		return out
	}
}

// toolCaller calls a tool of the hub and waits for its result.
type toolCaller func(tool string, input any) (json.RawMessage, error)

func askTool(call toolCaller, a requestFields) (json.RawMessage, error) {
	input := a.members()
	input["to"] = "answerer"
	return call("agent_ask", input)
}

func delegateTool(call toolCaller, a requestFields) (json.RawMessage, error) {
	input := a.members()
	input["to"] = "answerer"
	raw, err := call("agent_delegate", input)
	var given covenOutput
	if err == nil {
		err = json.Unmarshal(raw, &given)
	}
	if err != nil {
		return nil, err
	}
	return call("agent_result", map[string]any{"task_id": given.TaskID, "wait_seconds": watchdog.Seconds()})
}

func askByCoven(how func(toolCaller, requestFields) (json.RawMessage, error)) func(*testing.T, *hub.Hub) func(rapid.TB, requestFields) answerFields {
	return func(t *testing.T, h *hub.Hub) func(rapid.TB, requestFields) answerFields {
		conn := serveCovenPipe(t, h)
		register := &wire.RegisterAgent{AgentId: "asker"}
		if err := conn.Send(t.Context(), &wire.AgentMessage{Payload: &wire.AgentMessage_Register{Register: register}}); err != nil {
			t.Fatal(err)
		}
		if m, err := conn.Receive(t.Context()); err != nil || m.GetWelcome() == nil {
			t.Fatalf("got %v and %v, want a Welcome", m, err)
		}
		n := 0
		call := func(tool string, input any) (json.RawMessage, error) {
			n++
			id := fmt.Sprint(n)
			m := &wire.ExecutePackTool{RequestId: id, ToolName: tool, InputJson: string(plainJSON(input))}
			if err := conn.Send(t.Context(), &wire.AgentMessage{Payload: &wire.AgentMessage_ExecutePackTool{ExecutePackTool: m}}); err != nil {
				return nil, err
			}
			answer, err := conn.Receive(t.Context())
			if err != nil {
				return nil, err
			}
			result := answer.GetPackToolResult()
			if result.GetRequestId() != id || result.GetError() != "" {
				return nil, fmt.Errorf("the tool answered %v", answer)
			}
			return json.RawMessage(result.GetOutputJson()), nil
		}
		return func(tb rapid.TB, a requestFields) answerFields {
			raw, err := how(call, a)
			var o covenOutput
			if err == nil {
				err = json.Unmarshal(raw, &o)
			}
			if err != nil {
				tb.Fatalf("got %v, want an answer", err)
			}
			return answerFields{Text: o.Text, Data: o.Data}
		}
	}
}

func askByPi(t *testing.T, h *hub.Hub) func(rapid.TB, requestFields) answerFields {
	server := pi.NewServer(h, pi.Options{})
	t.Cleanup(server.Close)
	hubs, peers := pipes()
	runForTest(t, func(ctx context.Context) { server.Serve(ctx, hubs, pi.ConnOptions{}) }, func() {})
	var received pitest.Transcript
	client, err := pitest.Connect(t.Context(), peers, func(f pitest.Frame) {
		if f.Type == "event" {
			received.Add(f)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return func(tb rapid.TB, a requestFields) answerFields {
		session := core.NewID()
		must := func(command map[string]any) {
			command["sessionId"] = session
			if f, err := client.Do(t.Context(), command); err != nil || !f.Success {
				tb.Fatalf("%s: got %v and %q, want success", command["type"], err, f.Error)
			}
		}
		must(map[string]any{"type": "create_session", "agent": "answerer"})
		must(map[string]any{"type": "switch_session"})
		images := []map[string]string{}
		for _, f := range a.Attachments {
			images = append(images, map[string]string{"type": "image", "mimeType": f.MediaType, "data": base64.StdEncoding.EncodeToString(f.Data)})
		}
		received = pitest.Transcript{}
		must(map[string]any{"type": "prompt", "message": a.Content, "images": images})
		text := received.Deltas.String() // nothing follows the response
		if received.Snapshots != text {
			tb.Errorf("got the snapshots %q and the deltas %q, want the same", received.Snapshots, text)
		}
		must(map[string]any{"type": "delete_session"})
		return answerFields{Text: strings.Clone(text)}
	}
}
