package e2e

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

// What the help of stdio shows works on every hub: who speaks is said by --id, or by
// the token.
func TestWhoSpeaksOverStdioIsSaidByAFlagOrTheToken(t *testing.T) {
	open := newStage(t, nil)
	guarded := newStage(t, func(c *config.Config) { c.Auth.Tokens = tokensFile(t, "alice") })
	for _, tt := range []struct {
		s          *stage
		args       []string
		says, want string
	}{
		{open, []string{"--id", "me"}, `{"v":1,"id":"1","kind":"discover"}`, `"to":"me"`},
		{open, nil, `{"v":1,"id":"1","from":"me","kind":"discover"}`, `"to":"me"`},
		{open, nil, `{"v":1,"id":"1","kind":"discover"}`, "the hub does not know you yet"},
		{guarded, []string{"--id", "me", "--token", "alice"}, `{"v":1,"id":"1","kind":"discover"}`, `"to":"me"`},
		{guarded, []string{"--token", "alice"}, `{"v":1,"id":"1","kind":"discover"}`, `"to":"alice"`},
	} {
		args := append([]string{"stdio", "--dialect", acp.Dialect, "--hub", "http://" + tt.s.service.Addresses().HTTP}, tt.args...)
		var stdout, stderr earshot
		code := command.Run(t.Context(), args, command.Streams{In: io.NopCloser(strings.NewReader(tt.says + "\n")), Out: &stdout, Err: &stderr})
		if out := stdout.String(); code != command.ExitDone || !strings.Contains(out, tt.want) || strings.Contains(out, `"not_authorized"`) {
			t.Errorf("dragoman %s: got %d, %s and %q, want an answer with %s", strings.Join(args, " "), code, out, stderr.String(), tt.want)
		}
	}
	code, _, complaint := typed(t, "stdio", "--id", "me")
	if code != command.ExitUsage || !strings.Contains(complaint, "--id is for --dialect acp alone") {
		t.Errorf("with pi: got %d and %q, want it refused", code, complaint)
	}
}

func TestTheUnixSocketIsToldByItsWholePath(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	s := newStage(t, func(c *config.Config) { c.PiSocket = "pi" })
	if got, want := s.service.Addresses().PiSocket, filepath.Join(dir, "pi"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
