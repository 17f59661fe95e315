//go:build unix

package stdio_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/stdio"
)

// child is the main function of the test binary as a child process.
func child(mode string) {
	in := bufio.NewScanner(os.Stdin)
	switch mode {
	case "echo":
		fmt.Fprintln(os.Stderr, "I am an echo")
		for in.Scan() {
			fmt.Fprintln(os.Stdout, in.Text())
		}
	case "crash":
		in.Scan()
		fmt.Fprintln(os.Stdout, "last line")
		os.Exit(3)
	case "lazy": // ignores the end of its stdin
		terminated := make(chan os.Signal, 1)
		signal.Notify(terminated, syscall.SIGTERM)
		fmt.Fprintln(os.Stdout, "ready")
		<-terminated
	case "stubborn": // ignores SIGTERM too
		signal.Ignore(syscall.SIGTERM)
		fmt.Fprintln(os.Stdout, "ready")
		select {}
	case "parent": // leaves a child that holds its stdout open
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), modeVariable+"=stubborn")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		fmt.Fprintln(os.Stdout, cmd.Process.Pid)
		in.Scan()
	case "burst": // writes much and exits before anything is read
		fmt.Fprintln(os.Stdout, strings.Repeat("x", 30_000))
		fmt.Fprint(os.Stdout, "the end")
	case "mute": // closes its stdout and keeps running
		_ = os.Stdout.Close()
		in.Scan()
	case "std": // an echo through Std, which survives the loss of its stdout
		c, err := stdio.Std(stdio.Options{})
		if err != nil {
			panic(err)
		}
		for {
			m, err := c.Receive(context.Background())
			if err != nil {
				_ = c.Close(link.Reason{})
				fmt.Fprintln(os.Stderr, "end:", err)
				return
			}
			if err := c.Send(context.Background(), m); err != nil {
				fmt.Fprintln(os.Stderr, "lost:", errors.Is(err, syscall.EPIPE))
				return
			}
		}
	}
}

func childCommand(mode string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	// With the race detector, a process waits for a second at exit by default.
	cmd.Env = append(os.Environ(), modeVariable+"="+mode, "GORACE=atexit_sleep_ms=0")
	return cmd
}

// start starts a child process. It is closed with the test.
func start(tb testing.TB, cmd *exec.Cmd, opts stdio.ChildOptions) *stdio.Child {
	tb.Helper()
	c, err := stdio.Command(context.Background(), cmd, opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close(link.Reason{}) })
	return c
}

