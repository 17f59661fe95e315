package command_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// watching is a running 'dragoman watch'.
type watching struct {
	t     *testing.T
	lines chan string
}

// watches runs 'dragoman watch' until the test ends, when it has to end by an interrupt.
func watches(t *testing.T, args ...string) watching {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	r, out := io.Pipe()
	w := watching{t, make(chan string, 100)}
	code := make(chan int, 1)
	go func() {
		code <- command.Run(ctx, append([]string{"watch"}, args...), command.Streams{In: io.NopCloser(strings.NewReader("")), Out: out, Err: io.Discard})
		_ = out.Close()
	}()
	go func() {
		defer close(w.lines)
		for s := bufio.NewScanner(r); s.Scan(); {
			w.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		interrupt()
		if got := <-code; got != command.ExitInterrupted {
			t.Errorf("got exit code %d, want %d", got, command.ExitInterrupted)
		}
		for line := range w.lines {
			t.Errorf("got the line %q, want no more", line)
		}
	})
	return w
}

// says waits for the next line, which is to match.
func (w watching) says(pattern string) {
	w.t.Helper()
	line, ok := <-w.lines
	if !ok || !regexp.MustCompile(`^\d\d:\d\d:\d\d `+pattern+`$`).MatchString(line) {
		w.t.Fatalf("got the line %q, want a time and %s", line, pattern)
	}
}

func TestWatchTellsWhatWaitsAndWhatEnds(t *testing.T) {
	h, at := served(t)
	worker := joins(t, h, "worker", "ui")
	asker := h.Connect(hub.Identity{Principal: core.Principal{ID: "ann"}})
	t.Cleanup(func() { asker.Close(nil) })
	open := func(content string) core.TaskID {
		t.Helper()
		task, err := asker.Open(core.Request{To: core.ToAgent("worker"), Content: content}, hub.OpenOptions{Attends: true})
		if err != nil {
			t.Fatal(err)
		}
		nextBatch(t, worker, isAssigned)
		return task.ID()
	}
	report := func(id core.TaskID, bodies ...core.Body) {
		t.Helper()
		for _, body := range bodies {
			if err := worker.Report(id, body, nil); err != nil {
				t.Fatalf("%s: got %v, want it taken", body.Kind(), err)
			}
		}
	}
	first := open("build\x1b[2J\nit")
	report(first, core.ToolCall{ID: "1", Name: "Bash", Input: "rm"}, core.ApprovalRequested{ID: "1", Name: "Bash", Input: "rm\x1b[2J\n-rf"})
	w := watches(t, "--hub="+at)
	w.says(string(first) + ` worker waits for approval of Bash: rm\\x1b\[2J -rf`)
	report(first, core.ToolCall{ID: "2", Name: "Edit", Input: "x"}, core.ApprovalRequested{ID: "2", Name: "Edit", Input: "x"})
	w.says(string(first) + ` worker waits for approval of Edit: x`)
	report(first, core.Done{Text: "built"})
	w.says(string(first) + ` worker is done: build\\x1b\[2J it`)
	second := open("again")
	report(second, core.Text{Text: "hm"}, core.Failed{Fault: core.NewFault(core.CodeInternal, "no\nroom")})
	w.says(string(second) + ` worker failed: internal: no room`)
}

func TestWatchGoesOnWhenTheHubIsBackAndTellsNothingTwice(t *testing.T) {
	const waiting = `{"task":"t","id":"1","agent":"a","name":"Bash","input":"rm","input_sha256":"ff","since":"2026-01-02T03:04:05Z"}`
	requested := `{"id":"p1","task":"t","cursor":"1.2","seq":2,"epoch":1,"at":"2026-01-02T03:04:05Z","kind":"approval_requested","body":{"id":"1","name":"Bash","input":"rm","input_sha256":"ff"}}` + "\n"
	asked := make(chan string, 10)
	var over atomic.Bool
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/events", func(rw http.ResponseWriter, r *http.Request) {
		from := r.URL.Query().Get("from")
		rw.Header().Set("Last-Event-ID", "p0")
		asked <- from
		switch from {
		case "": // it is cut off
			fmt.Fprint(rw, requested)
		case "p1":
			fmt.Fprint(rw, requested)
			fmt.Fprintf(rw, event, 3, "done")
		default:
			over.Store(true)
			rw.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	})
	mux.HandleFunc("GET /v1/approvals", func(rw http.ResponseWriter, _ *http.Request) {
		list := waiting
		if over.Load() {
			list = ""
		}
		_, _ = io.WriteString(rw, `{"approvals":[`+list+`]}`)
	})
	mux.HandleFunc("GET /v1/questions", func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, `{"questions":[]}`) })
	mux.HandleFunc("GET /v1/tasks/t", func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(rw, `{"id":"t","agent":"a","content":"build"}`)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	w := watches(t, "--hub="+server.URL)
	w.says("t a waits for approval of Bash: rm")
	w.says("t a is done: build")
	for i, want := range []string{"", "p1", "p3"} {
		if got := <-asked; got != want {
			t.Errorf("connection %d: got it from %q, want from %q", i, got, want)
		}
	}
}
