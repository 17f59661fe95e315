//go:build unix

package pi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/shell"
)

// requireDead waits until the process is gone, also as a zombie of another process.
func requireDead(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(testTimeout); time.Now().Before(end); {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if errors.Is(err, os.ErrNotExist) && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return
		}
		if _, rest, ok := strings.Cut(string(state), ") "); ok && strings.HasPrefix(rest, "Z") {
			return
		}
		<-time.After(time.Millisecond)
	}
	t.Errorf("process %d is still alive", pid)
}

func TestBashRunsInTheDirectoryOfTheSessionAndReturnsItsResult(t *testing.T) {
	c := newShell(t, pi.Options{})
	got := c.runs("b", `echo out; echo err >&2; pwd; cat; exit 3`)
	want := bashResult{ExitCode: 3, Output: "out\nerr\n" + c.dir + "\n", TotalBytes: int64(len("out\nerr\n" + c.dir + "\n")), TotalLines: 3}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if f := c.until(`"bash_output"`, `"commandId":"b"`); f.SessionID != "s" {
		t.Errorf("bash_output: got session %q, want s", f.SessionID)
	}
	if got := c.runs("k", `kill -TERM $$`); got.ExitCode != 143 || got.Cancelled {
		t.Errorf("a program that a signal ended: got %+v, want exit code 143", got)
	}
}

func TestTheNextPromptReportsBashCommands(t *testing.T) {
	c := newShell(t, pi.Options{})
	c.runs("b1", `echo one; exit 2`)
	c.runs("b2", `echo two`, "excludeFromContext")
	c.ok(askCommand)
	c.ok(askCommand)
	ms := messagesOf(t, c.testClient, "s")
	var roles []string
	for _, m := range ms {
		roles = append(roles, m.Role)
	}
	if got, want := strings.Join(roles, " "), "bashExecution bashExecution user assistant user assistant"; got != want {
		t.Fatalf("messages: got %s, want %s", got, want)
	}
	for i, want := range map[int]string{
		0: `"command":"echo one; exit 2","output":"one\n","exitCode":2,"cancelled":false,"truncated":false,"timestamp"`,
		1: `"truncated":false,"excludeFromContext":true,"timestamp"`,
	} {
		if got := string(ms[i].JSON); !strings.Contains(got, want) {
			t.Errorf("message %d: got %s, want %s in it", i, got, want)
		}
	}
	if got, want := ms[3].Text(), "you said Ran `echo one; exit 2`\n```\none\n\n```\n\nCommand exited with code 2\n\nhello"; got != want {
		t.Errorf("the first answer: got %q, want %q", got, want)
	}
	if got, want := ms[5].Text(), "you said hello"; got != want {
		t.Errorf("the second answer: got %q, want %q", got, want)
	}
}

// both starts a process beside the shell, and writes the ids of both.
const both = `sleep 1000 & echo $! > child; echo $$ > shell; wait`

func TestEveryProcessOfBashIsKilled(t *testing.T) {
	const away = `(setsid bash -c 'echo $$ > child; exec sleep 1000' &); while [ ! -s child ]; do sleep 0.01; done; echo $$ > shell; `
	for _, tt := range []struct {
		name, program string
		opts          pi.Options
		end           func(t *testing.T, c *testClient)
		want          string
	}{
		{"aborted", both, pi.Options{}, func(_ *testing.T, c *testClient) {
			c.ok(`{"type":"abort_bash","sessionId":"s"}`)
		}, `"success":true,"data":{"exitCode":0,"output":"","cancelled":true`},
		{"session deleted", both, pi.Options{}, func(_ *testing.T, c *testClient) {
			c.ok(`{"type":"delete_session","sessionId":"s"}`)
		}, `"cancelled":true`},
		{"left the group, aborted", away + `wait; sleep 1000`, pi.Options{}, func(_ *testing.T, c *testClient) {
			c.ok(`{"type":"abort_bash","sessionId":"s"}`)
		}, `"cancelled":true`},
		{"left the group, shell ended", away, pi.Options{}, func(*testing.T, *testClient) {}, `"exitCode":0`},
		{"shell ended", `sleep 1000 & echo $! > child; echo $$ > shell`, pi.Options{}, func(*testing.T, *testClient) {}, `"exitCode":0`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newShell(t, tt.opts)
			c.send(bashFrame("b", tt.program))
			shell, child := pidIn(t, filepath.Join(c.dir, "shell")), pidIn(t, filepath.Join(c.dir, "child"))
			tt.end(t, c.testClient)
			c.until(`"id":"b","type":"response"`, tt.want)
			requireDead(t, shell)
			requireDead(t, child)
		})
	}
}

