package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// piChild is the program as a child process that speaks pi-server on its pipes.
type piChild struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan string // of stdout, closed at its end
	logged *strings.Builder
}

// noListeners are the flags of a hub that is reached only through its pipes.
var noListeners = []string{"--grpc-addr=", "--http-addr=", "--pi-addr="}

// startChild starts the program. Its environment has only the given settings.
func startChild(t *testing.T, settings []string, args ...string) *piChild {
	t.Helper()
	c := &piChild{t: t, cmd: program(t, args...), lines: make(chan string, 1024), logged: new(strings.Builder)}
	c.cmd.Env = append(withoutVariables(c.cmd.Env), settings...)
	c.cmd.Stderr = c.logged
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			c.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		if c.cmd.ProcessState == nil {
			_ = c.cmd.Process.Kill() // it may just have ended
			for range c.lines {
			}
			_ = c.cmd.Wait()
		}
	})
	return c
}

func (c *piChild) write(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, text); err != nil {
		c.t.Fatal(err)
	}
}

// next returns the next line, which must be a frame, or "" at the end.
func (c *piChild) next() string {
	c.t.Helper()
	select {
	case line, more := <-c.lines:
		var frame struct {
			Type string `json:"type"`
		}
		if more && (json.Unmarshal([]byte(line), &frame) != nil || frame.Type == "") {
			c.t.Errorf("stdout: got the line %q, want frames alone", line)
		}
		return line
	case <-time.After(time.Minute):
		c.t.Fatalf("nothing came within a minute\n%s", c.logged)
		return ""
	}
}

// readUntil reads frames up to one that contains the parts.
func (c *piChild) readUntil(parts ...string) string {
	c.t.Helper()
	var seen []string
next:
	for line := c.next(); line != ""; line = c.next() {
		seen = append(seen, line)
		for _, p := range parts {
			if !strings.Contains(line, p) {
				continue next
			}
		}
		return line
	}
	c.t.Fatalf("got\n%s\nwant a frame with %q", strings.Join(seen, "\n"), parts)
	return ""
}

// wait reads the rest and returns the exit code.
func (c *piChild) wait() int {
	c.t.Helper()
	for c.next() != "" {
	}
	if err := c.cmd.Wait(); err != nil {
		var code *exec.ExitError
		if !errors.As(err, &code) {
			c.t.Fatal(err)
		}
	}
	return c.cmd.ProcessState.ExitCode()
}

// bashIn returns commands that create a session in the directory and run a program in it.
func bashIn(dir, command string) string {
	create, _ := json.Marshal(map[string]string{"id": "1", "type": "create_session", "sessionId": "s", "cwd": dir}) // texts have a JSON form
	bash, _ := json.Marshal(map[string]string{"id": "2", "type": "bash", "sessionId": "s", "command": command})     // likewise
	return string(create) + "\n" + string(bash) + "\n"
}

const bashAllowed = "DRAGOMAN_PI_BASH=true"

func TestAStdioHubAnswersAllAndEndsWithItsInput(t *testing.T) {
	c := startChild(t, []string{bashAllowed}, append([]string{"serve", "--stdio", "--log-level=debug"}, noListeners...)...)
	c.readUntil(`"server_ready"`)
	// The end of the input ends the last line.
	c.write(bashIn(t.TempDir(), `sleep 0.2; echo done`) + `not JSON` + "\n" + `{"id":"3","type":"list_sessions"}`)
	c.in.Close()
	c.readUntil(`"error":"Invalid JSON"`)
	c.readUntil(`"id":"3","type":"response","command":"list_sessions","success":true`)
	c.readUntil(`"id":"2","type":"response","command":"bash","success":true`, `"output":"done\n"`)
	if code := c.wait(); code != 0 {
		t.Errorf("exit code: got %d, want 0\n%s", code, c.logged)
	}
	if !strings.Contains(c.logged.String(), "ready") {
		t.Errorf("stderr: got %q, want the log", c.logged)
	}
}

func TestAStdioHubDrainsOnSIGTERM(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct{ name, patience, program, want string }{
		{"ends", "30s", `touch begun; while [ ! -e go ]; do sleep 0.01; done; echo done`, `"output":"done\n","cancelled":false`},
		{"takes too long", "1s", `echo $$ > begun; sleep 1000`, `"cancelled":true`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := startChild(t, []string{bashAllowed, "DRAGOMAN_STOP_TIMEOUT=" + tt.patience}, append([]string{"serve", "--stdio"}, noListeners...)...)
			c.write(bashIn(dir, tt.program))
			c.readUntil(`"command_started"`, `"commandId":"2"`)
			if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			c.readUntil(`{"type":"server_shutdown","data":{"reason":"graceful_shutdown","timeoutMs":`)
			c.write(`{"id":"4","type":"list_sessions"}` + "\n")
			c.readUntil(`"id":"4"`, `"error":"Server is shutting down"`)
			if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			c.readUntil(`"id":"2","type":"response","command":"bash","success":true`, tt.want)
			if code := c.wait(); code != 0 {
				t.Errorf("exit code: got %d, want 0\n%s", code, c.logged)
			}
			if b, err := os.ReadFile(filepath.Join(dir, "begun")); err == nil && len(b) > 0 {
				if pid, err := strconv.Atoi(strings.TrimSpace(string(b))); err != nil || isRunning(pid) {
					t.Errorf("the program %q: got it alive, want it dead", b)
				}
			}
		})
	}
}

// isRunning reports whether a process exists that is not waiting to be reaped.
func isRunning(pid int) bool {
	state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(state), ") ")
	return err == nil && !strings.HasPrefix(rest, "Z")
}

func TestAHubWithListenersOutlivesItsStdin(t *testing.T) {
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready.json")
	server := startChild(t, []string{bashAllowed}, "serve", "--stdio", "--grpc-addr=", "--http-addr=127.0.0.1:0", "--pi-addr=", "--ready-file="+ready)
	server.readUntil(`"server_ready"`)
	server.in.Close()
	at := awaitReady(t, ready)
	bridge := func() *piChild { return startChild(t, nil, "stdio", "--hub", "http://"+at.HTTP) }

	asks := bridge()
	asks.write(bashIn(dir, `sleep 0.2; echo done`))
	asks.in.Close()
	asks.readUntil(`"server_ready"`)
	asks.readUntil(`"id":"2","type":"response","command":"bash","success":true`, `"output":"done\n"`)
	if code := asks.wait(); code != 0 || asks.logged.Len() > 0 {
		t.Errorf("exit code: got %d and %q, want 0 and nothing", code, asks.logged)
	}

	stays := bridge()
	stays.readUntil(`"server_ready"`)
	if err := server.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	stays.readUntil(`"server_shutdown"`)
	if code := stays.wait(); code != 0 {
		t.Errorf("exit code behind a hub that stopped: got %d, want 0\n%s", code, stays.logged)
	}
	if code := server.wait(); code != 0 {
		t.Errorf("exit code of the hub: got %d, want 0\n%s", code, server.logged)
	}
}
