package e2e

import (
	"io"
	"net/http"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/coven"
)

// What asks coven-gateway how it is asks the hub the same way.
func TestTheHubTellsHowItIsAsCovenGatewayDoes(t *testing.T) {
	s := newStage(t, nil)
	says := func(path string, status int, text string) {
		t.Helper()
		resp, err := http.Get("http://" + s.service.Addresses().HTTP + path) //nolint:noctx // it answers at once
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != status || string(body) != text {
			t.Errorf("%s: got %d %q and %v, want %d %q", path, resp.StatusCode, body, err, status, text)
		}
	}
	says("/health", http.StatusOK, "OK")
	says("/health/ready", http.StatusServiceUnavailable, "no agents connected")
	s.cast(t, coven.Name, "a", 1)
	s.cast(t, coven.Name, "b", 1)
	says("/health/ready", http.StatusOK, "ready (2 agents)")
}
