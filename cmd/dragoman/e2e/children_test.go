package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestSIGHUPTakesOverTheAgentsOfTheSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "dragoman.yaml")
	write := func(agents ...string) {
		t.Helper()
		if err := os.WriteFile(file, []byte("agents:\n"+strings.Join(agents, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const stays, leaves, comes = `  - {name: stays, dialect: text, command: [tr, a-z, A-Z]}`, `  - {name: leaves, dialect: text, command: [cat]}`, `  - {name: comes, dialect: text, command: [rev]}`
	write(stays, leaves)
	h := startHub(t, "--config", file)
	hub := []string{"--hub", "http://" + h.http}
	if code, out, stderr := run(t, append([]string{"ask", "stays", "hello"}, hub...)...); code != 0 || out != "HELLO\n" {
		t.Fatalf("before: got %d, %q and %s, want HELLO", code, out, stderr)
	}
	write(stays, comes)
	if err := h.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	h.waitLog(t, "the configuration was reloaded")
	for agent, want := range map[string]string{"stays": "HELLO\n", "comes": "olleh\n"} {
		if code, out, stderr := run(t, append([]string{"ask", agent, "hello"}, hub...)...); code != 0 || out != want {
			t.Errorf("%s: got %d, %q and %s, want %q", agent, code, out, stderr, want)
		}
	}
	if code, _, stderr := run(t, append([]string{"ask", "leaves", "hello"}, hub...)...); code != 1 || !strings.Contains(stderr, `no agent "leaves" is here`) {
		t.Errorf("leaves: got %d and %q, want no such agent", code, stderr)
	}
	if code, out, stderr := run(t, append([]string{"agents", "restart", "stays"}, hub...)...); code != 0 || !strings.Contains(out, "started again") {
		t.Errorf("agents restart: got %d, %q and %s", code, out, stderr)
	}
	if code, _, stderr := run(t, append([]string{"agents", "restart", "nobody"}, hub...)...); code != 1 || !strings.Contains(stderr, "not among the agents and packs") {
		t.Errorf("agents restart of nobody: got %d and %q, want it refused", code, stderr)
	}
}