func TestEveryProcessOfBashThatTakesTooLongIsKilled(t *testing.T) {
	for timeout := 500 * time.Millisecond; ; timeout *= 2 {
		c := newShell(t, pi.Options{Commands: command.Options{PromptTimeout: timeout}})
		c.send(bashFrame("b", both))
		c.until(`"id":"b","type":"response"`, fmt.Sprintf(`"success":false,"error":"Command 'bash' timed out after %dms","timedOut":true`, timeout.Milliseconds()))
		shell, child := filepath.Join(c.dir, "shell"), filepath.Join(c.dir, "child")
		if text, err := os.ReadFile(shell); err != nil || !strings.HasSuffix(string(text), "\n") {
			continue // a busy machine has not started both in time
		}
		requireDead(t, pidIn(t, shell))
		requireDead(t, pidIn(t, child))
		return
	}
}

func TestBashEndsWithItsClientIfTasksAreDropped(t *testing.T) {
	c := newShell(t, pi.Options{DropTasks: true})
	c.send(bashFrame("b", `echo $$ > shell; sleep 1000`))
	pid := pidIn(t, filepath.Join(c.dir, "shell"))
	c.disconnect()
	requireDead(t, pid)
}

func TestAStoppingHubWaitsForBashAndKillsItAfterTheTimeout(t *testing.T) {
	for _, tt := range []struct{ name, program, want string }{
		{"ends", `echo $$ > shell; while [ ! -e go ]; do sleep 0.01; done; echo done`, `"output":"done\n","cancelled":false`},
		{"takes too long", `echo $$ > shell; sleep 1000`, `"cancelled":true`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newShell(t, pi.Options{})
			c.send(bashFrame("b", tt.program))
			pid := pidIn(t, filepath.Join(c.dir, "shell"))
			if err := c.hub.Close(t.Context(), "test"); err != nil {
				t.Fatal(err)
			}
			c.until(`"server_shutdown"`)
			c.fails(`{"type":"list_sessions"}`, "Server is shutting down")
			if err := os.WriteFile(filepath.Join(c.dir, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.name == "takes too long" {
				cancel()
			}
			c.server.Drain(ctx)
			c.until(`"id":"b","type":"response"`, tt.want)
			if r := <-c.served; r.Code != 1001 || r.Text != "Server shutting down" {
				t.Errorf("close: got %+v, want 1001 Server shutting down", r)
			} else {
				c.served <- r
			}
			requireDead(t, pid)
		})
	}
}

func TestASessionRunsOneProgramAtATimeAndControlOvertakesIt(t *testing.T) {
	c := newShell(t, pi.Options{Commands: command.Options{QueuePrompts: true}})
	c.send(bashFrame("b1", `echo $$ > shell; while [ ! -e go ]; do sleep 0.01; done; echo first > said`))
	pidIn(t, filepath.Join(c.dir, "shell"))
	c.send(bashFrame("b2", `cat said`))
	c.ok(`{"type":"get_state","sessionId":"s"}`)
	if got := c.count(`"command_started"`, `"commandId":"b2"`); got != 0 {
		t.Errorf("started events of the second: got %d while the first runs, want 0", got)
	}
	if err := os.WriteFile(filepath.Join(c.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.until(`"id":"b2","type":"response"`, `"output":"first\n"`)
}

func TestEndlessOutputIsBoundedInMemoryAndOnTheWire(t *testing.T) {
	c := newShell(t, pi.Options{})
	got := c.runs("b", `yes 0123456789abcdef | head -c 50000000; echo; echo the end`)
	if !got.Truncated || !strings.HasSuffix(got.Output, "\nthe end\n") || len(got.Output) > shell.TailBytes {
		t.Errorf("got truncated %v and %d bytes, want its end", got.Truncated, len(got.Output))
	}
	if lines := strings.Count(got.Output, "\n"); lines > shell.TailLines || got.TotalBytes != 50_000_000+9 {
		t.Errorf("got %d lines of %d bytes, want at most %d of 50000009", lines, got.TotalBytes, shell.TailLines)
	}
	var reported, skipped int
	for _, f := range c.received() {
		if !has(f, `"bash_output"`) {
			continue
		}
		var e struct {
			Delta        string
			SkippedBytes int
		}
		if err := json.Unmarshal(f.Event, &e); err != nil {
			t.Fatal(err)
		}
		if len(e.Delta) > shell.PieceBytes {
			t.Errorf("a piece: got %d bytes, want at most %d", len(e.Delta), shell.PieceBytes)
		}
		reported, skipped = reported+len(e.Delta), skipped+e.SkippedBytes
	}
	if reported+skipped != 50_000_009 || skipped == 0 {
		t.Errorf("got %d bytes reported and %d skipped, want %d in total", reported, skipped, 50_000_009)
	}
}

func TestBashThatCannotRunOpensItsCircuits(t *testing.T) {
	for _, tt := range []struct {
		breakers command.Breakers
		want     string
	}{
		{command.Breakers{BashSession: command.Breaker{Failures: 2}}, "Bash circuit breaker open for session s: Circuit open for bash_session:s (recovery in 30s)"},
		{command.Breakers{BashAll: command.Breaker{Failures: 2}}, "Bash circuit breaker open globally: Circuit open for bash_global (recovery in 30s)"},
	} {
		c := newShell(t, pi.Options{Breakers: tt.breakers})
		for range 3 {
			if got := c.runs("", `exit 1`); got.ExitCode != 1 {
				t.Errorf("got %+v, want exit code 1", got)
			}
		}
		if err := os.Remove(c.dir); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if f := c.do(`{"type":"bash","sessionId":"s","command":"true"}`); f.Success || !strings.HasPrefix(f.Error, "bash: ") {
				t.Errorf("without a directory: got success %v and %q, want a failure", f.Success, f.Error)
			}
		}
		c.fails(`{"type":"bash","sessionId":"s","command":"true"}`, tt.want)
		if f := c.ok(`{"type":"health_check"}`); !has(f, `"hasOpenBashCircuit":true`, "Bash command circuit breaker is open") {
			t.Errorf("health: got %s, want an open circuit of bash", f.Raw)
		}
		if f := c.ok(`{"type":"get_metrics"}`); !has(f, `"bashCircuitBreaker":{"enabled":true,`, `"totalRejected":1}`) {
			t.Errorf("metrics: got %s, want one rejection", f.Raw)
		}
	}
}

func TestBashThatTakesTooLongOpensItsCircuit(t *testing.T) {
	c := newShell(t, pi.Options{
		Commands: command.Options{PromptTimeout: 50 * time.Millisecond},
		Breakers: command.Breakers{BashSession: command.Breaker{Failures: 1}},
	})
	if f := c.do(bashFrame("", "sleep 1000")); !f.TimedOut {
		t.Errorf("got %s, want a timeout", f.Raw)
	}
	c.ok(`{"type":"set_session_name","sessionId":"s","name":"n"}`) // waits in the lane for the end of the program
	c.fails(bashFrame("", "true"), "Bash circuit breaker open for session s: Circuit open for bash_session:s (recovery in 30s)")
	if f := c.ok(`{"type":"get_metrics"}`); !has(f, `"totalTimeouts":1,"totalRejected":1}`) {
		t.Errorf("metrics: got %s, want one timeout and one rejection", f.Raw)
	}
}
