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

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
)

// piChild is the program as a child process that speaks pi-server on its pipes.
type piChild struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan string // of stdout, closed at its end
	logged *strings.Builder
}

// closedDoors are the settings of a hub that is reached on its pipes alone.
var closedDoors = []string{"--grpc-addr=", "--http-addr=", "--pi-addr="}

// beginChild starts the program. Its environment has the settings and no others.
func beginChild(t *testing.T, settings []string, args ...string) *piChild {
	t.Helper()
	c := &piChild{t: t, cmd: program(t, args...), lines: make(chan string, 1024), logged: new(strings.Builder)}
	c.cmd.Env = append(config.WithoutVariables(c.cmd.Env), settings...)
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

func (c *piChild) say(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, text); err != nil {
		c.t.Fatal(err)
	}
}

// next returns the next frame; every line has to be one. It returns "" at the end.
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

// until reads frames up to one that has the parts.
func (c *piChild) until(parts ...string) string {
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

// ends reads the rest and returns the exit code.
func (c *piChild) ends() int {
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

// runsIn says that a session is made in the directory and a program run in it.
func runsIn(dir, command string) string {
	create, _ := json.Marshal(map[string]string{"id": "1", "type": "create_session", "sessionId": "s", "cwd": dir}) // texts have a JSON form
	bash, _ := json.Marshal(map[string]string{"id": "2", "type": "bash", "sessionId": "s", "command": command})     // likewise
	return string(create) + "\n" + string(bash) + "\n"
}

const bashAllowed = "DRAGOMAN_PI_BASH=true"

func TestAHubOnItsPipesAnswersWhatWasAskedAndEndsWithItsInput(t *testing.T) {
	c := beginChild(t, []string{bashAllowed}, append([]string{"serve", "--stdio", "--log-level=debug"}, closedDoors...)...)
	c.until(`"server_ready"`)
	// The last line has no end: the end of the input is one.
	c.say(runsIn(t.TempDir(), `sleep 0.2; echo done`) + `not JSON` + "\n" + `{"id":"3","type":"list_sessions"}`)
	c.in.Close()
	c.until(`"error":"Invalid JSON"`)
	c.until(`"id":"3","type":"response","command":"list_sessions","success":true`)
	c.until(`"id":"2","type":"response","command":"bash","success":true`, `"output":"done\n"`)
	if code := c.ends(); code != 0 {
		t.Errorf("exit code: got %d, want 0\n%s", code, c.logged)
	}
	if !strings.Contains(c.logged.String(), "ready") {
		t.Errorf("stderr: got %q, want the log", c.logged)
	}
}

func TestAHubThatIsToldToStopSaysSoOnItsPipesAndLetsEndWhatRuns(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct{ name, patience, program, want string }{
		{"ends", "30s", `touch begun; while [ ! -e go ]; do sleep 0.01; done; echo done`, `"output":"done\n","cancelled":false`},
		{"takes too long", "1s", `echo $$ > begun; sleep 1000`, `"cancelled":true`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := beginChild(t, []string{bashAllowed, "DRAGOMAN_STOP_TIMEOUT=" + tt.patience}, append([]string{"serve", "--stdio"}, closedDoors...)...)
			c.say(runsIn(dir, tt.program))
			c.until(`"command_started"`, `"commandId":"2"`)
			if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			c.until(`{"type":"server_shutdown","data":{"reason":"graceful_shutdown","timeoutMs":`)
			c.say(`{"id":"4","type":"list_sessions"}` + "\n")
			c.until(`"id":"4"`, `"error":"Server is shutting down"`)
			if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			c.until(`"id":"2","type":"response","command":"bash","success":true`, tt.want)
			if code := c.ends(); code != 0 {
				t.Errorf("exit code: got %d, want 0\n%s", code, c.logged)
			}
			if b, err := os.ReadFile(filepath.Join(dir, "begun")); err == nil && len(b) > 0 {
				if pid, err := strconv.Atoi(strings.TrimSpace(string(b))); err != nil || runs(pid) {
					t.Errorf("the program %q: got it alive, want it dead", b)
				}
			}
		})
	}
}

// runs reports whether there is such a process that is not just waiting to be reaped.
func runs(pid int) bool {
	state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(state), ") ")
	return err == nil && !strings.HasPrefix(rest, "Z")
}

func TestAHubWithOtherDoorsOutlivesItsInputAndTheProgramBridgesToIt(t *testing.T) {
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready.json")
	server := beginChild(t, []string{bashAllowed}, "serve", "--stdio", "--grpc-addr=", "--http-addr=127.0.0.1:0", "--pi-addr=", "--ready-file="+ready)
	server.until(`"server_ready"`)
	server.in.Close()
	at, err := service.AwaitReady(t.Context(), ready)
	if err != nil {
		t.Fatal(err)
	}
	bridge := func() *piChild { return beginChild(t, nil, "stdio", "--hub", "http://"+at.HTTP) }

	asks := bridge()
	asks.say(runsIn(dir, `sleep 0.2; echo done`))
	asks.in.Close()
	asks.until(`"server_ready"`)
	asks.until(`"id":"2","type":"response","command":"bash","success":true`, `"output":"done\n"`)
	if code := asks.ends(); code != 0 || asks.logged.Len() > 0 {
		t.Errorf("exit code: got %d and %q, want 0 and nothing", code, asks.logged)
	}

	stays := bridge()
	stays.until(`"server_ready"`)
	if err := server.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	stays.until(`"server_shutdown"`)
	if code := stays.ends(); code != 0 {
		t.Errorf("exit code behind a hub that stopped: got %d, want 0\n%s", code, stays.logged)
	}
	if code := server.ends(); code != 0 {
		t.Errorf("exit code of the hub: got %d, want 0\n%s", code, server.logged)
	}
}
