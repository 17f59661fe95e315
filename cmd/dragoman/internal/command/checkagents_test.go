package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

// Check reports everything at once: what serve refuses, and what would fail later.
func TestCheckSeesWhatIsWrongWithAgentsAndPacks(t *testing.T) {
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(token, 0o644); err != nil {
		t.Fatal(err)
	}
	path := configFile(t, dir, `agents:
  - {name: a, dialect: text, command: [no-such-program]}
  - {name: a, dialect: text, command: [sh], cwd: /no/such/directory}
  - name: b
    dialect: text
    command: [sh]
    env:
      - UNSET_HERE
packs:
  - {name: p, url: "http://127.0.0.1:1/mcp", token_file: `+token+`, max_time: 1h}
limits: {hops: 0}
`)
	code, out, stderr := run(t, "check", "--config", path, "--http-addr=nowhere")
	want := []string{
		"warning: dragoman.yaml:8: agents[2].env[0]: UNSET_HERE is not set here: export it first, or write UNSET_HERE=value",
		"warning: dragoman.yaml:10: packs[0].token_file: other users may read " + token + " (mode 0644): run chmod 600 on it",
		`dragoman.yaml:3: agents[1].name: "a" is the name of agents[0] too: choose another`,
		"dragoman.yaml:11: limits.hops: want a whole number of at least 1, got 0",
		"dragoman.yaml:10: packs[0].max_time: it is over limits.max_tool_timeout, 5m: write less, or raise that limit",
		"--http-addr nowhere: missing port in address; write it as host:port, such as 127.0.0.1:8080",
		"dragoman.yaml:2: agents[0].command: no-such-program is not found in PATH: install it, or write its whole path",
		"dragoman.yaml:3: agents[1].cwd: /no/such/directory: no such file or directory; make the directory, or name another",
	}
	var got []string
	for line := range strings.Lines(stderr) {
		line = strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "dragoman: ")
		got = append(got, strings.ReplaceAll(line, path, "dragoman.yaml"))
	}
	if diff := cmp.Diff(want, got); diff != "" || code != command.ExitUsage || out != "" {
		t.Errorf("got %d, %q and (-want +got):\n%s", code, out, diff)
	}
}

func TestAWarningDoesNotFailTheCheck(t *testing.T) {
	path := configFile(t, t.TempDir(), "agents: [{name: a, command: [sh], env: [UNSET_HERE]}]")
	code, out, stderr := run(t, "check", "--config", path)
	if code != command.ExitDone || !strings.Contains(stderr, "warning: "+path+":1: agents[0].env[0]: UNSET_HERE") || out != "" {
		t.Errorf("got %d, %q and %q, want a warning alone", code, out, stderr)
	}
}

func TestTheCheckSaysInALineThatAllIsWell(t *testing.T) {
	path := configFile(t, t.TempDir(), "agents: [{name: a, command: [sh]}, {name: b, command: [sh]}]\npacks: [{name: p, command: [sh]}]")
	code, out, stderr := run(t, "check", "--config", path)
	if want := "all is well with " + path + "; agents: a, b; packs: p\n"; code != command.ExitDone || out != want || stderr != "" {
		t.Errorf("got %d, %q and %q, want %q", code, out, stderr, want)
	}
	if code, out, _ := run(t, "check", "--config", path, "--all"); code != command.ExitDone || !strings.Contains(out, "grpc_addr") {
		t.Errorf("with --all: got %d and %q, want every setting", code, out)
	}
}
