package e2e

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/core"
)

// acpxPackage is a client of the editors' protocol for command lines and scripts.
const acpxPackage = "acpx@0.19.1"

// installAcpx installs acpx, and returns the command that runs it.
func installAcpx(t *testing.T) []string {
	t.Helper()
	needs(t, "node", "npm")
	dir := t.TempDir()
	installNode(t, dir, "--ignore-scripts", acpxPackage)
	return []string{nodeFor(t, true), filepath.Join(dir, "node_modules", "acpx", "dist", "cli.js")}
}

// acpx runs acpx in a directory of its own.
type acpx struct {
	command []string
	dir     string
	env     []string
}

// start starts a command line.
func (a acpx) start(t *testing.T, args ...string) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer) {
	t.Helper()
	args = slices.Concat(a.command, args)
	cmd = exec.Command(args[0], args[1:]...)
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = a.dir, a.env, stdout, stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, stdout, stderr
}

// run runs a command line, which ends with the exit code, and returns what it prints.
func (a acpx) run(t *testing.T, code int, args ...string) string {
	t.Helper()
	cmd, stdout, stderr := a.start(t, args...)
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("acpx %q: got the exit code %d, %s and %s, want %d", args, got, stdout, stderr, code)
	}
	return strings.TrimSpace(stdout.String())
}

// The agent behind the hub speaks another protocol than acpx.
func TestThePublishedAcpxAsksACovenAgent(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, nil)
	h.startAgent(t, coven.Name, "coder", 4)
	bridge := program(t, "editor", "--agent", "coder", "--hub", h.url())
	a := acpx{append(installAcpx(t), "--agent", strings.Join(bridge.Args, " "), "--format", "quiet"), t.TempDir(), bridge.Env}

	key := h.key()
	if got := a.run(t, 0, "exec", "say "+key); got != shortAnswer(key) {
		t.Errorf("exec: got %q, want %q", got, shortAnswer(key))
	}

	key = h.key()
	lines := strings.Split(a.run(t, 0, "--format", "json", "exec", "usage "+key), "\n")
	var last struct {
		Result struct {
			StopReason string
			Usage      struct{ InputTokens, OutputTokens int }
		}
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.Result.StopReason != "end_turn" || last.Result.Usage.InputTokens != 1500 || last.Result.Usage.OutputTokens != 40 {
		t.Errorf("usage: got %s (%v), want both reports of the agent in the result", lines[len(lines)-1], err)
	}

	for _, c := range []struct {
		flag string
		code int
		text string
	}{{"--approve-all", 0, leaveGiven}, {"--deny-all", 1, ""}} { // the agent fails where it was denied
		key := h.key()
		got := a.run(t, c.code, c.flag, "exec", "leave "+key)
		decided := h.await(t, key+" approval_decided").(core.Event).Body.(core.ApprovalDecided)
		if h.end(t, key); got != c.text || decided.Approved != (c.code == 0) {
			t.Errorf("%s: got %q and %+v, want %q", c.flag, got, decided, c.text)
		}
	}

	session := a.run(t, 0, "sessions", "new")
	defer a.run(t, 0, "sessions", "close") // else its process outlives the test
	for range 2 {
		key := h.key()
		if got := a.run(t, 0, "say "+key); got != shortAnswer(key) {
			t.Errorf("a turn of a session: got %q, want %q", got, shortAnswer(key))
		}
		if r := h.await(t, key+" begun").(core.Request); string(r.Thread) != session {
			t.Errorf("got a turn in the thread %q, want the session %s", r.Thread, session)
		}
	}

	key = h.key()
	hanging, stdout, stderr := a.start(t, "hang "+key)
	h.await(t, key+" text")
	a.run(t, 0, "cancel")
	err := hanging.Wait()
	if end := h.end(t, key); err != nil || end.Kind() != core.KindCancelled || strings.TrimSpace(stdout.String()) != strings.TrimSpace(firstHalf) {
		t.Errorf("cancel: got %v with %q and %s (%v), want the first half and cancelled", end, stdout, stderr, err)
	}
}
