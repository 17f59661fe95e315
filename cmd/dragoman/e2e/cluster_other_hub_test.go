package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core"
)

// What a hub tells of an agent that is at another one, and what a command says of a hub that stands still.
func TestAHubTellsOfAnotherOne(t *testing.T) {
	t.Parallel()
	all := startCluster(t, 3)
	a, b, c := all[0], all[1], all[2]
	w := joinWorker(t, b, "worker")
	if code, _, stderr := run(t, "ask", "worker", "hello", "--hub", a.URL, "--wait=2m"); code != command.ExitDone {
		t.Fatalf("asking the agent of b at a: got %d and %q, want its answer", code, stderr)
	}
	t.Run("when it was seen last is left out where that is not known", func(t *testing.T) {
		if got := answerOf(t, a.URL+"/v1/agents"); !strings.Contains(got.text, `"worker"`) || strings.Contains(got.text, "0001-01-01") {
			t.Errorf("got %s, want the agent without a time that never was", got.text)
		}
	})
	t.Run("MCP names the agent that gets a task", func(t *testing.T) {
		const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"agent_delegate","arguments":{"to":"worker","content":"hello"}}}`
		status, text := askMCP(t, a.URL+"/mcp", call, "Accept: application/json, text/event-stream")
		if status != http.StatusOK || !strings.Contains(text, `\"agent_id\":\"worker\"`) {
			t.Errorf("got %d and %s, want the worker named", status, text)
		}
	})
	t.Run("a task whose requester has left says so at every hub", func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.URL+"/v1/tasks", strings.NewReader(`{"to":"worker","content":"wait here","keep":false}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "text/event-stream")
		r.Header.Set("Content-Type", "application/json")
		resp, err := a.HTTP.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var opened struct{ Body core.Opened }
		for lines := bufio.NewScanner(resp.Body); opened.Body.Task == "" && lines.Scan(); {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				if err := json.Unmarshal([]byte(data), &opened); err != nil {
					t.Fatal(err)
				}
			}
		}
		<-w.asked
		leave()
		for _, h := range all {
			h.until("hub "+h.name+" says that the requester left", func() error {
				var v struct {
					State  string
					Answer struct{ Fault *core.Fault }
				}
				if err := h.Get(t.Context(), "/v1/tasks/"+string(opened.Body.Task), &v); err != nil {
					return err
				}
				return notYet(v.State == "cancelled" && v.Answer.Fault.Message == "the requester left", fmt.Sprintf("got %s and %v", v.State, v.Answer.Fault))
			})
		}
	})
	b.kill()
	before := len(a.log())
	t.Run("a command does not wait for a hub that stands still", func(t *testing.T) {
		c.stop()
		defer c.cont()
		for _, args := range [][]string{{"hubs"}, {"agents"}} {
			code, _, stderr := run(t, append(args, "--hub", c.URL)...)
			if code != command.ExitFailed || !strings.Contains(stderr, "has not answered within 10s") {
				t.Errorf("dragoman %s: got %d and %q, want that the hub does not answer", args[0], code, stderr)
			}
		}
		if code, out, stderr := run(t, "hubs", "--hub", c.URL+","+a.URL); code != command.ExitDone || !strings.Contains(out, "a ") {
			t.Errorf("dragoman hubs with a second address: got %d, %q and %q, want the list of the second one", code, out, stderr)
		}
	})
	if n := strings.Count(a.log()[before:], "Error trying to connect to route"); n > 3 { // by its address, and by what others told of it
		t.Errorf("got %d lines of the log about a hub that was away for 20 seconds, want few", n)
	}
	b.start()
	all.untilAllUp()
}
