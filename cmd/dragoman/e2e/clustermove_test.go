package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

// A task of a mute agent at b goes on with another agent, at c, once b has died.
func aTaskGoesOnElsewhere(t *testing.T, all hubCluster) (movesOn func()) {
	t.Helper()
	a, b, c := all[0], all[1], all[2]
	shows := func(h *clusterHub, list, what string) {
		h.until(fmt.Sprintf("%s of %s shows %s", list, h.name, what), func() error {
			if _, out, _ := run(t, list, "--hub", h.URL, "--json"); !strings.Contains(out, what) {
				return fmt.Errorf("got %s", out)
			}
			return nil
		})
	}
	serve := func(at *clusterHub, name string, program ...string) {
		go runWith(t.Context(), "", append([]string{"agent", "--dialect", "coven", "--name", name, "--capability", "shout", "--hub", at.URL, "--"}, program...)...)
		for _, h := range all {
			shows(h, "agents", name)
		}
	}
	serve(b, "mute", "sleep", "1000")
	type result struct {
		code        int
		out, stderr string
	}
	asked := make(chan result, 1)
	go func() {
		code, out, stderr := run(t, "ask", "capability:shout", "hello", "--hub", a.URL, "--wait=2m")
		asked <- result{code, out, stderr}
	}()
	shows(b, "tasks", `"mute"`)
	serve(c, "loud", "tr", "a-z", "A-Z")
	b.until("the journal has the task", func() error { // b stores one after the other
		return b.Post(t.Context(), "/v1/tasks", map[string]string{"to": "mute", "content": "later", "receipt": "recorded"}, new(any))
	})
	return func() {
		t.Helper()
		select {
		case r := <-asked:
			if r.code != command.ExitDone || r.out != "HELLO\n" || !strings.Contains(r.stderr, "goes on at hub") {
				t.Errorf("got %d, %q and %q, want the answer of the other agent", r.code, r.out, r.stderr)
			}
		case <-time.After(watchdog):
			t.Error("the task did not go on")
		}
	}
}
