//go:build unix

package e2e

import (
	"bufio"
	"bytes"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/native"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

// untilThere runs a command once a file is there.
func untilThere(file string, command ...string) config.Process {
	return config.Process{Command: append([]string{"sh", "-c", `until test -e "$0"; do sleep 0.02; done; exec "$@"`, file}, command...)}
}

// asking is a question of the program that has not ended.
type asking struct {
	t      *testing.T
	answer bytes.Buffer
	stderr *bufio.Reader
	wait   func() error
}

func startAsking(t *testing.T, args ...string) *asking {
	t.Helper()
	a := &asking{t: t}
	cmd := program(t, append([]string{"ask"}, args...)...)
	cmd.Stdout = &a.answer
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	a.stderr, a.wait = bufio.NewReader(stderr), cmd.Wait
	return a
}

// says waits for the next line on stderr.
func (a *asking) says(want string) {
	a.t.Helper()
	if line, err := a.stderr.ReadString('\n'); line != want+"\n" {
		a.t.Fatalf("got %q and %v on stderr, want %q", line, err, want)
	}
}

// ends waits for the answer, after which nothing more is said.
func (a *asking) ends(want string) {
	a.t.Helper()
	rest, _ := io.ReadAll(a.stderr)
	if err := a.wait(); err != nil || a.answer.String() != want || len(rest) > 0 {
		a.t.Errorf("got %v, %q and %q, want %q and nothing more on stderr", err, a.answer.String(), rest, want)
	}
}

func TestAQuestionToAnAgentThatTheHubStartsWaitsAndSaysSo(t *testing.T) {
	needs(t, "python3")
	path, err := filepath.Abs(filepath.Join(nativeExamples, "agent.py"))
	if err != nil {
		t.Fatal(err)
	}
	may := filepath.Join(t.TempDir(), "may-start")
	h := newTestHub(t, func(c *config.Config) {
		c.Agents = config.Agents{{Name: "kid", Dialect: native.Dialect, Process: untilThere(may, "python3", path)}}
	})
	asked := startAsking(t, "--hub", h.url(), "--wait=1ms", "kid", "hello")
	asked.says("[queued: kid is starting]")
	if err := os.WriteFile(may, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	asked.ends("hello \n")
	if _, tasks, _ := run(t, "tasks", "--hub", h.url()); strings.Count(tasks, "done") != 1 || strings.Contains(tasks, "failed") {
		t.Errorf("got the tasks\n%s\nwant one, which is done", tasks)
	}
}

func TestAskDoesNotWaitForAnAgentOfTheSettingsThatStaysFailed(t *testing.T) {
	h := newLoggingHub(t, slog.DiscardHandler, func(c *config.Config) {
		c.Agents = config.Agents{{Name: "kid", Dialect: config.SpeaksText, Process: config.Process{Command: []string{"no-such-program"}}}}
	})
	eventually(t, "the agent has failed", func() error { // a question before that waits for its start
		_, agents, _ := run(t, "agents", "--hub", h.url())
		return notYet(strings.Contains(agents, "failed"), agents)
	})
	const why = "agent kid could not be started: command no-such-program is not found in PATH: install it, or write its whole path"
	if code, _, stderr := run(t, "ask", "--hub", h.url(), "--wait", "kid", "hello"); code != command.ExitFailed || !strings.HasSuffix(stderr, "dragoman: "+why+"\n") {
		t.Errorf("got %d and %q, want %d and %q", code, stderr, command.ExitFailed, why)
	}
}

func TestAnAgentOfTheSettingsThatCannotAnswerFallsBackToAnother(t *testing.T) {
	h := newLoggingHub(t, slog.DiscardHandler, func(c *config.Config) {
		c.Agents = config.Agents{
			{Name: "kid", Dialect: config.SpeaksText, Process: config.Process{Command: []string{"no-such-program"}}, Fallback: []string{"gone", "cat"}},
			{Name: "cat", Dialect: config.SpeaksText, Process: config.Process{Command: []string{"cat"}}},
		}
	})
	for _, to := range []string{"kid", "kid,cat", "gone,cat"} {
		if code, out, stderr := run(t, "ask", "--hub", h.url(), "--wait", to, "hello"); code != command.ExitDone || out != "hello\n" {
			t.Errorf("asking %s: got %d, %q and %q, want the answer of cat", to, code, out, stderr)
		}
	}
}

func TestAskSaysThatTheAgentIsBusy(t *testing.T) {
	may := filepath.Join(t.TempDir(), "may-answer")
	h := newTestHub(t, func(c *config.Config) {
		c.Agents = config.Agents{{Name: "slow", Dialect: config.SpeaksText, MaxConcurrent: 1, Process: untilThere(may, "cat")}}
	})
	h.await(t, "joined slow")
	if code, _, stderr := run(t, "delegate", "--hub", h.url(), "slow", "first"); code != command.ExitDone {
		t.Fatalf("delegating: got %d and %s", code, stderr)
	}
	second := startAsking(t, "--hub", h.url(), "slow", "second")
	second.says("[queued: slow is busy]")
	if err := os.WriteFile(may, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	second.ends("second\n")
}
