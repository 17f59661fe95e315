package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/demo"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
	"github.com/dragoman-hub/dragoman/core/task"
)

// The demo stays: it prints the address of its console, the dialects go on talking, an agent waits
// for a person and obeys, and an interrupt ends everything.
func TestTheDemoStaysUntilItIsInterrupted(t *testing.T) {
	tier.Full(t, "it waits until the agents of the demo ask each other once more")
	t.Parallel()
	cmd := program(t, "demo", "--stay")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill() // it may just have ended
			_ = cmd.Wait()
		}
	})
	var printed, at string
	for lines := bufio.NewScanner(stdout); at == "" && lines.Scan(); {
		printed += lines.Text() + "\n"
		if m := regexp.MustCompile(`Look at (http://127\.0\.0\.1:\d+)/$`).FindStringSubmatch(lines.Text()); m != nil {
			at = m[1]
		}
	}
	if at == "" || !strings.Contains(printed, `FROM \ TO`) || strings.Contains(printed, "FAILED") {
		t.Fatalf("got %s and %s, want every pair, and the address of the console", printed, stderr.String())
	}
	if status, text := scrapeAs(t, at, ""); status != http.StatusOK {
		t.Errorf("the hub: got %d and %s, want it to answer without a token", status, text)
	}
	resp, err := http.Get(at + "/")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || !strings.HasPrefix(kind, "text/html") {
		t.Errorf("the console: got %s and %q, want a page", resp.Status, kind)
	}
	h := &client.Client{URL: at, HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	until := func(what string, seen func() bool) {
		t.Helper()
		for late := time.After(watchdog); !seen(); {
			select {
			case <-time.After(20 * time.Millisecond):
			case <-late:
				t.Fatalf("got no %s\n%s", what, stderr.String())
			}
		}
	}
	var asked []task.PendingApproval
	until("approval that waits", func() bool {
		var all struct{ Approvals []task.PendingApproval }
		if err := h.Get(t.Context(), "/v1/approvals", &all); err != nil {
			t.Fatal(err)
		}
		asked = all.Approvals
		return len(asked) == 1
	})
	if asked[0].Agent != demo.Careful {
		t.Errorf("got %+v, want it asked by %s", asked[0], demo.Careful)
	}
	if code, out, errs := run(t, "approve", string(asked[0].Task), "--hub", at); code != command.ExitDone {
		t.Errorf("approving: got %d, %s and %s", code, out, errs)
	}
	until("answer of the careful agent", func() bool {
		var done struct {
			State  string
			Answer struct{ Text string }
		}
		if err := h.Get(t.Context(), "/v1/tasks/"+string(asked[0].Task), &done); err != nil {
			t.Fatal(err)
		}
		return done.State == "done" && strings.HasSuffix(done.Answer.Text, "The old logs are gone.")
	})
	if code, out, errs := run(t, "frames", string(asked[0].Task), "--hub", at); code != command.ExitDone || !strings.Contains(out, "approval_requested") {
		t.Errorf("the frames: got %d, %s and %s, want those of the task", code, out, errs)
	}
	until("question of the dialects", func() bool {
		_, tasks, _ := run(t, "tasks", "--hub", at, "--json")
		return strings.Contains(tasks, "once more")
	})

	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || stderr.Len() > 0 {
		t.Errorf("after an interrupt: got %v and %q, want no error", err, stderr.String())
	}
	if resp, err := http.Get(at + "/healthz"); err == nil {
		resp.Body.Close()
		t.Errorf("after an interrupt: got %s, want nobody to listen", resp.Status)
	}
}

// As JSON it prints one object, with the address, and stays too.
func TestTheDemoStaysAfterItsJSON(t *testing.T) {
	t.Parallel()
	cmd := program(t, "demo", "--stay", "--json")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var printed struct {
		Exchanges []json.RawMessage
		Console   string
	}
	if err := json.NewDecoder(stdout).Decode(&printed); err != nil {
		t.Fatal(err)
	}
	if len(printed.Exchanges) != len(demo.Pairs()) || !strings.HasPrefix(printed.Console, "http://127.0.0.1:") {
		t.Errorf("got %d exchanges and the console %q, want all and its address", len(printed.Exchanges), printed.Console)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("terminated: got %v, want no error", err)
	}
}
