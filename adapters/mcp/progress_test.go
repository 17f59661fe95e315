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
	"github.com/dragoman-hub/dragoman/core/tool"
)

// withToken returns a call of agent_ask with a progress token.
func withToken(token string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"agent_ask","arguments":` + askBob + `,"_meta":{"progressToken":` + token + `}}}`
}

// streamed is the content of a stream: the progress notifications and the answers.
type streamed struct {
	progress []string // "token number"
	answers  []rpc
}

// readStream parses a stream.
func readStream(t *testing.T, body string) (s streamed) {
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
				t.Errorf("got %s after %d answers, want progress of agent_ask before its answer", data, len(s.answers))
			}
			s.progress = append(s.progress, fmt.Sprintf("%s %d", m.Params.Token, m.Params.Progress))
		default:
			s.answers = append(s.answers, m.rpc)
		}
	}
	return s
}

func TestTheSDKClientGetsTheProgressOfACall(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			g := start(t, mcp.Options{KeepAlive: 10 * time.Millisecond})
			bob := g.agent("bob")
			received := make(chan *sdk.ProgressNotificationParams, 1000)
			client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { received <- r.Params },
			})
			cs, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: g.url, HTTPClient: g.client, MaxRetries: -1}, &sdk.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { cs.Close() })
			done := make(chan *sdk.CallToolResult, 1)
			go func() {
				p := &sdk.CallToolParams{Name: "agent_ask", Arguments: json.RawMessage(askBob)}
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
				case got = <-received:
				case <-time.After(time.Minute):
					t.Fatalf("got no progress after %v for a minute", before)
				}
				if got.ProgressToken != "p1" || got.Progress <= before {
					t.Errorf("got %+v after %v, want more progress of p1", got, before)
				}
				before = got.Progress
			}
			bob.report(task, core.Text{Text: "42"}, core.Done{})
			if r := <-done; r == nil || r.IsError || !strings.Contains(r.Content[0].(*sdk.TextContent).Text, `"text":"42"`) {
				t.Errorf("got %+v, want 42", r)
			}
		})
	}
}

// Keep-alive comments are enough for proxies but not for the official clients, which cancel
// a call after 60 s without progress.
func TestProgressIsSentAtOnceAndThenAtLeastEvery15Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &testServer{t: t, hub: coretest.NewHub(t, hub.Options{})}
		server := mcp.New(g.hub, mcp.Options{Anonymous: core.Principal{ID: "anybody"}})
		defer server.Close()
		bob := g.agent("bob")
		w := &timedRecorder{ResponseRecorder: httptest.NewRecorder(), begun: time.Now()}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(withToken("7")))
		r.Header.Set("Accept", "application/json, text/event-stream")
		done := make(chan struct{})
		go func() {
			defer close(done)
			server.ServeHTTP(w, r)
		}()
		task := bob.next(core.KindAssigned)
		<-time.After(5 * time.Minute)
		bob.report(task, core.Done{Text: "42"})
		<-done
		last := time.Duration(0)
		for i, at := range w.written {
			if i == 0 && at != 0 || at-last > 15*time.Second {
				t.Errorf("write %d came %s after the previous one, want the first at once and each within 15s", i, at-last)
			}
			last = at
		}
		stream := readStream(t, w.Body.String())
		if len(stream.progress) < 20 || len(stream.answers) != 1 || !strings.Contains(string(stream.answers[0].Result), "42") {
			t.Errorf("got %+v, want progress for five minutes and the answer", stream)
		}
	})
}

// timedRecorder records the time of each write.
type timedRecorder struct {
	*httptest.ResponseRecorder
	begun   time.Time
	written []time.Duration
}

func (r *timedRecorder) Write(p []byte) (int, error) {
	r.written = append(r.written, time.Since(r.begun))
	return r.ResponseRecorder.Write(p)
}

func TestAProgressTokenIsReturnedUnchanged(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	bob := g.agent("bob")
	for _, token := range []string{`"p\u0031"`, `7`, `-1`} {
		done := g.later(t.Context(), "", withToken(token), "Accept: application/json, text/event-stream")
		bob.report(bob.next(core.KindAssigned), core.Done{})
		stream := readStream(t, string((<-done).body))
		if d := cmp.Diff([]string{token + " 1"}, stream.progress); d != "" || len(stream.answers) != 1 {
			t.Errorf("token %s: got %d answers and (-want +got):\n%s", token, len(stream.answers), d)
		}
	}
	g.post("", withToken(`{"a":1}`)).fails(http.StatusBadRequest, -32602, "progressToken")
}

func TestAClientWithoutStreamsGetsNoProgress(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{KeepAlive: time.Millisecond})
	bob := g.agent("bob")
	done := g.later(t.Context(), "", withToken("7"))
	bob.report(bob.next(core.KindAssigned), core.Done{Text: "42"})
	(<-done).outcome().contains(t, false, "42")
	// Nor does a client with a null token.
	done = g.later(t.Context(), "", withToken("null"), "Accept: application/json, text/event-stream")
	bob.report(bob.next(core.KindAssigned), core.Done{Text: "43"})
	(<-done).outcome().contains(t, false, "43")
}

func TestTheWordsOfProgressAreTheEndOfTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &testServer{t: t, hub: coretest.NewHub(t, hub.Options{})}
		server := mcp.New(g.hub, mcp.Options{Anonymous: core.Principal{ID: "anybody"}})
		defer server.Close()
		bob := g.agent("bob")
		body := strings.Replace(askBobModern(canNothing, ""), `"_meta":{`, `"_meta":{"progressToken":"p",`, 1)
		done := g.direct(server, body, streams)
		task := bob.next(core.KindAssigned)
		for i := range 10_000 {
			bob.report(task, core.Text{Text: fmt.Sprintf("wörd%d ", i)})
			if i%1000 == 999 {
				<-time.After(100 * time.Millisecond)
			}
		}
		<-time.After(time.Second)
		bob.report(task, core.Thinking{Text: strings.Repeat("x", 10_000)})
		<-time.After(time.Second)
		bob.report(task, core.Done{})
		messages := messagesOf(t, (<-done).body)
		// At once, after one second, and after the answer and the thinking.
		if n := len(messages); n < 3 || n > 5 || !strings.HasSuffix(messages[n-2], "wörd9998 wörd9999") || !strings.HasPrefix(messages[n-2], "wörd") || len(messages[n-2]) > 300 ||
			messages[n-1] != strings.Repeat("x", 300) {
			t.Errorf("got %q, want few messages that end with the latest words", messages)
		}
	})
}

func TestTheProgressOfAToolOfAPackIsToldUpToTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &testServer{t: t, hub: coretest.NewHub(t, hub.Options{})}
		server := mcp.New(g.hub, mcp.Options{Anonymous: core.Principal{ID: "anybody"}})
		defer server.Close()
		pack := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: "pack"}, Dialect: "test"})
		defer pack.Close(nil)
		if err := pack.Provide("maps", []tool.Definition{{Name: "find"}}); err != nil {
			t.Fatal(err)
		}
		body := strings.Replace(modern("tools/call", canNothing, `"name":"find"`), `"_meta":{`, `"_meta":{"progressToken":"p",`, 1)
		done := g.direct(server, body, streams)
		b, err := pack.Next(t.Context())
		if err != nil || b.Execute == nil {
			t.Fatalf("got %+v and %v, want the call", b, err)
		}
		for i := range 20 {
			if err := pack.ProgressTool(b.Execute.ID, fmt.Sprintf("%d/20", i+1)); err != nil {
				t.Fatal(err)
			}
			<-time.After(70 * time.Millisecond)
		}
		if err := pack.AnswerTool(b.Execute.ID, tool.Result{Output: json.RawMessage(`{}`)}); err != nil {
			t.Fatal(err)
		}
		want := []string{"find has been running for 0s", "1/20", "2/20", "16/20", "20/20"} // three at once, then one a second, and the last
		if d := cmp.Diff(want, messagesOf(t, (<-done).body)); d != "" {
			t.Errorf("messages (-want +got):\n%s", d)
		}
	})
}

// messagesOf returns the words of the progress in a stream.
func messagesOf(t *testing.T, body []byte) (messages []string) {
	t.Helper()
	for s := newEventStream(t, strings.NewReader(string(body))); ; {
		m, ok := s.next()
		if !ok {
			return messages
		}
		var p struct{ Message string }
		if m.Method == "notifications/progress" && json.Unmarshal(m.Params, &p) == nil {
			messages = append(messages, p.Message)
		}
	}
}
