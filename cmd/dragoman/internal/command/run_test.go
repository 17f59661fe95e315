package command_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

// run runs a command line and returns its exit code and what it printed.
func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return runWith(t, "", args...)
}

// runWith is run with a text on stdin.
func runWith(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = command.Run(t.Context(), args, command.Streams{In: io.NopCloser(strings.NewReader(stdin)), Out: nopCloser{&out}, Err: &errs})
	return code, out.String(), errs.String()
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// fakeHub serves JSON by method and path, such as "GET /v1/agents", and returns the flag
// with its address.
func fakeHub(t *testing.T, answers map[string]string) string {
	t.Helper()
	mux := http.NewServeMux()
	for pattern, answer := range answers {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) })
	}
	hub := httptest.NewServer(mux)
	t.Cleanup(hub.Close)
	return "--hub=" + hub.URL
}

// fields returns the lines of a table with one blank between the cells.
func fields(table string) (lines []string) {
	for line := range strings.Lines(table) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return lines
}
