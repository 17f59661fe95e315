package stdio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/procgroup"
)

// Defaults of [ChildOptions].
const (
	DefaultExitTimeout = time.Second
	DefaultTermTimeout = 2 * time.Second
)

// lastOutput is how long the output of an exited process is still read if another process
// holds it open, and how long Receive waits for the exit after the end of the output.
const lastOutput = time.Second

// ChildOptions are the settings of a child process. A zero field means its default.
type ChildOptions struct {
	Options

	// ExitTimeout is how long the process may take to exit after the end of its stdin before it
	// gets SIGTERM, or is killed on Windows. 0 means [DefaultExitTimeout].
	ExitTimeout time.Duration
	// TermTimeout is how long it may take after SIGTERM before it is killed. 0 means
	// [DefaultTermTimeout].
	TermTimeout time.Duration
}

// Child is a connection to a child process over its stdin and stdout.
type Child struct {
	*Conn
	cmd    *exec.Cmd
	opts   ChildOptions
	output output
	exited chan struct{}
	err    error // of the exit; read after exited
	ending sync.Once
	// read is closed once Receive has returned the end of the process.
	read     chan struct{}
	readOnce sync.Once
}

// Command starts cmd and returns the connection to it. cmd.Stdin and cmd.Stdout must be
// unset; cmd.Stderr gets its stderr, nil discards it. The process leads a process group of
// its own, which Close ends as a whole; on Windows Close ends the process alone. The end of
// ctx closes the Child.
//
// The process is reaped as soon as it exits, whether Close is called or not.
func Command(ctx context.Context, cmd *exec.Cmd, opts ChildOptions) (*Child, error) {
	if cmd.Stdin != nil || cmd.Stdout != nil {
		return nil, errors.New("start child process: stdin or stdout is taken")
	}
	if opts.ExitTimeout <= 0 {
		opts.ExitTimeout = DefaultExitTimeout
	}
	if opts.TermTimeout <= 0 {
		opts.TermTimeout = DefaultTermTimeout
	}
	theirIn, ourOut, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start child process: %w", err)
	}
	ourIn, theirOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start child process: %w", err), theirIn.Close(), ourOut.Close())
	}
	cmd.Stdin, cmd.Stdout = theirIn, theirOut
	cmd.WaitDelay = lastOutput // for a stderr that another process holds open
	procgroup.Lead(cmd)
	exit := watchExit(cmd)
	err = cmd.Start()
	_ = theirIn.Close()
	_ = theirOut.Close()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start child process: %w", err), ourIn.Close(), ourOut.Close())
	}

	c := &Child{
		Conn:   New(output{ourIn}, ourOut, opts.Options),
		cmd:    cmd,
		opts:   opts,
		output: output{ourIn},
		exited: make(chan struct{}),
		read:   make(chan struct{}),
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close(link.Reason{Cause: link.ShuttingDown}) })
	go c.reap(exit, stop)
	return c, nil
}

// reap waits for the process to exit. Its pipes do not show that: other processes may hold
// them open.
func (c *Child) reap(exit *exitWatch, stop func() bool) {
	exit.wait()
	c.err = c.cmd.Wait()
	if errors.Is(c.err, exec.ErrWaitDelay) {
		c.err = nil // it exited successfully, and another process holds its stderr
	}
	close(c.exited)
	stop()
	_ = c.output.SetReadDeadline(time.Now()) // wakes the reader; see output
}

// output is our end of the stdout of a process.
type output struct{ *os.File }

// Read implements io.Reader. After the exit of the process, the output ends when nothing
// arrives for lastOutput, even if another process holds it open. On Windows, where a pipe has no
// deadline, it ends only when nobody holds it open, or with Close.
func (o output) Read(p []byte) (int, error) {
	n, err := o.File.Read(p)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	_ = o.SetReadDeadline(time.Now().Add(lastOutput))
	n, err = o.File.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = io.EOF
	}
	return n, err
}

// PID returns the process id.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Exited is closed when the process has exited and was reaped.
func (c *Child) Exited() <-chan struct{} { return c.exited }

// Receive implements [link.Conn]. The end of the process is io.EOF if it exited
// successfully, else a *[link.Reason] with its exit status.
func (c *Child) Receive(ctx context.Context) ([]byte, error) {
	m, err := c.Conn.Receive(ctx)
	if !errors.Is(err, io.EOF) {
		return m, err
	}
	defer c.readOnce.Do(func() { close(c.read) })
	t := time.NewTimer(lastOutput)
	defer t.Stop()
	select {
	case <-c.exited:
		if c.err != nil {
			return nil, c.status()
		}
	case <-t.C: // it has closed its output and keeps running
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return nil, io.EOF
}

// status returns why a process that has exited unsuccessfully is gone.
func (c *Child) status() *link.Reason {
	return &link.Reason{Cause: link.PeerGone, Text: "the process ended with " + c.err.Error(), Err: c.err}
}

// Send implements [link.Conn]. What cannot be sent because the process has exited fails with its
// exit status, as Receive does, once everything that it wrote was received.
func (c *Child) Send(ctx context.Context, m []byte) error {
	return c.unsent(ctx, c.Conn.Send(ctx, m))
}

// SendBatch implements [link.Batcher], as Send does.
func (c *Child) SendBatch(ctx context.Context, ms [][]byte) error {
	return c.unsent(ctx, c.Conn.SendBatch(ctx, ms))
}

func (c *Child) unsent(ctx context.Context, err error) error {
	if !brokenPipe(err) {
		return err
	}
	t := time.NewTimer(2 * lastOutput) // that of Receive, and for the process that only closes its stdin
	defer t.Stop()
	select {
	case <-c.read:
	case <-t.C:
	case <-ctx.Done():
		return err
	}
	select {
	case <-c.exited:
		if c.err != nil {
			return c.status()
		}
	default:
	}
	return err
}

// Close implements [link.Conn]. It closes the stdin of the process, which should then exit;
// after ExitTimeout it sends SIGTERM to the process group, and after TermTimeout SIGKILL. On
// Windows it ends the process itself after ExitTimeout. It returns when the process was reaped.
func (c *Child) Close(r link.Reason) error {
	c.ending.Do(func() {
		c.closing.Store(true)
		_ = c.w.Close()
		if !c.gone(c.opts.ExitTimeout) {
			_ = procgroup.Terminate(c.cmd.Process) // it may have ended
			c.gone(c.opts.TermTimeout)
		}
		_ = procgroup.Kill(c.cmd.Process) // and the rest of its group
		<-c.exited
		_ = c.Conn.Close(r)
	})
	return nil
}

// gone waits for the exit for at most d.
func (c *Child) gone(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c.exited:
		return true
	case <-t.C:
		return false
	}
}
