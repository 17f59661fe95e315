package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core"
)

// thread returns the turns of a thread as one hub knows them.
func (h *clusterHub) thread(id string) string {
	h.t.Helper()
	var v struct{ Turns []core.Turn }
	if err := h.Get(h.t.Context(), "/v1/threads/"+id, &v); err != nil {
		h.t.Fatal(err)
	}
	var all []string
	for _, turn := range v.Turns {
		all = append(all, strings.TrimSpace(turn.Text))
	}
	return strings.Join(all, ", ")
}

// A conversation goes on at every hub, with agents of every hub, when a hub dies and when it comes
// back: each agent gets all turns before.
func TestAConversationIsOneAtAllHubs(t *testing.T) {
	all := startCluster(t, 3)
	a, b, c := all[0], all[1], all[2]
	for _, h := range all {
		go runWith(t.Context(), "", "agent", "--dialect", "native", "--name", "counter-"+h.name, "--hub", h.URL, "--", "sh", "-c", `grep -o '"role":' "$DRAGOMAN_REQUEST" | wc -l`)
	}
	want := []string{}
	ask := func(agent string, at *clusterHub) {
		t.Helper()
		question := fmt.Sprintf("%s at %s?", agent, at.name)
		code, out, stderr := run(t, "ask", agent, question, "--thread", "talk", "--hub", at.URL, "--wait=20s")
		answer := fmt.Sprint(len(want))
		if code != command.ExitDone || strings.TrimSpace(out) != answer {
			t.Fatalf("%s: got %d, %q and %q, want an agent that knows the %s turns before", question, code, out, stderr, answer)
		}
		want = append(want, question, answer)
	}
	ask("counter-b", a)
	ask("counter-c", b)
	ask("counter-a", c)
	b.kill()
	ask("counter-c", a)
	b.start()
	all.untilAllUp()
	ask("counter-b", b)
	ask("counter-b", c)
	for _, h := range all {
		if got := h.thread("talk"); got != strings.Join(want, ", ") {
			t.Errorf("hub %s has the turns %q, want %q", h.name, got, strings.Join(want, ", "))
		}
	}
}
