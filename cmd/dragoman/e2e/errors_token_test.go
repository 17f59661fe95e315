package e2e

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/bridge"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core/link"
)

// The token of a command is a flag or a variable, not a header.
func TestACommandWithoutAValidTokenSaysHowToGiveOne(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) { c.Auth.Tokens = tokensFile(t, "alice") })
	hub, grpc := h.url(), h.service.Addresses().GRPC
	for _, args := range [][]string{
		{"agents", "--hub", hub},
		{"ask", "a", "b", "--hub", hub},
		{"stdio", "--hub", hub},
		{"stdio", "--dialect", acp.Dialect, "--hub", hub},
		{"agent", "--dialect", acp.Dialect, "--name", "a", "--hub", hub, "cat"},
		{"agent", "--dialect", parallax.Dialect, "--name", "a", "--hub", hub, "cat"},
		{"agent", "--dialect", coven.Name, "--name", "a", "--grpc-addr", grpc, "cat"},
		{"agent", "--dialect", coven.Name, "--name", "a", "--hub", hub, "cat"},
	} {
		for token, want := range map[string]string{
			"":      "dragoman: the hub asks for a token: give it with --token or DRAGOMAN_TOKEN\n",
			"wrong": "dragoman: the hub does not know the token, or it has expired: give another with --token or DRAGOMAN_TOKEN\n",
		} {
			args := append([]string{args[0], "--token", token}, args[1:]...)
			if token == "" {
				args = append(args[:1], args[3:]...)
			}
			code, out, stderr := run(t, args...)
			if code != command.ExitFailed || stderr != want || out != "" {
				t.Errorf("dragoman %s: got %d, %q and %q, want %d and %q", strings.Join(args, " "), code, out, stderr, command.ExitFailed, want)
			}
		}
	}
}

func TestACommandPassesOnWhyAHubRefusesItsConnection(t *testing.T) {
	h := newTestHub(t, nil)
	to := client.Hub{URL: h.url(), Named: "--hub"}
	conn, err := client.DialWebSocket(t.Context(), to, bridge.NativePath, http.Header{"X-Agent-Id": {"hub"}}, 1<<20)
	if err == nil {
		conn.Close(link.Reason{})
		t.Fatal("got a connection, want it refused")
	}
	if !strings.Contains(err.Error(), "refuses the connection: ") || !strings.Contains(err.Error(), "is reserved for addresses") {
		t.Errorf("got %q, want why", err)
	}
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "<html>Bad Request</html>", http.StatusBadRequest)
	}))
	defer page.Close()
	if _, err := client.DialWebSocket(t.Context(), client.Hub{URL: page.URL, Named: "--hub"}, bridge.NativePath, nil, 1<<20); err == nil || !strings.Contains(err.Error(), "not a hub") {
		t.Errorf("another server: got %v, want that it is not a hub", err)
	}
}
