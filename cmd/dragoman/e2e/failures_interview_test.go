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
	acpclient "github.com/dragoman-hub/dragoman/adapters/acp/client"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	covenclient "github.com/dragoman-hub/dragoman/adapters/coven/client"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	parallaxclient "github.com/dragoman-hub/dragoman/adapters/parallax/client"
	"github.com/dragoman-hub/dragoman/adapters/pi"
	piclient "github.com/dragoman-hub/dragoman/adapters/pi/client"
	"github.com/dragoman-hub/dragoman/adapters/rest"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

// interviewers ask over pipes in memory, each in all the words that it has.
func interviewers() []interviewer {
	query := func(a asked) asked {
		a.Intent, a.Thread, a.Priority, a.ReportBack = core.IntentAsk, "", core.PriorityNormal, true
		return a
	}
	delegate := func(a asked) asked {
		if a.Priority == core.PriorityLow {
			a.Priority = core.PriorityNormal
		}
		a.Intent, a.Thread, a.ReportBack = core.IntentDelegate, "", true
		return a
	}
	textAndData := func(a answered) answered { return answered{Text: a.Text, Data: a.Data} }
	return []interviewer{
		{"REST", unchanged[asked], unchanged[answered], askByREST},
		{"Parallax", unchanged[asked], unchanged[answered], askByParallax},
		{"ACP query", query, wordedByACP, askByACP},
		{"ACP delegate", delegate, wordedByACP, askByACP},
		{"agent_ask", func(a asked) asked {
			return asked{Intent: core.IntentAsk, Priority: core.PriorityNormal, Content: a.Content, Data: a.Data}
		}, textAndData, askByCoven(askTool)},
		{"agent_delegate", func(a asked) asked {
			return asked{Intent: core.IntentDelegate, Priority: core.PriorityNormal, Content: a.Content, Context: a.Context}
		}, textAndData, askByCoven(delegateTool)},
		{"pi", func(a asked) asked {
			for i := range a.Attachments {
				a.Attachments[i].Name, a.Attachments[i].MediaType = fmt.Sprintf("image-%d", i+1), "image/png"
			}
			return asked{Intent: core.IntentAsk, Priority: core.PriorityNormal, Content: a.Content, Attachments: a.Attachments}
		}, func(a answered) answered { return answered{Text: a.Text + string(a.Data)} }, askByPi},
	}
}

// inLife runs something for as long as the test does. end makes it return.
func inLife(t *testing.T, run func(ctx context.Context), end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var life sync.WaitGroup
	life.Go(func() { run(ctx) })
	t.Cleanup(func() {
		cancel()
		end()
		life.Wait()
	})
}

// pipes are the two ends of a connection: the hub's and the peer's.
func pipes() (hubs, peers *coretest.End[[]byte, []byte]) { return coretest.Pipe[[]byte, []byte](16) }

func hangUp(conn link.Conn[[]byte, []byte]) func() {
	return func() { conn.Close(link.Reason{Cause: link.Normal}) }
}

// arrivals is an observer who says on a board who has joined.
type arrivals struct{ board }

func (a *arrivals) Joined(c core.Card)               { a.post("joined "+string(c.ID), nil) }
func (a *arrivals) Left(core.AgentID)                {}
func (a *arrivals) Appended(core.TaskID, core.Event) {}
func (a *arrivals) Recorded(core.TaskID, uint64)     {}

func joinParallaxInMemory(t *testing.T, h *hub.Hub, card core.Card, handle core.Handler) {
	employParallax(t, h, card, handle, func(*parallaxclient.Agent) {})
}

func employParallax(t *testing.T, h *hub.Hub, card core.Card, handle core.Handler, registered func(*parallaxclient.Agent)) {
	hubs, peers := pipes()
	inLife(t, func(ctx context.Context) {
		parallax.Serve(ctx, h, hubs, parallax.Options{MaxMessagesPerSecond: 1 << 20})
	}, hangUp(peers))
	inLife(t, func(ctx context.Context) {
		_ = parallaxclient.Work(ctx, peers, card, handle, parallaxclient.WorkOptions{Registered: registered})
	}, func() {})
}

func joinACPInMemory(t *testing.T, h *hub.Hub, card core.Card, handle core.Handler) {
	hubs, peers := pipes()
	inLife(t, func(ctx context.Context) { acp.Serve(ctx, h, hubs, acp.Options{}) }, hangUp(peers))
	inLife(t, func(ctx context.Context) { _ = acpclient.Work(ctx, peers, card, handle, acpclient.WorkOptions{}) }, func() {})
}

