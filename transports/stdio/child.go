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
)

// The defaults of [ChildOptions].
const (
	DefaultLeave = time.Second
	DefaultTerm  = 2 * time.Second
)

// lastOutput is how long the output of a process that has exited is still read,
// if somebody else holds it open, and how long an exit may take to follow the end
// of the output before that counts as the end.
const lastOutput = time.Second

// ChildOptions say how a child process is ended. The zero options are the
// defaults.
type ChildOptions struct {
	Options

	// Leave is how long the process may take to exit after the end of its stdin,
	// before it gets SIGTERM. 0 means [DefaultLeave].
	Leave time.Duration
	// Term is how long it may take after that, before it is killed. 0 means
	// [DefaultTerm].
	Term time.Duration
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
}

// Command starts cmd and returns the connection to it. cmd.Stdin and cmd.Stdout
// must be unset; cmd.Stderr is where its stderr goes, nil discards it. The process
// becomes the leader of a process group of its own, which Close ends as a whole.
// When ctx ends the Child is closed.
//
// The process is reaped as soon as it exits, whether Close is called or not.
func Command(ctx context.Context, cmd *exec.Cmd, opts ChildOptions) (*Child, error) {
	if cmd.Stdin != nil || cmd.Stdout != nil {
		return nil, errors.New("start child process: stdin or stdout is taken")
	}
	if opts.Leave <= 0 {
		opts.Leave = DefaultLeave
	}
	if opts.Term <= 0 {
		opts.Term = DefaultTerm
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
	cmd.WaitDelay = lastOutput // for a stderr that somebody else holds open
	ownGroup(cmd)
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
	}
	unbind := context.AfterFunc(ctx, func() { _ = c.Close(link.Reason{Cause: link.ShuttingDown}) })
	go c.reap(unbind)
	return c, nil
}

// reap waits for the process to exit, which its pipes alone do not tell: they may
// be held open by others.
func (c *Child) reap(unbind func() bool) {
	c.err = c.cmd.Wait()
	if errors.Is(c.err, exec.ErrWaitDelay) {
		c.err = nil // it exited with success, and others hold its stderr
	}
	close(c.exited)
	unbind()
	_ = c.output.SetReadDeadline(time.Now()) // wakes the reader; see output
}

// output is our end of the stdout of a process.
type output struct{ *os.File }

// Read implements io.Reader. Once the process has exited, the output has ended
// when nothing more comes of it for a while, whoever holds it open.
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

// Exited is closed once the process has exited and been reaped.
func (c *Child) Exited() <-chan struct{} { return c.exited }

// Receive implements [link.Conn]. The end of the process is io.EOF if it exited
// with success, and else a *[link.Reason] that says how it ended.
func (c *Child) Receive(ctx context.Context) ([]byte, error) {
	m, err := c.Conn.Receive(ctx)
	if !errors.Is(err, io.EOF) {
		return m, err
	}
	t := time.NewTimer(lastOutput)
	defer t.Stop()
	select {
	case <-c.exited:
		if c.err != nil {
			return nil, &link.Reason{Cause: link.PeerGone, Text: "the process ended with " + c.err.Error(), Err: c.err}
		}
	case <-t.C: // it lives on, and has nothing more to say
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return nil, io.EOF
}

// Close implements [link.Conn]. It ends the stdin of the process, which a good
// one takes as its cue to exit; then come SIGTERM and at last SIGKILL to its
// group, each after its time. It returns once the process has been reaped.
func (c *Child) Close(r link.Reason) error {
	c.ending.Do(func() {
		c.closing.Store(true)
		_ = c.w.Close()
		if !c.gone(c.opts.Leave) {
			terminate(c.cmd.Process)
			c.gone(c.opts.Term)
		}
		kill(c.cmd.Process) // and whoever of its group is left
		<-c.exited
		_ = c.Conn.Close(r)
	})
	return nil
}

// gone waits so long for the exit.
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
