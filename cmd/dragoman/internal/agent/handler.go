package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/procgroup"
)

// The bounds of a command that answers requests.
const (
	stderrTail = 4 << 10
	killDelay  = 2 * time.Second
	maxChunk   = 16 << 10
)

// Program is what a handler runs.
type Program struct {
	// Name is for messages.
	Name string
	// Command returns the command for one request, which ends with the context. Its Env is set.
	Command func(ctx context.Context) (*exec.Cmd, error)
	// Started is told of each process and its group; exited is closed when it has ended. Nil for
	// nobody.
	Started func(pid int, exited <-chan struct{})
}

// ProgramOf returns the Program of a command line, which gets all our variables.
func ProgramOf(argv []string) Program {
	return Program{Name: argv[0], Command: func(ctx context.Context) (*exec.Cmd, error) {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Env = os.Environ()
		return cmd, nil
	}}
}

// Handler answers requests by running a command: the content is its stdin, its stdout is
// streamed as text, and a non-zero exit is a failure with the end of its stderr. What it has left in
// the background has 2 s to finish its output. Each request
// has its own process group, which is killed when the request is cancelled; on Windows the
// command alone is, and what it has started goes on. The rest of a
// request is JSON in the file that DRAGOMAN_REQUEST names. Failed runs are logged without
// their reason, which is on stderr already.
func Handler(p Program, stderr io.Writer, log *slog.Logger) core.Handler {
	return func(ctx context.Context, r core.Request, say func(core.Body) error) error {
		cmd, err := p.Command(ctx)
		if err != nil {
			return core.NewFault(core.CodeInternal, "cannot run %s: %s", p.Name, err)
		}
		procgroup.Lead(cmd)
		cmd.Cancel = func() error { return procgroup.Terminate(cmd.Process) }
		cmd.WaitDelay = killDelay
		input, frames := requestText(r), frame.TurnOf(ctx)
		cmd.Stdin = strings.NewReader(input)
		cmd.Env = append(cmd.Env, "DRAGOMAN_THREAD="+string(r.Thread))
		if path, err := requestFile(r); err != nil {
			return err
		} else if path != "" {
			defer os.Remove(path) //nolint:errcheck // a file of the temporary directory
			cmd.Env = append(cmd.Env, "DRAGOMAN_REQUEST="+path)
		}
		out := &textWriter{say: say, frames: frames, invalid: sync.OnceFunc(func() {
			fmt.Fprintf(stderr, "dragoman: %s wrote invalid UTF-8: the invalid bytes are replaced\n", p.Name)
		})}
		cmd.Stdout = out
		errs := &Tail{Also: stderr}
		cmd.Stderr = errs

		at := time.Now()
		if err := cmd.Start(); err != nil {
			log.Warn("the command cannot be run", "command", p.Name, "error", err)
			return core.NewFault(core.CodeInternal, "cannot run %s: %s", p.Name, err)
		}
		if frames != nil {
			frames.Sent(frames.Telling(ctx, core.KindAssigned), at, []byte(input))
		}
		exited := make(chan struct{})
		if p.Started != nil {
			p.Started(cmd.Process.Pid, exited)
		}
		err = cmd.Wait()
		if errors.Is(err, exec.ErrWaitDelay) {
			err = nil // it has succeeded, and left a process that holds its output
		}
		close(exited)
		_ = procgroup.Kill(cmd.Process) // remaining child processes
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case out.err != nil:
			return out.err
		case err != nil:
			log.Warn("the command failed", "command", p.Name, "error", err, "thread", r.Thread)
			text := p.Name + ": " + err.Error()
			if tail := errs.Text(); tail != "" {
				text += ": " + tail
			}
			return core.NewFault(core.CodeInternal, "%s", text)
		}
		return out.flush()
	}
}

// requestText returns the content of a request, or the topic and data of a notice.
func requestText(r core.Request) string {
	if r.Content == "" && r.Notice != nil {
		return strings.TrimSpace(r.Notice.Topic+" "+string(r.Notice.Data)) + "\n"
	}
	return r.Content
}

// requestFile writes a request to a file and returns its path, "" if it has nothing but its
// content.
func requestFile(r core.Request) (string, error) {
	if len(r.Data) == 0 && len(r.Context) == 0 && len(r.Attachments) == 0 && len(r.History) == 0 && r.Notice == nil {
		return "", nil
	}
	f, err := os.CreateTemp("", "dragoman-request-*.json")
	if err != nil {
		return "", fmt.Errorf("writing the request for the command: %w", err)
	}
	err = json.NewEncoder(f).Encode(r)
	return f.Name(), errors.Join(err, f.Close())
}

// textWriter passes on what is written to it as text, without splitting a character.
type textWriter struct {
	say     func(core.Body) error
	invalid func() // called when bytes are not UTF-8
	frames  *frame.Turn
	rest    []byte // the beginning of a character
	err     error
}

// Write implements io.Writer.
func (s *textWriter) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	s.frames.Received(p)
	text := slices.Concat(s.rest, p)
	cut := len(text)
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if b := text[len(text)-i]; utf8.RuneStart(b) {
			if !utf8.FullRune(text[len(text)-i:]) {
				cut = len(text) - i
			}
			break
		}
	}
	s.rest = bytes.Clone(text[cut:])
	for piece := range chunks(s.text(text[:cut])) {
		if s.err = s.say(core.Text{Text: piece}); s.err != nil {
			return 0, s.err
		}
	}
	return len(p), nil
}

// flush passes on what is left at the end.
func (s *textWriter) flush() error {
	if len(s.rest) == 0 {
		return nil
	}
	return s.say(core.Text{Text: s.text(s.rest)})
}

// text makes bytes valid UTF-8.
func (s *textWriter) text(b []byte) string {
	if !utf8.Valid(b) && s.invalid != nil {
		s.invalid()
	}
	return strings.ToValidUTF8(string(b), "\ufffd")
}

// chunks splits a long text between characters.
func chunks(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for len(text) > 0 {
			n := min(len(text), maxChunk)
			for n < len(text) && !utf8.RuneStart(text[n]) {
				n--
			}
			if !yield(text[:n]) {
				return
			}
			text = text[n:]
		}
	}
}

// Tail passes on what is written to it and keeps the end.
type Tail struct {
	Also io.Writer
	end  []byte
}

// Write implements io.Writer.
func (t *Tail) Write(p []byte) (int, error) {
	t.end = append(t.end, p...)
	if n := len(t.end); n > stderrTail {
		t.end = append(t.end[:0], t.end[n-stderrTail:]...)
	}
	return t.Also.Write(p)
}

// Text returns the end of what was written.
func (t *Tail) Text() string { return strings.ToValidUTF8(strings.TrimSpace(string(t.end)), "\ufffd") }
