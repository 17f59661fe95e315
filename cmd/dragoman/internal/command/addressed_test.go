package command_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

// eventLine is a line of the stream of task t, whose request is for agent a.
func eventLine(seq int, kind, body string) string {
	return fmt.Sprintf(`{"task":"t","seq":%d,"epoch":1,"at":"2026-01-02T03:04:05Z","kind":%q,"body":%s}`, seq, kind, body)
}

var opened = eventLine(1, "opened", `{"task":"t","request":{"intent":"ask","to":"a","content":"x"}}`)

func TestAskWaitsForAnAgentThatTheHubStartsAgain(t *testing.T) {
	for _, to := range []string{"a", "capability:tea"} {
		t.Run(to, func(t *testing.T) {
			stderr := &signalWriter{text: "[waiting up to 5m: agent a could not be started (the hub tries again every 30s): refused]\n", seen: make(chan struct{})}
			agent := func() string {
				child := `{"state":"failed","last_error":"refused","retry_ms":30000}`
				select {
				case <-stderr.seen:
					child = `{"state":"ready"}`
				default:
				}
				return `{"id":"a","dialect":"a2a","capabilities":["tea"],"load":{"state":"idle"},"max_concurrent":1,"since":"2026-01-02T03:04:05Z","child":` + child + `}`
			}
			var asked atomic.Int32
			mux := http.NewServeMux()
			mux.HandleFunc("GET /v1/agents", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"agents":[%s]}`, agent()) })
			mux.HandleFunc("GET /v1/agents/a", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, agent()) })
			mux.HandleFunc("POST /v1/tasks", func(w http.ResponseWriter, _ *http.Request) {
				asked.Add(1)
				w.Header().Set("Content-Type", client.NDJSON)
				fmt.Fprintf(w, "%s\n%s\n", opened, eventLine(2, "done", `{"text":"answer"}`))
			})
			hub := httptest.NewServer(mux)
			defer hub.Close()
			stdout := &signalWriter{text: "answer", seen: make(chan struct{})}
			code := command.Run(t.Context(), []string{"ask", "--wait", to, "x", "--hub", hub.URL}, command.Streams{In: io.NopCloser(strings.NewReader("")), Out: stdout, Err: stderr})
			if got := stderr.written.String(); code != command.ExitDone || stdout.written.String() != "answer\n" || got != stderr.text || asked.Load() != 1 {
				t.Errorf("got %d, %q, %q and %d requests, want the answer to one, and %q", code, stdout.written.String(), got, asked.Load(), stderr.text)
			}
		})
	}
}

// What has failed and is not tried again does not come by waiting.
func TestAskDoesNotWaitForAnAgentThatTheHubHasGivenUp(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/agents/a", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"id":"a","load":{"state":"idle"},"since":"2026-01-02T03:04:05Z","child":{"state":"failed","last_error":"no such program"}}`)
	})
	mux.HandleFunc("POST /v1/tasks", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		fmt.Fprint(w, `{"code":"unreachable","detail":"agent a could not be started: no such program"}`)
	})
	hub := httptest.NewServer(mux)
	defer hub.Close()
	const want = "dragoman: agent a could not be started: no such program\n"
	if code, _, stderr := run(t, "ask", "--wait", "a", "x", "--hub", hub.URL); code != command.ExitFailed || stderr != want {
		t.Errorf("got %d and %q, want %d and %q at once", code, stderr, command.ExitFailed, want)
	}
}

