//go:build unix

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// readerPatience is how long one command of a page may take, or what it shows may take to come.
const readerPatience = time.Minute

// terminal is a shell that a test types into.
type terminal struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser // of the main one, and of those that are typed into
	ended chan struct{}

	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{} // closed when there is more text
	runs    int
}

// input is what a shell reads.
type input int

const (
	noStdin input = iota
	aPipe
	aPerson // at a terminal
)

// newTerminal starts a shell in dir, in a process group of its own.
func newTerminal(t *testing.T, dir string, env []string, in input, args ...string) *terminal {
	t.Helper()
	term := &terminal{cmd: exec.Command("/bin/sh", args...), ended: make(chan struct{}), changed: make(chan struct{})}
	term.cmd.Dir = dir
	term.cmd.Env = append(withoutVariables(os.Environ()), runsProgram+"=1", "HOME="+dir, "GORACE=atexit_sleep_ms=0")
	term.cmd.Env = append(term.cmd.Env, env...)
	term.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	term.cmd.Stdout, term.cmd.Stderr = term, term
	term.cmd.WaitDelay = 10 * time.Second // for what still holds its output
	var printed sync.WaitGroup            // all of it, by a person's terminal
	switch in {
	case aPipe:
		var err error
		if term.stdin, err = term.cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
	case aPerson:
		person, programs := openTerminal(t)
		defer programs.Close()
		term.stdin = person
		term.cmd.Stdin, term.cmd.Stdout, term.cmd.Stderr = programs, programs, programs
		printed.Go(func() { _, _ = io.Copy(term, person) }) // until no program has it any more
	}
	if err := term.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = term.cmd.Wait() // an interrupted shell ends with a status
		printed.Wait()
		close(term.ended)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-term.cmd.Process.Pid, syscall.SIGKILL) // processes that are left
		<-term.ended
	})
	return term
}

// startTerminal starts a shell that runs a script until it is stopped.
func startTerminal(t *testing.T, dir, script string, env []string, in input) *terminal {
	t.Helper()
	return newTerminal(t, dir, env, in, "-ec", script)
}

// newMainTerminal starts a shell to which one command after the other is given.
func newMainTerminal(t *testing.T, dir string, env []string) *terminal {
	t.Helper()
	return newTerminal(t, dir, env, aPipe, "-e")
}

// Write implements io.Writer.
func (term *terminal) Write(p []byte) (int, error) {
	term.mu.Lock()
	defer term.mu.Unlock()
	close(term.changed)
	term.changed = make(chan struct{})
	return term.text.Write(p)
}

// output returns what was printed so far, and what is closed when there is more.
func (term *terminal) output() (text string, more <-chan struct{}) {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.text.String(), term.changed
}

// until waits until the output is as wanted. The test fails if it never is.
func (term *terminal) until(t *testing.T, at, what string, is func(text string) bool) {
	t.Helper()
	late := time.After(readerPatience)
	for {
		text, more := term.output()
		if is(text) {
			return
		}
		select {
		case <-more:
		case <-term.ended:
			if text, _ := term.output(); !is(text) {
				t.Fatalf("%s: the shell ended with %v and printed\n%swant %s", at, term.cmd.ProcessState, text, what)
			}
			return
		case <-late:
			t.Fatalf("%s: within %s it printed\n%swant %s", at, readerPatience, text, what)
		}
	}
}

// await waits for what a page shows.
func (term *terminal) await(t *testing.T, s snippet) {
	t.Helper()
	term.until(t, s.at, "\n"+s.text, func(text string) bool { return shows(s.text, text) })
}

// run has the main shell run the commands of a snippet, all of which must succeed, and returns what
// they printed.
func (term *terminal) run(t *testing.T, s snippet) string {
	t.Helper()
	term.runs++
	file := filepath.Join(term.cmd.Dir, ".snippet")
	if err := os.WriteFile(file, []byte(s.text), 0o600); err != nil {
		t.Fatal(err)
	}
	before, _ := term.output()
	end := fmt.Sprintf("\x1e%d\x1e", term.runs)
	if _, err := fmt.Fprintf(term.stdin, ". ./.snippet </dev/null\nprintf '\\036%d\\036'\n", term.runs); err != nil {
		t.Fatalf("%s: %v", s.at, err)
	}
	term.until(t, s.at, "that all of\n"+s.text+"succeeds", func(text string) bool { return strings.HasSuffix(text, end) })
	text, _ := term.output()
	return strings.TrimSuffix(text[len(before):], end)
}

// end closes the input of the main shell and waits for its end.
func (term *terminal) end(t *testing.T) {
	t.Helper()
	term.complained(t, " ERR ", `"level":"error"`)
	if err := term.stdin.Close(); err != nil {
		t.Error(err)
	}
	term.wait(t)
}

// stop interrupts the script, as Ctrl-C does, and waits for its end.
func (term *terminal) stop(t *testing.T) {
	t.Helper()
	term.complained(t, " ERR ", `"level":"error"`)          // the last hubs of a cluster may complain that they are alone
	_ = syscall.Kill(-term.cmd.Process.Pid, syscall.SIGINT) // it may have ended
	term.wait(t)
}

// wait waits for the end of the shell.
func (term *terminal) wait(t *testing.T) {
	t.Helper()
	select {
	case <-term.ended:
	case <-time.After(readerPatience):
		text, _ := term.output()
		t.Fatalf("the shell did not end\n%s", text)
	}
	term.complained(t, "DATA RACE")
}

// complained fails the test if one of the complaints was printed.
func (term *terminal) complained(t *testing.T, complaints ...string) {
	t.Helper()
	text, _ := term.output()
	for _, complaint := range complaints {
		if strings.Contains(text, complaint) {
			t.Errorf("got a complaint, want none\n%s", text)
		}
	}
}