func TestTheExitOfEveryProcessIsNoticed(t *testing.T) {
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 50 {
				c, err := stdio.Command(t.Context(), exec.Command("true"), stdio.ChildOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				select {
				case <-c.Exited():
				case <-time.After(time.Minute):
					t.Error("the exit of a process was not noticed")
					return
				}
				if err := c.Close(link.Reason{Cause: link.Normal}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}

func TestAChildProcessExchangesLines(t *testing.T) {
	var stderr bytes.Buffer
	cmd := childCommand("echo")
	cmd.Stderr = &stderr
	c := start(t, cmd, stdio.ChildOptions{})
	for _, m := range []string{"one", "", "three"} {
		if err := c.Send(t.Context(), []byte(m)); err != nil {
			t.Fatal(err)
		}
		if got, err := receive(c); got != m || err != nil {
			t.Errorf("received: got %q %v, want %q", got, err, m)
		}
	}
	_ = c.Close(link.Reason{Cause: link.Normal})
	<-c.Exited()
	if got := stderr.String(); got != "I am an echo\n" {
		t.Errorf("stderr: got %q, want it passed on", got)
	}
	if c.PID() == 0 || alive(c.PID()) {
		t.Errorf("process %d: got it alive, want it reaped", c.PID())
	}
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestTheEndOfAChildIsReportedWithItsExitStatus(t *testing.T) {
	c := start(t, childCommand("crash"), stdio.ChildOptions{})
	_ = c.Send(t.Context(), []byte("die"))
	if got, err := receive(c); got != "last line" {
		t.Errorf("received: got %q %v, want the last line", got, err)
	}
	_, err := receive(c)
	var r *link.Reason
	if !errors.As(err, &r) || r.Cause != link.PeerGone || !strings.Contains(r.Text, "exit status 3") {
		t.Errorf("then: got %v, want peer gone with exit status 3", err)
	}
}

func TestAllOutputOfAChildThatExitsSuccessfullyIsReceived(t *testing.T) {
	c := start(t, childCommand("burst"), stdio.ChildOptions{})
	<-c.Exited() // and reaped, before the first byte is read
	if got, err := receive(c); len(got) != 30_000 {
		t.Errorf("received: got %d bytes %v, want 30000", len(got), err)
	}
	if got, err := receive(c); got != "the end" {
		t.Errorf("then: got %q %v, want the end", got, err)
	}
	if _, err := receive(c); !errors.Is(err, io.EOF) {
		t.Errorf("then: got %v, want EOF", err)
	}
}

func TestAChildThatClosesItsStdoutIsNotKilled(t *testing.T) {
	c := start(t, childCommand("mute"), stdio.ChildOptions{})
	if _, err := receive(c); !errors.Is(err, io.EOF) {
		t.Errorf("received: got %v, want EOF", err)
	}
	if !alive(c.PID()) {
		t.Error("the process: got it dead, want it running")
	}
}

func TestTheEndOfAChildIsNoticedAlthoughItsStdoutIsHeldOpen(t *testing.T) {
	c := start(t, childCommand("parent"), stdio.ChildOptions{})
	pid, err := receive(c)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := receive(c); got != "ready" {
		t.Errorf("the grandchild: got %q, want ready", got)
	}
	_ = c.Send(t.Context(), []byte("exit"))
	if _, err := receive(c); !errors.Is(err, io.EOF) {
		t.Errorf("after the exit of process %d: got %v, want EOF although process %s holds its stdout", c.PID(), err, pid)
	}
	_ = c.Close(link.Reason{})
	var n int
	_, _ = fmt.Sscan(pid, &n)
	awaitExit(t, n)
}

// awaitExit waits for the end of a process that is not our child.
func awaitExit(t *testing.T, pid int) {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("process %d: got it alive, want the whole group ended", pid)
		}
	}
}

func TestAChildThatDoesNotExitIsTerminatedAndThenKilled(t *testing.T) {
	for _, tt := range []struct{ mode, want string }{
		{"lazy", "success"},
		{"stubborn", "signal: killed"},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			cmd := childCommand(tt.mode)
			opts := stdio.ChildOptions{ExitTimeout: 20 * time.Millisecond, TermTimeout: 100 * time.Millisecond}
			if tt.mode == "lazy" {
				opts.TermTimeout = time.Minute
			}
			c := start(t, cmd, opts)
			if got, err := receive(c); got != "ready" {
				t.Fatalf("received: got %q %v, want ready", got, err)
			}
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() { _ = c.Close(link.Reason{Cause: link.Normal}) })
			}
			wg.Wait()
			got := "success"
			if s := cmd.ProcessState; !s.Success() {
				got = s.String()
			}
			if got != tt.want {
				t.Errorf("end of the process: got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestAChildIsClosedWhenItsContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c, err := stdio.Command(ctx, childCommand("stubborn"), stdio.ChildOptions{ExitTimeout: time.Millisecond, TermTimeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	<-c.Exited()
	if _, err := stdio.Command(ctx, childCommand("echo"), stdio.ChildOptions{}); err != nil {
		t.Errorf("Command with a context that has ended: got %v, want a child that is closed at once", err)
	}
}

func TestAMissingProgramIsAnError(t *testing.T) {
	if _, err := stdio.Command(t.Context(), exec.Command("/no/such/program"), stdio.ChildOptions{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Command: got %v, want ErrNotExist", err)
	}
}

func TestStdExchangesLinesOverStdinAndStdout(t *testing.T) {
	var stderr bytes.Buffer
	cmd := childCommand("std")
	cmd.Stderr = &stderr
	c := start(t, cmd, stdio.ChildOptions{})
	_ = c.Send(t.Context(), []byte("hello"))
	if got, err := receive(c); got != "hello" {
		t.Errorf("received: got %q %v, want hello", got, err)
	}
	_ = c.Close(link.Reason{})
	if got := stderr.String(); got != "end: EOF\n" {
		t.Errorf("the end: got %q, want EOF", got)
	}
}

func TestTheLossOfStdoutIsAnErrorAndNotTheEndOfTheProcess(t *testing.T) {
	in, theirIn, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	theirOut, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := childCommand("std")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _, _ = in.Close(), out.Close(), theirOut.Close()
	_, _ = io.WriteString(theirIn, "hello?\n")
	if err := cmd.Wait(); err != nil || stderr.String() != "lost: true\n" {
		t.Errorf("with a closed stdout: got %v and %q, want a clean exit that reports the loss", err, stderr.String())
	}
	_ = theirIn.Close()
}

func TestWhatCannotBeSentToAnExitedChildFailsWithItsStatusAfterItsOutput(t *testing.T) {
	c := start(t, exec.Command("sh", "-c", "exec 0<&-; echo last; exit 3"), stdio.ChildOptions{})
	<-c.Exited()
	sent := make(chan error, 1)
	go func() { sent <- c.Send(t.Context(), []byte("hello")) }()
	if m, err := c.Receive(t.Context()); string(m) != "last" || err != nil {
		t.Fatalf("got %q and %v, want the last line", m, err)
	}
	select {
	case err := <-sent:
		t.Errorf("Send has returned %v, want it to wait until the end was received", err)
	default:
	}
	_, end := c.Receive(t.Context())
	for what, err := range map[string]error{"Receive": end, "Send": <-sent} {
		var gone *link.Reason
		if !errors.As(err, &gone) || gone.Cause != link.PeerGone || gone.Text != "the process ended with exit status 3" {
			t.Errorf("%s: got %v, want the exit status", what, err)
		}
	}
}
