package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-hub/dragoman/adapters/mcp"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// withToken is the message that calls agent_ask and wants to be told of its progress.
func withToken(token string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"agent_ask","arguments":` + asking + `,"_meta":{"progressToken":` + token + `}}}`
}

// said is what a stream said: the notifications of progress, and the answers.
type said struct {
	progress []string // "token number"
	answers  []rpc
}

// readStream reads what a stream said.
func readStream(t *testing.T, body string) (s said) {
	t.Helper()
	for line := range strings.Lines(body) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok {
			continue
		}
		var m struct {
			rpc
			Method string
			Params struct {
				Token    json.RawMessage `json:"progressToken"`
				Progress int
				Message  string
			}
		}
		if err := json.Unmarshal([]byte(data), &m); err != nil {
			t.Fatalf("got %q, want a message: %v", data, err)
		}
		switch m.Method {
		case "notifications/progress":
			if len(s.answers) > 0 || !strings.HasPrefix(m.Params.Message, "agent_ask") {
				t.Errorf("got %s behind %d answers, want progress of agent_ask before its answer", data, len(s.answers))
			}
			s.progress = append(s.progress, fmt.Sprintf("%s %d", m.Params.Token, m.Params.Progress))
		default:
			s.answers = append(s.answers, m.rpc)
		}
	}
	return s
}

func TestTheSDKsOwnClientGetsTheProgressOfACall(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			g := start(t, mcp.Options{KeepAlive: 10 * time.Millisecond})
			bob := g.actor("bob")
			told := make(chan *sdk.ProgressNotificationParams, 1000)
			client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { told <- r.Params },
			})
			cs, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: g.url, HTTPClient: g.client, MaxRetries: -1}, &sdk.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { cs.Close() })
			done := make(chan *sdk.CallToolResult, 1)
			go func() {
				p := &sdk.CallToolParams{Name: "agent_ask", Arguments: json.RawMessage(asking)}
				p.SetProgressToken("p1")
				r, err := cs.CallTool(t.Context(), p)
				if err != nil {
					t.Errorf("got %v, want no error", err)
				}
				done <- r
			}()
			task := bob.next(core.KindAssigned)
			for before := 0.0; before < 3; {
				var got *sdk.ProgressNotificationParams
				select {
				case got = <-told:
				case <-time.After(time.Minute):
					t.Fatalf("got no progress behind %v for a minute", before)
				}
				if got.ProgressToken != "p1" || got.Progress <= before {
					t.Errorf("got %+v behind %v, want more progress of p1", got, before)
				}
				before = got.Progress
			}
			bob.say(task, core.Text{Text: "42"}, core.Done{})
			if r := <-done; r == nil || r.IsError || !strings.Contains(r.Content[0].(*sdk.TextContent).Text, `"text":"42"`) {
				t.Errorf("got %+v, want 42", r)
			}
		})
	}
}

// What keeps the connection alive for proxies is not enough for the official clients:
// after 60 s they cancel a call of which they heard no progress.
func TestProgressIsToldAtOnceAndThenAtLeastEvery15Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &stage{t: t, hub: coretest.NewHub(t, hub.Options{})}
		door := mcp.New(g.hub, mcp.Options{Anonymous: core.Principal{ID: "anybody"}})
		defer door.Close()
		bob := g.actor("bob")
		w := &diary{ResponseRecorder: httptest.NewRecorder(), begun: time.Now()}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(withToken("7")))
		r.Header.Set("Accept", "application/json, text/event-stream")
		done := make(chan struct{})
		go func() {
			defer close(done)
			door.ServeHTTP(w, r)
		}()
		task := bob.next(core.KindAssigned)
		<-time.After(5 * time.Minute)
		bob.say(task, core.Done{Text: "42"})
		<-done
		last := time.Duration(0)
		for i, at := range w.written {
			if i == 0 && at != 0 || at-last > 15*time.Second {
				t.Errorf("write %d came %s behind the one before, want the first at once and each within 15s", i, at-last)
			}
			last = at
		}
		heard := readStream(t, w.Body.String())
		if len(heard.progress) < 20 || len(heard.answers) != 1 || !strings.Contains(string(heard.answers[0].Result), "42") {
			t.Errorf("got %+v, want progress of five minutes and the answer", heard)
		}
	})
}

// diary notes when something was written.
type diary struct {
	*httptest.ResponseRecorder
	begun   time.Time
	written []time.Duration
}

func (d *diary) Write(p []byte) (int, error) {
	d.written = append(d.written, time.Since(d.begun))
	return d.ResponseRecorder.Write(p)
}

func TestAProgressTokenComesBackAsItWasSent(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	bob := g.actor("bob")
	for _, token := range []string{`"p\u0031"`, `7`, `-1`} {
		done := g.later(t.Context(), "", withToken(token), "Accept: application/json, text/event-stream")
		bob.say(bob.next(core.KindAssigned), core.Done{})
		heard := readStream(t, string((<-done).body))
		if d := cmp.Diff([]string{token + " 1"}, heard.progress); d != "" || len(heard.answers) != 1 {
			t.Errorf("of the token %s got %d answers and (-want +got):\n%s", token, len(heard.answers), d)
		}
	}
	g.post("", withToken(`{"a":1}`)).fails(http.StatusBadRequest, -32602, "progressToken")
}

func TestWhoTakesNoStreamIsToldNoProgress(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{KeepAlive: time.Millisecond})
	bob := g.actor("bob")
	done := g.later(t.Context(), "", withToken("7"))
	bob.say(bob.next(core.KindAssigned), core.Done{Text: "42"})
	(<-done).outcome().says(t, false, "42")
	// Nor is who asks for none.
	done = g.later(t.Context(), "", withToken("null"), "Accept: application/json, text/event-stream")
	bob.say(bob.next(core.KindAssigned), core.Done{Text: "43"})
	(<-done).outcome().says(t, false, "43")
}
