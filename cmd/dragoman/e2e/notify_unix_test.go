//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// notified is what a webhook is told, as far as these tests read it.
type notified struct {
	Type, Text, URL string
	Data            struct {
		Task, Agent, State, Code string
	}
}

// webhookEnd starts the receiver of a webhook.
func webhookEnd(t *testing.T) (url string, got chan notified) {
	got = make(chan notified, 100)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var n notified
		if body, err := io.ReadAll(r.Body); err != nil || json.Unmarshal(body, &n) != nil {
			t.Errorf("got %q and %v, want JSON", body, err)
		}
		got <- n
	}))
	t.Cleanup(srv.Close)
	return srv.URL + "/hidden", got
}

// What was told is not told again after a kill, and what the kill has ended is told by the next life.
func TestNotificationsOfTheSettingsOverAKillAndAReload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "dragoman.yaml")
	write := func(urls ...string) {
		t.Helper()
		text := fmt.Sprintf(`
data_dir: %s
agents:
  - {name: shout, command: [tr, a-z, A-Z]}
  - {name: slow, command: [sh, -c, "echo begun; exec sleep 1000"]}
  - {name: missing, command: [no-such-program]}
notify:
  webhooks:
`, filepath.Join(dir, "data"))
		for _, url := range urls {
			text += fmt.Sprintf("    - {url: %q, on: [ended, failed, agent_down]}\n", url)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first, got := webhookEnd(t)
	write(first)
	h := startHub(t, "--config", file)
	if n := <-got; n.Type != "agent_down" || n.Data.Agent != "missing" || n.Data.State != "failed" || !strings.Contains(n.Text, "no-such-program") {
		t.Errorf("got %+v, want the agent that cannot be started", n)
	}
	ask := func(h *hubProcess) {
		t.Helper()
		if code, _, stderr := run(t, "ask", "shout", "hello", "--hub", "http://"+h.http); code != 0 {
			t.Fatalf("got %d and %s, want an answer", code, stderr)
		}
	}
	ask(h)
	n := <-got
	if n.Type != "ended" || n.Data.Agent != "shout" || n.Data.State != "done" || n.URL != "http://"+h.http+"/#/tasks/"+n.Data.Task {
		t.Errorf("got %+v, want the end, with a link to this hub", n)
	}
	// Another question, of which the answer waits for all that came before to be stored.
	for _, agent := range []string{"slow", "missing"} {
		if status, answer := post(t, h.http, "/v1/tasks", `{"to":"`+agent+`","content":"go","receipt":"recorded"}`, nil); status/100 != 2 && agent == "slow" {
			t.Fatalf("got %d and %s, want the task", status, answer)
		}
	}
	if err := h.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = h.cmd.Wait()
	h = startHub(t, "--config", file)
	told := map[string]notified{}
	for range 2 {
		n := <-got
		told[n.Data.Agent] = n
	}
	if n := told["slow"]; n.Type != "failed" || n.Data.Code != "unreachable" || n.Text != "slow has failed (unreachable)" {
		t.Errorf("got %+v after a kill, want the task that it has ended", n)
	}
	if n := told["missing"]; n.Type != "agent_down" {
		t.Errorf("got %+v after a kill, want the agent that cannot be started", n)
	}
	second, gotSecond := webhookEnd(t)
	write(second)
	if err := h.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	h.waitLog(t, "the configuration was reloaded")
	ask(h)
	for n := <-gotSecond; n.Type != "ended" || n.Data.Agent != "shout"; n = <-gotSecond {
		if n.Type != "agent_down" {
			t.Errorf("got %+v, want the end at the webhook of the changed settings", n)
		}
	}
	if more := len(got); more != 0 {
		t.Errorf("got %d more at the webhook that was removed, the first of them %+v, want none", more, <-got)
	}
}
