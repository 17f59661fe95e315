package e2e

import (
	"io"
	"net/http"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/coven"
)

func TestTheHubAnswersTheHealthChecksOfCovenGateway(t *testing.T) {
	h := newTestHub(t, nil)
	wantGet := func(path string, status int, text string) {
		t.Helper()
		resp, err := http.Get(h.url() + path) //nolint:noctx // it answers at once
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != status || string(body) != text {
			t.Errorf("%s: got %d %q and %v, want %d %q", path, resp.StatusCode, body, err, status, text)
		}
	}
	wantGet("/health", http.StatusOK, "OK")
	wantGet("/health/ready", http.StatusServiceUnavailable, "no agents connected")
	h.startAgent(t, coven.Name, "a", 1)
	h.startAgent(t, coven.Name, "b", 1)
	wantGet("/health/ready", http.StatusOK, "ready (2 agents)")
}
