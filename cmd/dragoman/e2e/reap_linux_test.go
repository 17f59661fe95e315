package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Processes that a pi client started end with the hub, even if it is killed and they have left the
// process group of their shell.
func TestBashProcessesDieWithAKilledHub(t *testing.T) {
	t.Setenv("DRAGOMAN_PI_BASH", "true")
	h := serveHub(t, t.TempDir(), "interval")
	c := dialPi(t, h)
	dir := t.TempDir()
	c.do(map[string]any{"type": "create_session", "sessionId": "s", "cwd": dir})
	c.send(map[string]any{"type": "bash", "sessionId": "s", "command": `(setsid bash -c 'echo $$ > child; exec sleep 1000' &); echo $$ > shell; sleep 1000; true`})
	var pids []int
	for _, name := range []string{"child", "shell"} {
		pids = append(pids, pidIn(t, filepath.Join(dir, name)))
	}
	h.kill()
	wantsDead(t, pids...)
}

// wantsDead waits until processes are dead.
func wantsDead(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		for end := time.Now().Add(watchdog); !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH); <-time.After(time.Millisecond) {
			if stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); strings.Contains(string(stat), ") Z ") {
				break // a zombie
			}
			if time.Now().After(end) {
				t.Errorf("process %d: got it alive, want it dead", pid)
				break
			}
		}
	}
}

// An upgrade replaces the binary of a running hub.
func TestBashRunsAfterTheHubsBinaryIsReplaced(t *testing.T) {
	t.Setenv("DRAGOMAN_PI_BASH", "true")
	cmd := program(t, "serve", "--data-dir", "", "--grpc-addr", "", "--http-addr", "127.0.0.1:0", "--pi-addr", "", "--log-format", "json")
	file := filepath.Join(t.TempDir(), "dragoman")
	if err := os.Link(cmd.Path, file); err != nil {
		t.Skip("the file of the test cannot be linked: ", err)
	}
	cmd.Path = file
	c := dialPi(t, serveHubCmd(t, cmd, "interval"))
	if err := os.WriteFile(file+".new", []byte("#!/bin/sh\nexit 9\n"), 0o700); err != nil { //nolint:gosec // it is to be a program
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	c.do(map[string]any{"type": "create_session", "sessionId": "s", "cwd": t.TempDir()})
	if got := c.do(map[string]any{"type": "bash", "sessionId": "s", "command": "echo here"}); !strings.Contains(string(got.Data), `"output":"here\n"`) {
		t.Errorf("got %s %s, want what the command printed", got.Error, got.Data)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got := c.do(map[string]any{"type": "bash", "sessionId": "s", "command": "echo gone"}); !strings.Contains(string(got.Data), `"output":"gone\n"`) {
		t.Errorf("got %s %s, want what the command printed", got.Error, got.Data)
	}
}

// pidIn waits for the file that a program writes its process id to.
func pidIn(t *testing.T, path string) int {
	t.Helper()
	for end := time.Now().Add(watchdog); time.Now().Before(end); <-time.After(time.Millisecond) {
		if b, err := os.ReadFile(path); err == nil && strings.HasSuffix(string(b), "\n") {
			pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatalf("%s: no id of a process", path)
	return 0
}

// Children of the settings end with the hub, even if it is killed and they have left their process
// group.
func TestChildrenOfTheSettingsDieWithAKilledHub(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "dragoman.yaml")
	settings := `agents: [{name: child, dialect: editor, cwd: ` + dir + `, command: [sh, -c, "(setsid sh -c 'echo $$ > outside; exec sleep 1000' &); echo $$ > inside; sleep 1000; true"]}]`
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	h := startHub(t, "--config", file)
	pids := []int{pidIn(t, filepath.Join(dir, "inside")), pidIn(t, filepath.Join(dir, "outside"))}
	if err := h.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	wantsDead(t, pids...)
}
