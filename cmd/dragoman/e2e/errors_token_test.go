package e2e

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
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
