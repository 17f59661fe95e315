package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

// The examples in the help of stdio work on every hub: --id or the token names the sender.
func TestStdioTakesTheSenderFromAFlagOrTheToken(t *testing.T) {
	open := newTestHub(t, nil)
	guarded := newTestHub(t, func(c *config.Config) { c.Auth.Tokens = tokensFile(t, "alice") })
	for _, tt := range []struct {
		s          *testHub
		args       []string
		says, want string
	}{
		{open, []string{"--id", "me"}, `{"v":1,"id":"1","kind":"discover"}`, `"to":"me"`},
		{open, nil, `{"v":1,"id":"1","from":"me","kind":"discover"}`, `"to":"me"`},
		{open, nil, `{"v":1,"id":"1","kind":"discover"}`, "the hub does not know you yet"},
		{guarded, []string{"--id", "me", "--token", "alice"}, `{"v":1,"id":"1","kind":"discover"}`, `"to":"me"`},
		{guarded, []string{"--token", "alice"}, `{"v":1,"id":"1","kind":"discover"}`, `"to":"alice"`},
	} {
		args := append([]string{"stdio", "--dialect", acp.Dialect, "--hub", tt.s.url()}, tt.args...)
		code, out, stderr := runWith(t.Context(), tt.says+"\n", args...)
		if code != command.ExitDone || !strings.Contains(out, tt.want) || strings.Contains(out, `"not_authorized"`) {
			t.Errorf("dragoman %s: got %d, %s and %q, want an answer with %s", strings.Join(args, " "), code, out, stderr, tt.want)
		}
	}
	code, _, stderr := run(t, "stdio", "--id", "me")
	if code != command.ExitUsage || !strings.Contains(stderr, "--id is for --dialect acp and native alone") {
		t.Errorf("with pi: got %d and %q, want it refused", code, stderr)
	}
}

func TestTheUnixSocketIsReportedByItsAbsolutePath(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	h := newTestHub(t, func(c *config.Config) { c.PiSocket = "pi" })
	if got, want := h.service.Addresses().PiSocket, filepath.Join(dir, "pi"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
