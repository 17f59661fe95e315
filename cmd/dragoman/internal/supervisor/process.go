package supervisor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/procgroup"
	"github.com/dragoman-hub/dragoman/transports/stdio"
)

// The variables that every child process gets beside [procgroup.SystemEnv], if the hub has them.
var passedOn = []string{"PATH", "HOME", "LANG", "TMPDIR"}

// The bounds of what a process writes on stderr.
const (
	maxStderrLine = 2 << 10
	stderrTail    = 1 << 10
	// maxStderrLines is how many lines of one process are logged.
	maxStderrLines = 10_000
)

// Launcher starts child processes. The zero Launcher logs nothing and has no guard.
type Launcher struct {
	// Log gets what processes write on stderr; nil discards it.
	Log *slog.Logger
	// Guard ends the processes if this program is killed; nil for none.
	Guard *Guard
	// Environ is the environment that Process.Env passes on; nil is that of this program.
	Environ []string
}

// environment returns the environment of a process.
func (l *Launcher) environment(p config.Process) []string {
	ours := l.Environ
	if ours == nil {
		ours = os.Environ()
	}
	env := []string{} // nil would be everything
	add := func(name string) {
		for _, v := range ours {
			if n, _, _ := strings.Cut(v, "="); procgroup.SameEnv(n, name) {
				env = append(env, v)
			}
		}
	}
	for _, name := range slices.Concat(passedOn, procgroup.SystemEnv) {
		add(name)
	}
	for _, v := range p.Env {
		if strings.Contains(v, "=") {
			env = append(env, v)
		} else {
			add(v)
		}
	}
	return l.Guard.Mark(env)
}

// directory returns the absolute working directory of a process.
func directory(p config.Process) (string, error) {
	return filepath.Abs(p.Dir)
}

// startError says why a process cannot be started, and what to do.
type startError struct {
	member, text string // the member of the settings, and what is wrong with it
	err          error
}

// Error implements error.
func (e *startError) Error() string { return e.member + " " + e.text }

// Unwrap returns the cause.
func (e *startError) Unwrap() error { return e.err }

func noDirectory(path string, err error) error {
	return &startError{"cwd", fmt.Sprintf("%s: %s; make the directory, or name another", path, err), err}
}

func noProgram(name string, err error) error {
	text := fmt.Sprintf("%s cannot be run: %s", name, err)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		text = name + " is not found in PATH: install it, or write its whole path"
	case errors.Is(err, fs.ErrNotExist):
		text = name + " does not exist: write its whole path, or one relative to cwd"
	case errors.Is(err, fs.ErrPermission):
		text = name + " is not executable: run chmod +x on it, or name its interpreter first"
	}
	return &startError{"command", text, err}
}

// command returns a command that is not started. Its program is looked up in the PATH of the
// process.
func (l *Launcher) command(ctx context.Context, p config.Process, more ...string) (*exec.Cmd, error) {
	dir, err := directory(p)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return nil, noDirectory(dir, errors.Unwrap(err))
	case !info.IsDir():
		return nil, noDirectory(dir, syscall.ENOTDIR)
	}
	env := l.environment(p)
	program, err := find(p.Command[0], dir, env)
	if err != nil {
		return nil, noProgram(p.Command[0], err)
	}
	cmd := exec.CommandContext(ctx, program, append(p.Command[1:len(p.Command):len(p.Command)], more...)...) //nolint:gosec // running the command of the settings is the purpose
	cmd.Dir, cmd.Env = dir, env
	return cmd, nil
}

// find returns the path of a program: relative to the working directory of the process, or in the
// PATH of its environment.
func find(program, dir string, env []string) (string, error) {
	if strings.ContainsAny(program, separators) {
		if !filepath.IsAbs(program) {
			program = filepath.Join(dir, program)
		}
		return executable(program)
	}
	for _, in := range filepath.SplitList(procgroup.EnvValue(env, "PATH")) {
		if !filepath.IsAbs(in) {
			continue // as exec.LookPath refuses it
		}
		if at, err := executable(filepath.Join(in, program)); err == nil {
			return at, nil
		}
	}
	return "", exec.ErrNotFound
}

// child is the process of an entry of the settings. It may be started again and again, and
// several may run at once.
type child struct {
	launcher *Launcher
	name     string
	process  config.Process

	// started is called after each start; nil for none.
	started func()

	mu     sync.Mutex
	last   *stdio.Child
	stderr *tail // of the last
}

// said returns the last line on the stderr of the process that was started last.
func (c *child) said() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stderr == nil {
		return ""
	}
	return c.stderr.line()
}

// dial starts the process with more arguments, and returns the connection to it, which owns it.
func (c *child) dial(ctx context.Context, more ...string) (link.Conn[[]byte, []byte], error) {
	return c.dialWith(ctx, nil, more...)
}

