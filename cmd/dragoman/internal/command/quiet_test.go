package command_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

// signalWriter closes seen once the text has been written.
type signalWriter struct {
	text string
	seen chan struct{}

	mu      sync.Mutex
	written strings.Builder
}

func (w *signalWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := strings.Contains(w.written.String(), w.text)
	w.written.Write(p)
	if !before && strings.Contains(w.written.String(), w.text) {
		close(w.seen)
	}
	return len(p), nil
}

func (w *signalWriter) Close() error { return nil }

// A hub whose disk is full holds back the end of a task until the task is recorded.
func TestAskSaysThatTheJournalFailsWhileItWaits(t *testing.T) {
	stderr := &signalWriter{text: "[the hub cannot record tasks: the disk is full; the end of this one is shown once it is recorded]\n", seen: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/hub", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"journal":{"state":"failing","reason":"the disk is full"}}`)
	})
	mux.HandleFunc("POST /v1/tasks", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", client.NDJSON)
		fmt.Fprintln(w, `{"task":"t","seq":1,"epoch":1,"at":"2026-01-02T03:04:05Z","kind":"opened","body":{"task":"t","request":{"intent":"ask","to":"a","content":"x"}}}`)
		w.(http.Flusher).Flush()
		select {
		case <-stderr.seen:
			fmt.Fprintln(w, `{"task":"t","seq":2,"epoch":1,"at":"2026-01-02T03:04:05Z","kind":"done","body":{"text":"answer"}}`)
		case <-r.Context().Done():
		}
	})
	hub := httptest.NewServer(mux)
	defer hub.Close()
	stdout := &signalWriter{text: "answer", seen: make(chan struct{})}
	code := command.Run(t.Context(), []string{"ask", "a", "x", "--hub", hub.URL}, command.Streams{In: io.NopCloser(strings.NewReader("")), Out: stdout, Err: stderr})
	if code != command.ExitDone || stdout.written.String() != "answer\n" || strings.Count(stderr.written.String(), stderr.text) != 1 {
		t.Errorf("got %d, %q and %q, want the answer and one line about the journal", code, stdout.written.String(), stderr.written.String())
	}
}