func TestAskSaysWhyItsQuestionIsQueued(t *testing.T) {
	const started = `{"id":"b","capabilities":["tea"],"load":{"state":"overloaded"},"max_concurrent":1,"since":"2026-01-02T03:04:05Z","child":{"state":"restarting"}}`
	for name, tt := range map[string]struct{ to, state, others, note string }{
		"busy":       {"a", "busy", "", "a is busy"},
		"full":       {"a", "overloaded", "", "a is busy"},
		"draining":   {"a", "draining", "", "a is draining"},
		"restarting": {"b", "busy", "", "b is restarting"},
		"capability": {"capability:tea", "busy", "," + started, "no agent for capability:tea is free"},
		"only one":   {"capability:tea", "busy", "", "a is busy"},
	} {
		for _, flag := range []string{"--json=false", "--json"} {
			t.Run(name+" "+flag, func(t *testing.T) {
				t.Parallel() // it takes a second
				stderr := &signalWriter{text: "[queued: " + tt.note + "]\n", seen: make(chan struct{})}
				agent := `{"id":"a","capabilities":["tea"],"load":{"state":"` + tt.state + `"},"max_concurrent":1,"since":"2026-01-02T03:04:05Z"}`
				mux := http.NewServeMux()
				for path, text := range map[string]string{"/v1/agents": `{"agents":[` + agent + tt.others + `]}`, "/v1/agents/a": agent, "/v1/agents/b": started, "/v1/hub": `{"journal":{"state":"ok"}}`} {
					mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) })
				}
				done := eventLine(3, "done", `{"text":"answer"}`)
				assigned := eventLine(2, "assigned", `{"agent":"a","attempt":1}`)
				mux.HandleFunc("POST /v1/tasks", func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", client.NDJSON)
					fmt.Fprintln(w, opened)
					w.(http.Flusher).Flush()
					select {
					case <-stderr.seen:
						fmt.Fprintf(w, "%s\n%s\n", assigned, done)
					case <-r.Context().Done():
					}
				})
				hub := httptest.NewServer(mux)
				defer hub.Close()
				stdout := &signalWriter{text: "answer", seen: make(chan struct{})}
				code := command.Run(t.Context(), []string{"ask", tt.to, "x", flag, "--hub", hub.URL}, command.Streams{In: io.NopCloser(strings.NewReader("")), Out: stdout, Err: stderr})
				want := "answer\n"
				if flag == "--json" {
					want = opened + "\n" + assigned + "\n" + done + "\n"
				}
				if got := stdout.written.String(); code != command.ExitDone || got != want || stderr.written.String() != stderr.text {
					t.Errorf("got %d, %q and %q, want %q and %q", code, got, stderr.written.String(), want, stderr.text)
				}
			})
		}
	}
}

// A task that an agent has is quiet while that works.
func TestAskSaysNothingOfAQueueWhileAnAgentWorks(t *testing.T) {
	quiet := make(chan struct{}) // closed when the command asks why there are no events
	asks := sync.OnceFunc(func() { close(quiet) })
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/hub", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"journal":{"state":"ok"}}`)
		asks()
	})
	mux.HandleFunc("GET /v1/agents/a", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"id":"a","load":{"state":"busy"},"max_concurrent":1,"since":"2026-01-02T03:04:05Z"}`)
	})
	mux.HandleFunc("POST /v1/tasks", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", client.NDJSON)
		fmt.Fprintf(w, "%s\n%s\n", opened, eventLine(2, "assigned", `{"agent":"a","attempt":1}`))
		w.(http.Flusher).Flush()
		select {
		case <-quiet:
			fmt.Fprintln(w, eventLine(3, "done", `{"text":"answer"}`))
		case <-r.Context().Done():
		}
	})
	hub := httptest.NewServer(mux)
	defer hub.Close()
	if code, out, stderr := run(t, "ask", "a", "x", "--hub", hub.URL); code != command.ExitDone || out != "answer\n" || stderr != "" {
		t.Errorf("got %d, %q and %q, want the answer and an empty stderr", code, out, stderr)
	}
}

func TestACallOfASubagentIsShownBelowTheOneThatItIsAPartOf(t *testing.T) {
	event := func(seq int, kind, body string) string {
		return fmt.Sprintf(`{"cursor":"1.%d","seq":%d,"epoch":1,"kind":%q,"at":"2026-01-02T03:04:05Z","body":%s}`+"\n", seq, seq, kind, body)
	}
	events := event(1, "opened", `{"task":"t","from":{"id":"u"},"request":{"intent":"ask","to":"a","content":"x"},"hops":0}`) +
		event(2, "tool_call", `{"id":"p","name":"Agent","input":"{}"}`) + event(3, "tool_call", `{"id":"c","name":"Read","input":"{}","parent":"p"}`) + event(4, "done", `{}`)
	hub := fakeHub(t, map[string]string{"POST /v1/tasks": events, "GET /v1/tasks/t": `{"id":"t"}`, "GET /v1/tasks/t/events": events})
	if code, _, stderr := run(t, "ask", "a", "x", "--thinking", hub); code != command.ExitDone || !strings.Contains(stderr, "[Agent {}]\n  [Read {}]\n") {
		t.Errorf("ask: got %d and %q, want the call below the other", code, stderr)
	}
	if code, out, stderr := run(t, "tail", "t", hub); code != command.ExitDone || !strings.Contains(out, "c below p Read {}") {
		t.Errorf("tail: got %d, %q and %q, want the id of the call above", code, out, stderr)
	}
}