// covenPipes serve a Coven stream and return the agent's end of it.
func covenPipes(t *testing.T, h *hub.Hub) link.Conn[*wire.ServerMessage, *wire.AgentMessage] {
	server, agent := coretest.ProtoPipe[wire.AgentMessage, wire.ServerMessage](16)
	inLife(t, func(ctx context.Context) { coven.Serve(ctx, h, server, &coven.Options{}) }, func() { agent.Close(link.Reason{Cause: link.Normal}) })
	return agent
}

func joinCovenInMemory(t *testing.T, h *hub.Hub, card core.Card, handle core.Handler) {
	conn := covenPipes(t, h)
	inLife(t, func(ctx context.Context) { _ = covenclient.Work(ctx, conn, card, handle, covenclient.WithHeartbeat(0)) }, func() {})
}

// members are what a request says in a JSON form whose words are those of the hub.
func (a asked) members() map[string]any {
	m := map[string]any{"content": a.Content}
	if a.Data != nil {
		m["data"] = a.Data
	}
	if a.Context != nil {
		m["context"] = a.Context
	}
	return m
}

func askByREST(t *testing.T, h *hub.Hub) func(rapid.TB, asked) answered {
	handler := rest.New(h, rest.Options{Principal: func(*http.Request) (core.Principal, error) { return core.Principal{ID: "asker"}, nil }})
	return func(tb rapid.TB, a asked) (out answered) {
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
			out.note(l.Body)
		}
		return out
	}
}

func askByParallax(t *testing.T, h *hub.Hub) func(rapid.TB, asked) answered {
	registered := make(chan *parallaxclient.Agent, 1)
	employParallax(t, h, core.Card{ID: "asker"}, func(context.Context, core.Request, func(core.Body) error) error {
		return errors.New("it only asks")
	}, func(a *parallaxclient.Agent) { registered <- a })
	agent := <-registered
	return func(tb rapid.TB, a asked) (out answered) {
		if _, err := agent.Ask(t.Context(), a.request("answerer"), out.note); err != nil {
			tb.Fatalf("got %v, want an answer", err)
		}
		return out
	}
}

func askByACP(t *testing.T, h *hub.Hub) func(rapid.TB, asked) answered {
	hubs, peers := pipes()
	inLife(t, func(ctx context.Context) { acp.Serve(ctx, h, hubs, acp.Options{}) }, func() {})
	client := acpclient.New(peers, acpclient.Options{ID: "asker", Progress: true})
	t.Cleanup(client.Close)
	return func(tb rapid.TB, a asked) (out answered) {
		answer, err := client.Ask(t.Context(), a.request("answerer"), out.note)
		if err != nil {
			tb.Fatalf("got %v, want an answer", err)
		}
		out.Text, out.Data, out.Truncated = answer.Text, answer.Data, answer.Truncated // all else was told on the way
		return out
	}
}

// toolCaller calls a tool of the hub and waits for what it comes to.
type toolCaller func(tool string, input any) (json.RawMessage, error)

func askTool(call toolCaller, a asked) (json.RawMessage, error) {
	input := a.members()
	input["to"] = "answerer"
	return call("agent_ask", input)
}

func delegateTool(call toolCaller, a asked) (json.RawMessage, error) {
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

func askByCoven(how func(toolCaller, asked) (json.RawMessage, error)) func(*testing.T, *hub.Hub) func(rapid.TB, asked) answered {
	return func(t *testing.T, h *hub.Hub) func(rapid.TB, asked) answered {
		conn := covenPipes(t, h)
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
		return func(tb rapid.TB, a asked) answered {
			raw, err := how(call, a)
			var o covenOutput
			if err == nil {
				err = json.Unmarshal(raw, &o)
			}
			if err != nil {
				tb.Fatalf("got %v, want an answer", err)
			}
			return answered{Text: o.Text, Data: o.Data}
		}
	}
}

func askByPi(t *testing.T, h *hub.Hub) func(rapid.TB, asked) answered {
	server := pi.NewServer(h, pi.Options{})
	t.Cleanup(server.Close)
	hubs, peers := pipes()
	inLife(t, func(ctx context.Context) { server.Serve(ctx, hubs, pi.ConnOptions{}) }, func() {})
	var told piclient.Transcript
	client, err := piclient.Connect(t.Context(), peers, func(f piclient.Frame) {
		if f.Type == "event" {
			told.Add(f)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return func(tb rapid.TB, a asked) answered {
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
		told = piclient.Transcript{}
		must(map[string]any{"type": "prompt", "message": a.Content, "images": images})
		text := told.Deltas.String() // behind the response nothing more comes
		if told.Snapshots != text {
			tb.Errorf("got the snapshots %q and the deltas %q, want the same", told.Snapshots, text)
		}
		must(map[string]any{"type": "delete_session"})
		return answered{Text: strings.Clone(text)}
	}
}
