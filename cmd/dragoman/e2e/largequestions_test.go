package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/native"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
)

// A question may be as long as the hub's limits.request_bytes, from a file or stdin; a longer one is refused with the
// limit and its name, by the hub, the listener or the agent's dialect.
func TestALongQuestionReachesTheAgentOrIsRefusedWithItsLimit(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, func(c *config.Config) { c.Limits.RequestBytes, c.REST.BodyBytes = 1_200_000, 1_500_000 })
	tell := func(_ context.Context, r core.Request, say func(core.Body) error) error {
		return say(core.Text{Text: fmt.Sprint(len(r.Content))})
	}
	h.startAgentWith(t, native.Dialect, "far", tell)
	h.startAgentWith(t, acp.Dialect, "near", tell)
	file := filepath.Join(t.TempDir(), "question.md")
	text := strings.Repeat("ä question\n", 200_000)
	for _, tt := range []struct {
		name, to string
		bytes    int
		code     int
		want     string
	}{
		{"more than 1 MB", "far", 1_100_000, command.ExitDone, "1100000\n"},
		{"more than the hub takes", "far", 1_200_001, command.ExitFailed, "the limit is 1200000 (limits.request_bytes): send less, or say where it is"},
		{"more than the listener takes", "far", 1_600_000, command.ExitFailed, "the body has more than 1500000 bytes: send less, attachments included, or say where it is (a path, a link); the setting rest.body_bytes sets the limit"},
		{"more than the agent takes", "near", 1_100_000, command.ExitFailed, "as an ACP envelope, the limit is 1000000: send less, or a reference to it; put what is long into a file that the agent can read, or let the agent join by native, which takes more"},
	} {
		question := strings.ToValidUTF8(text[:tt.bytes], "?")
		question += strings.Repeat("?", tt.bytes-len(question))
		if err := os.WriteFile(file, []byte(question), 0o600); err != nil {
			t.Fatal(err)
		}
		for how, ask := range map[string]func() (int, string, string){
			"of a file": func() (int, string, string) { return h.run(t, "ask", tt.to, "@"+file) },
			"of stdin":  func() (int, string, string) { return runWith(t.Context(), question, "ask", tt.to, "--hub", h.url()) },
		} {
			if tt.code != command.ExitDone && how != "of a file" {
				continue // it is the same request
			}
			code, out, stderr := ask()
			if code != tt.code || !strings.Contains(out+stderr, tt.want) || code != 0 && strings.Count(stderr, "\n") != 1 {
				t.Errorf("%s %s: got %d, %q and %q, want %d and %q", tt.name, how, code, out, stderr, tt.code, tt.want)
			}
		}
	}
}