// dialWith is dial with variables beside those of the settings.
func (c *child) dialWith(ctx context.Context, env []string, more ...string) (link.Conn[[]byte, []byte], error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	// The end of ctx closes the connection, which gives the process time to end.
	p := c.process
	p.Env = slices.Concat(p.Env, env)
	cmd, err := c.launcher.command(context.WithoutCancel(ctx), p, more...)
	if err != nil {
		return nil, err
	}
	errs := &tail{log: c.launcher.Log, name: c.name}
	cmd.Stderr = errs
	// Starting a process needs a deep stack, which a goroutine of its own does not keep.
	var started *stdio.Child
	done := make(chan struct{})
	go func() {
		defer close(done)
		started, err = stdio.Command(ctx, cmd, stdio.ChildOptions{})
	}()
	if <-done; err != nil {
		return nil, err
	}
	c.launcher.Guard.Watch(started.PID(), started.Exited())
	c.mu.Lock()
	c.last, c.stderr = started, errs
	c.mu.Unlock()
	if c.started != nil {
		c.started()
	}
	return &dialled{Child: started, stderr: errs}, nil
}

// pid returns the id of the process that was started last, if it still runs.
func (c *child) pid() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		return 0
	}
	select {
	case <-c.last.Exited():
		return 0
	default:
		return c.last.PID()
	}
}

// dialled is the connection to a process. The reason for which it ends has the last line that
// the process wrote on stderr.
type dialled struct {
	*stdio.Child
	stderr *tail
}

// Receive implements link.Conn.
func (d *dialled) Receive(ctx context.Context) ([]byte, error) {
	m, err := d.Child.Receive(ctx)
	if errors.Is(err, io.EOF) {
		return nil, &link.Reason{Cause: link.PeerGone, Text: "the process has ended"}
	}
	return m, d.told(err)
}

// Send implements link.Conn.
func (d *dialled) Send(ctx context.Context, m []byte) error {
	return d.told(d.Child.Send(ctx, m))
}

// SendBatch implements link.Batcher.
func (d *dialled) SendBatch(ctx context.Context, ms [][]byte) error {
	return d.told(d.Child.SendBatch(ctx, ms))
}

// told adds the last line on stderr to the end of the process.
func (d *dialled) told(err error) error {
	var gone *link.Reason
	if errors.As(err, &gone) && gone.Cause == link.PeerGone {
		if last := d.stderr.line(); last != "" {
			with := *gone
			if strings.Contains(gone.Text, "signal") {
				with.Text += "; the last line on stderr is" // not the reason
			}
			with.Text += ": " + last
			return &with
		}
	}
	return err
}

// tail logs what a process writes on stderr, line by line, and keeps the end of it.
type tail struct {
	log  *slog.Logger
	name string

	mu       sync.Mutex
	rest     []byte // of a line that has not ended
	last     string
	uncaught string // the last line that names an uncaught error of Node.js
	lines    int
}

// Node.js ends the trace of an uncaught error with its version. The error is before the trace.
const nodeVersion = "Node.js v"

var nodeError = regexp.MustCompile(`^([A-Z]\w*)?Error( \[\w+\])?: `)

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for rest := p; len(rest) > 0; {
		line, after, whole := bytes.Cut(rest, []byte{'\n'})
		if room := maxStderrLine - len(t.rest); room > 0 {
			t.rest = append(t.rest, line[:min(len(line), room)]...)
		}
		if rest = after; whole {
			t.put()
		}
	}
	return len(p), nil
}

// ReadFrom implements io.ReaderFrom, for [io.Copy], whose own buffer would be most of what an
// idle child costs.
func (t *tail) ReadFrom(r io.Reader) (n int64, err error) {
	buf := make([]byte, 512)
	for {
		m, err := r.Read(buf)
		_, _ = t.Write(buf[:m])
		n += int64(m)
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// put ends a line. Callers hold mu.
func (t *tail) put() {
	text := strings.TrimSpace(strings.ToValidUTF8(string(t.rest), "\ufffd"))
	t.rest = t.rest[:0]
	if text == "" {
		return
	}
	if nodeError.MatchString(text) {
		t.uncaught = text
	}
	if t.uncaught == "" || !strings.HasPrefix(text, nodeVersion) {
		t.last = text
	} else {
		t.last = t.uncaught
	}
	t.lines++
	if t.log == nil || t.lines > maxStderrLines {
		return
	}
	if t.lines == maxStderrLines {
		text = fmt.Sprintf("the process wrote %d lines: no more are logged", maxStderrLines)
	}
	t.log.Info("stderr", "child", t.name, "text", text)
}

// line returns the last line, or the error that Node.js ended for, cut to stderrTail.
func (t *tail) line() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := t.last
	if len(t.rest) > 0 {
		text = strings.TrimSpace(strings.ToValidUTF8(string(t.rest), "\ufffd"))
	}
	for len(text) > stderrTail {
		_, n := utf8.DecodeLastRuneInString(text[:stderrTail])
		text = text[:stderrTail-n]
	}
	return text
}
