package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

// mark is the byte order mark with which some editors and shells begin a file.
const mark = "\ufeff"

// What editors and shells add at the edges of a file or a variable is not part of it.
func TestNothingDependsOnTheEdgesOfFilesAndVariables(t *testing.T) {
	tokens := tokensFile(t, "alice")
	text, err := os.ReadFile(tokens)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	settings, data := filepath.Join(dir, "dragoman.yaml"), filepath.Join(dir, "data.json")
	for path, text := range map[string]string{
		tokens:   mark + strings.ReplaceAll(string(text), "\n", "\r\n"),
		settings: mark + "log_level: debug\r\nlimits:\r\n  hops: 3\r\n",
		data:     mark + "{\"n\":1}\r\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h := newTestHub(t, func(c *config.Config) { c.Auth.Tokens = tokens })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runWith(t.Context(), "", "agent", "--hub", h.url(), "--token", "alice\n", "--name", "alice", "--", "cat")
	}()
	t.Cleanup(func() { <-ended })
	h.await(t, "joined alice")

	t.Setenv("DRAGOMAN_TOKEN", "alice\r\n")
	t.Setenv("DRAGOMAN_HUB", h.url()+"\n")
	t.Setenv("DRAGOMAN_LIMITS_QUEUE_LENGTH", "7\n")
	if code, out, stderr := run(t, "check", "--all", "--config", settings); code != command.ExitDone || !strings.Contains(out, "limits.hops") {
		t.Errorf("settings: got %d and %q, want them read", code, stderr)
	}
	if code, out, stderr := run(t, "ask", "alice", "hello", "--data", "@"+data); code != command.ExitDone || !strings.Contains(out, `{"n":1}`) {
		t.Errorf("a file of data: got %d, %q and %q, want what is in it", code, out, stderr)
	}
	if code, out, stderr := runWith(t.Context(), mark+"hello\r\n", "ask", "alice"); code != command.ExitDone || out != "hello\r\n" {
		t.Errorf("stdin: got %d, %q and %q, want the text without its mark", code, out, stderr)
	}
	if code, _, stderr := runWith(t.Context(), "\xff\xfeh\x00i\x00", "ask", "alice"); code != command.ExitUsage || !strings.Contains(stderr, "stdin: it is UTF-16: write it as UTF-8") {
		t.Errorf("UTF-16: got %d and %q, want it named", code, stderr)
	}
}
