package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"testing"
)

// hubProcess is a hub in a process of its own, with its log.
type hubProcess struct {
	cmd  *exec.Cmd
	http string // where it listens
	log  *bufio.Scanner
}

// startHub starts a hub as a process and returns once it is ready. It is interrupted when the test
// ends.
func startHub(t testing.TB, args ...string) *hubProcess {
	t.Helper()
	return startHubOf(t, "", nil, args...)
}

// startHubOf is startHub in a directory, with variables.
func startHubOf(t testing.TB, dir string, env []string, args ...string) *hubProcess {
	t.Helper()
	p := startLoggingHub(t, dir, env, args...)
	p.http = p.waitLog(t, "the hub is ready")["http"].(string)
	return p
}

// startLoggingHub is startHubOf before the hub has said anything.
func startLoggingHub(t testing.TB, dir string, env []string, args ...string) *hubProcess {
	t.Helper()
	p := &hubProcess{cmd: program(t, append([]string{
		"serve", "--grpc-addr", "", "--pi-addr", "", "--http-addr", "127.0.0.1:0", "--log-format", "json",
	}, args...)...)}
	p.cmd.Dir, p.cmd.Env = dir, append(p.cmd.Env, env...)
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.log = bufio.NewScanner(stderr)
	t.Cleanup(func() {
		_ = p.cmd.Process.Signal(os.Interrupt) // it may have ended
		_, _ = io.Copy(io.Discard, stderr)
		_ = p.cmd.Wait()
	})
	return p
}

// waitLog waits until the hub has logged a message, and returns its fields.
func (p *hubProcess) waitLog(t testing.TB, message string) map[string]any {
	t.Helper()
	for p.log.Scan() {
		var line map[string]any
		if json.Unmarshal(p.log.Bytes(), &line) == nil && line["message"] == message {
			return line
		}
		t.Logf("the hub: %s", p.log.Bytes())
	}
	t.Fatalf("the hub ended without saying %q", message)
	return nil
}
