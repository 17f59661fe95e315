package e2e

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

// runWith runs a command line in this process, with a text on its stdin.
func runWith(ctx context.Context, stdin string, args ...string) (code int, stdout, stderr string) {
	var out, errs output
	code = command.Run(ctx, args, command.Streams{In: io.NopCloser(strings.NewReader(stdin)), Out: &out, Err: &errs})
	return code, out.String(), errs.String()
}

// run runs a command line with an empty stdin.
func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return runWith(t.Context(), "", args...)
}

// run runs a command line against the hub.
func (h *testHub) run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return run(t, append(args, "--hub", h.url())...)
}

// wantOutput runs a command line against the hub. The wanted text is part of stdout if the
// command succeeds, else of stderr. wantOutput returns stdout.
func (h *testHub) wantOutput(t *testing.T, code int, text string, args ...string) string {
	t.Helper()
	got, stdout, stderr := h.run(t, args...)
	printed := stdout
	if code != command.ExitDone {
		printed = stderr
	}
	if got != code || !strings.Contains(printed, text) {
		t.Errorf("%q: got %d, %q and %q, want %d and %q", args, got, stdout, stderr, code, text)
	}
	return stdout
}

// delegate delegates an instruction to an agent from the command line and returns the task.
func (h *testHub) delegate(t *testing.T, to, instruction string) string {
	t.Helper()
	code, stdout, stderr := h.run(t, "delegate", to, instruction)
	if code != command.ExitDone {
		t.Fatalf("delegate: got %d and %q, want 0", code, stderr)
	}
	return strings.TrimSpace(stdout)
}

// startAsk starts dragoman ask. The exit code is sent once the command has ended.
func startAsk(t *testing.T, hub, to, content string) (stdout, stderr *output, code <-chan int) {
	stdout, stderr = &output{}, &output{}
	ended := make(chan int, 1)
	var running sync.WaitGroup
	running.Go(func() {
		ended <- command.Run(t.Context(), []string{"ask", "--hub", hub, to, content}, command.Streams{In: io.NopCloser(strings.NewReader("")), Out: stdout, Err: stderr})
	})
	t.Cleanup(running.Wait)
	return stdout, stderr, ended
}

// output collects what a command prints. It signals "half" when firstHalf has been printed.
type output struct {
	signals
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(p)
	if strings.Contains(o.text.String(), strings.TrimSpace(firstHalf)) {
		o.signal("half", nil)
	}
	return len(p), nil
}

func (o *output) Close() error { return nil }

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
