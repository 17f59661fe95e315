package command_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

// event is a line of a stream.
const event = `{"id":"p%d","task":"t","cursor":"1.%[1]d","seq":%[1]d,"epoch":1,"at":"2026-01-02T03:04:05Z","kind":"%s","body":{}}` + "\n"

func TestTailContinuesAfterACut(t *testing.T) {
	var asked []string
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Query().Get("from"))
		w.Header().Set("Content-Type", "application/x-ndjson")
		switch len(asked) {
		case 1: // it is cut before the first event
			w.Header().Set("Last-Event-ID", "p0")
		case 2:
			fmt.Fprintf(w, event, 1, "accepted")
			fmt.Fprintf(w, event, 2, "accepted")
		case 3:
			fmt.Fprintf(w, event, 3, "done")
		default:
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"code":"not_authorized","detail":"no more"}`)
		}
	}
	mux.HandleFunc("GET /v1/events", answer)
	mux.HandleFunc("GET /v1/tasks/t/events", answer)
	server := httptest.NewServer(mux)
	defer server.Close()
	for _, tt := range []struct {
		args, says string
		code       int
		asked      []string
	}{
		{"tail --wait=5s", "no more", command.ExitFailed, []string{"", "p0", "p2", "p3"}},
		{"tail t --wait=5s", "", command.ExitDone, []string{"", "p0", "1.2"}},
		{"tail", "cut off", command.ExitFailed, []string{""}},
	} {
		asked = nil
		code, out, stderr := run(t, append(strings.Fields(tt.args), "--hub="+server.URL)...)
		if code != tt.code || !strings.Contains(stderr, tt.says) || !slices.Equal(asked, tt.asked) {
			t.Errorf("%s: got %d and %q, asked from %q; want %d, %q and %q", tt.args, code, stderr, asked, tt.code, tt.says, tt.asked)
		}
		if want := len(tt.asked) > 1; want != (strings.Count(out, "accepted") == 2 && strings.Count(out, "done") == 1) {
			t.Errorf("%s: got %q, want each event once", tt.args, out)
		}
	}
	if code, _, stderr := run(t, "tail", "--wait", "30s"); code != command.ExitUsage || !strings.Contains(stderr, "--wait=30s") {
		t.Errorf("got %d and %q, want a usage error that says how to write it", code, stderr)
	}
}
