package e2e

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A process of pi gets a token for the tools of the hub. It must be in no file, for a hub that is
// killed removes none.
func TestAKilledHubLeavesNoTokenOfPiOnDisk(t *testing.T) {
	for name, data := range map[string]string{"with a data directory": t.TempDir(), "in memory": ""} {
		t.Run(name, func(t *testing.T) {
			temporary, told := t.TempDir(), t.TempDir()
			t.Setenv("TMPDIR", temporary)
			// The process tells the test alone what it was given, and answers get_state.
			script := `echo "$DRAGOMAN_MCP_TOKEN" > ` + told + `/token; echo $$ > ` + told + `/pid; echo "$*" > ` + told + `/arguments
				while read -r line; do echo '{"id":"d1","type":"response","command":"get_state","success":true,"data":{"isStreaming":false,"isCompacting":false,"sessionId":"s"}}'; done`
			file := filepath.Join(told, "dragoman.yaml")
			settings := fmt.Sprintf(`agents: [{name: pi, dialect: pi-rpc, cwd: %s, command: [sh, -c, %q, pi]}]`, told, script)
			if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
				t.Fatal(err)
			}
			h := startHub(t, "--config", file, "--data-dir", data)
			pid := pidIn(t, filepath.Join(told, "pid"))
			token := strings.TrimSpace(lineIn(t, filepath.Join(told, "token")))
			if len(token) < 20 {
				t.Fatalf("got the token %q, want one", token)
			}
			arguments := lineIn(t, filepath.Join(told, "arguments"))
			if !strings.Contains(arguments, "--extension") || strings.Contains(arguments, token) {
				t.Errorf("got the arguments %q, want an extension and no token", arguments)
			}
			if err := h.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			wantsDead(t, pid)
			for _, dir := range []string{temporary, data} {
				wantsNowhere(t, dir, token)
			}
		})
	}
}

// lineIn waits for the file that a program writes and returns it.
func lineIn(t *testing.T, path string) string {
	t.Helper()
	for end := time.Now().Add(watchdog); time.Now().Before(end); <-time.After(time.Millisecond) {
		if b, err := os.ReadFile(path); err == nil && bytes.HasSuffix(b, []byte("\n")) {
			return string(b)
		}
	}
	t.Fatalf("%s: nothing was written", path)
	return ""
}

// wantsNowhere fails the test if a file below a directory has the secret. "" is no directory.
func wantsNowhere(t *testing.T, dir, secret string) {
	t.Helper()
	if dir == "" {
		return
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(secret)) {
			t.Errorf("%s has the token", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
