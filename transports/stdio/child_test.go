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

// child is what the test binary does as a child process.
func child(play string) {
	in := bufio.NewScanner(os.Stdin)
	switch play {
	case "echo":
		fmt.Fprintln(os.Stderr, "I am an echo")
		for in.Scan() {
			fmt.Fprintln(os.Stdout, in.Text())
		}
	case "crash":
		in.Scan()
		fmt.Fprintln(os.Stdout, "last words")
		os.Exit(3)
	case "lazy": // does not care about the end of its stdin
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGTERM)
		fmt.Fprintln(os.Stdout, "ready")
		<-asked
	case "stubborn": // nor about SIGTERM
		signal.Ignore(syscall.SIGTERM)
		fmt.Fprintln(os.Stdout, "ready")
		select {}
	case "parent": // leaves a child of its own behind, which holds its stdout
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), role+"=stubborn")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		fmt.Fprintln(os.Stdout, cmd.Process.Pid)
		in.Scan()
	case "burst": // says much and is gone before anybody listens
		fmt.Fprintln(os.Stdout, strings.Repeat("x", 30_000))
		fmt.Fprint(os.Stdout, "the end")
	case "mute": // says that it has nothing more to say, and stays
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

func play(part string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	// The race detector has a process linger for a second unless it is told not to.
	cmd.Env = append(os.Environ(), role+"="+part, "GORACE=atexit_sleep_ms=0")
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

func TestAChildProcessIsSpokenToByLines(t *testing.T) {
	var stderr bytes.Buffer
	cmd := play("echo")
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
		t.Errorf("stderr: got %q, want it handed over", got)
	}
	if c.PID() == 0 || alive(c.PID()) {
		t.Errorf("process %d: got it alive, want it reaped", c.PID())
	}
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestADeadChildIsNoticedAndSaidToBeDead(t *testing.T) {
	c := start(t, play("crash"), stdio.ChildOptions{})
	_ = c.Send(t.Context(), []byte("die"))
	if got, err := receive(c); got != "last words" {
		t.Errorf("received: got %q %v, want the last words", got, err)
	}
	_, err := receive(c)
	var r *link.Reason
	if !errors.As(err, &r) || r.Cause != link.PeerGone || !strings.Contains(r.Text, "exit status 3") {
		t.Errorf("then: got %v, want peer gone with exit status 3", err)
	}
}

func TestAChildThatExitsWithSuccessEndsInGoodOrderWithAllItSaid(t *testing.T) {
	c := start(t, play("burst"), stdio.ChildOptions{})
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

func TestAChildThatClosesItsStdoutHasEndedItsSide(t *testing.T) {
	c := start(t, play("mute"), stdio.ChildOptions{})
	if _, err := receive(c); !errors.Is(err, io.EOF) {
		t.Errorf("received: got %v, want EOF", err)
	}
	if !alive(c.PID()) {
		t.Error("the process: got it dead, want it left alone")
	}
}

func TestADeadChildIsNoticedThoughItsStdoutIsHeldOpen(t *testing.T) {
	c := start(t, play("parent"), stdio.ChildOptions{})
	pid, err := receive(c)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := receive(c); got != "ready" {
		t.Errorf("the grandchild: got %q, want ready", got)
	}
	_ = c.Send(t.Context(), []byte("exit"))
	if _, err := receive(c); !errors.Is(err, io.EOF) {
		t.Errorf("after the exit of process %d: got %v, want EOF though process %s holds on", c.PID(), err, pid)
	}
	_ = c.Close(link.Reason{})
	var n int
	_, _ = fmt.Sscan(pid, &n)
	awaitDeath(t, n)
}

// awaitDeath waits for the end of a process that is not ours to reap.
func awaitDeath(t *testing.T, pid int) {
	t.Helper()
	deadline := time.After(10 * time.Second)
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

func TestAChildThatDoesNotLeaveIsAskedAndThenKilled(t *testing.T) {
	for _, tt := range []struct{ part, want string }{
		{"lazy", "exit in good order"},
		{"stubborn", "signal: killed"},
	} {
		t.Run(tt.part, func(t *testing.T) {
			cmd := play(tt.part)
			opts := stdio.ChildOptions{Leave: 20 * time.Millisecond, Term: 100 * time.Millisecond}
			if tt.part == "lazy" {
				opts.Term = time.Minute
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
			got := "exit in good order"
			if s := cmd.ProcessState; !s.Success() {
				got = s.String()
			}
			if got != tt.want {
				t.Errorf("end of the process: got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestWhenItsContextEndsTheChildIsClosed(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c, err := stdio.Command(ctx, play("stubborn"), stdio.ChildOptions{Leave: time.Millisecond, Term: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	<-c.Exited()
	if _, err := stdio.Command(ctx, play("echo"), stdio.ChildOptions{}); err != nil {
		t.Errorf("Command with a context that has ended: got %v, want a child that is closed at once", err)
	}
}

func TestAProgramThatIsNotThereIsAnError(t *testing.T) {
	if _, err := stdio.Command(t.Context(), exec.Command("/no/such/program"), stdio.ChildOptions{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Command: got %v, want that it does not exist", err)
	}
}

func TestStdCarriesLinesOverOurOwnStdinAndStdout(t *testing.T) {
	var stderr bytes.Buffer
	cmd := play("std")
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
	cmd := play("std")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _, _ = in.Close(), out.Close(), theirOut.Close()
	_, _ = io.WriteString(theirIn, "anybody there?\n")
	if err := cmd.Wait(); err != nil || stderr.String() != "lost: true\n" {
		t.Errorf("with nobody at its stdout: got %v and %q, want it to live and say that it lost it", err, stderr.String())
	}
	_ = theirIn.Close()
}
