//go:build unix

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	piclient "github.com/dragoman-hub/dragoman/adapters/pi/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
)

// The first conversation of the README runs as printed, in a shell, each block in a terminal of its
// own. Only the ports differ.
func TestTheFirstConversationOfTheReadmeWorks(t *testing.T) {
	blocks := blocksUnder(t, "A first conversation")
	if len(blocks) < 3 || strings.TrimSpace(uncommented(blocks[0])) != "make run" {
		t.Fatalf("got the blocks %q, want one with make run, one with an agent and one that asks", blocks)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dir := home(t)
	ready := filepath.Join(dir, "ready.json")
	hub := startShell(t, dir, recipe(t, "run"), "", "DRAGOMAN_GRPC_ADDR=127.0.0.1:0", "DRAGOMAN_HTTP_ADDR=127.0.0.1:0",
		"DRAGOMAN_PI_ADDR=127.0.0.1:0", "DRAGOMAN_READY_FILE="+ready)
	at, err := service.AwaitReady(ctx, ready)
	if err != nil {
		t.Fatalf("make run: got %v, want a hub\n%s", err, hub.output())
	}
	place := "DRAGOMAN_HUB=http://" + at.HTTP
	agent := startShell(t, dir, blocks[1], "joined", place)
	select {
	case <-agent.seen:
	case <-ctx.Done():
		t.Fatalf("the agent did not join\n%s", agent.output())
	}

	cmd := shell(dir, blocks[2], place)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("got %v, want no error\n%s\n%s", err, out.String(), stderr.String())
	}
	answer, rest, _ := strings.Cut(out.String(), "\n")
	if answer != "HELLO" {
		t.Errorf("ask: got %q, want HELLO", answer)
	}
	frames, demo, ok := strings.Cut(rest, "A hub on ")
	if !ok || !strings.Contains(demo, `FROM \ TO`) || strings.Contains(demo, "FAILED") {
		t.Errorf("demo: got %q, want every pair and no failure", demo)
	}
	received, success := transcriptOf(t, frames)
	if received != "HELLO" || !success {
		t.Errorf("stdio: got the text %q and success %t, want HELLO and true\n%s", received, success, frames)
	}
	agent.stop(t)
	if printed := agent.output(); !strings.Contains(printed, `"message":"left"`) {
		t.Errorf("got %q, want the agent to log that it left", printed)
	}
	hub.stop(t)
	if printed := hub.output(); !strings.Contains(printed, "the hub has stopped") {
		t.Errorf("got %q, want the hub to log that it stopped", printed)
	}
}

// blocksUnder returns the shell blocks under a heading of the README.
func blocksUnder(t *testing.T, heading string) []string {
	t.Helper()
	b, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(b), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("README.md has no heading %q", heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	var blocks []string
	for _, f := range fence.FindAllStringSubmatch(text, -1) {
		blocks = append(blocks, f[2])
	}
	return blocks
}

func uncommented(line string) string {
	line, _, _ = strings.Cut(line, "#")
	return line
}

// recipe returns the commands of a target of the Makefile.
func recipe(t *testing.T, target string) string {
	t.Helper()
	b, err := os.ReadFile("../../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^` + target + `:.*\n((?:\t.+\n)+)`).FindSubmatch(b)
	if m == nil {
		t.Fatalf("the Makefile has no target %s", target)
	}
	return string(m[1])
}

// home creates a directory in which bin/dragoman is the program under test.
func home(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\nexec '" + self + "' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "bin", "dragoman"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// shell returns a command that runs a shell script in dir, in a process group of its own.
func shell(dir, script string, env ...string) *exec.Cmd {
	cmd := exec.Command("/bin/sh", "-ec", script)
	cmd.Dir = dir
	cmd.Env = append(config.WithoutVariables(os.Environ()), runsProgram+"=1", "HOME="+dir, "GORACE=atexit_sleep_ms=0")
	cmd.Env = append(cmd.Env, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// terminal is a shell script that runs until it is stopped.
type terminal struct {
	cmd  *exec.Cmd
	seen chan struct{} // closed once it has printed the word
	word string

	mu   sync.Mutex
	text bytes.Buffer
}

func startShell(t *testing.T, dir, script, label string, env ...string) *terminal {
	t.Helper()
	term := &terminal{cmd: shell(dir, script, env...), seen: make(chan struct{}), word: label}
	term.cmd.Stdout, term.cmd.Stderr = term, term
	if err := term.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if term.cmd.ProcessState == nil {
			_ = syscall.Kill(-term.cmd.Process.Pid, syscall.SIGKILL) // it may just have ended
			_ = term.cmd.Wait()
		}
	})
	return term
}

// Write implements io.Writer.
func (term *terminal) Write(p []byte) (int, error) {
	term.mu.Lock()
	defer term.mu.Unlock()
	before := strings.Contains(term.text.String(), term.word)
	term.text.Write(p)
	if !before && strings.Contains(term.text.String(), term.word) {
		close(term.seen)
	}
	return len(p), nil
}

func (term *terminal) output() string {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.text.String()
}

// stop interrupts the script, as Ctrl-C does, and waits for its end.
func (term *terminal) stop(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(-term.cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatalf("got %v, want it to run still\n%s", err, term.output())
	}
	_ = term.cmd.Wait() // an interrupted shell exits with a status
	if text := term.output(); strings.Contains(text, `"level":"error"`) || strings.Contains(text, "dragoman: ") {
		t.Errorf("got a complaint, want none\n%s", text)
	}
}

// transcriptOf returns what a pi client received: the text of the answer, and whether the prompt
// succeeded.
func transcriptOf(t *testing.T, lines string) (text string, success bool) {
	t.Helper()
	var tr piclient.Transcript
	for line := range strings.Lines(lines) {
		var f piclient.Frame
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("got the line %q, want JSON", line)
		}
		tr.Add(f)
		if f.Type == "response" && string(f.ID) == `"3"` {
			success = f.Success
		}
	}
	return tr.Deltas.String(), success
}
