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

// talk is a conversation that goes on at every hub, with agents of every hub, when a hub dies and
// when it comes back: each agent gets all turns before.
type talk struct {
	t     *testing.T
	all   hubCluster
	turns []string
}

func startTalk(t *testing.T, all hubCluster) *talk {
	t.Helper()
	for _, h := range all {
		go runWith(t.Context(), "", "agent", "--dialect", "native", "--name", "counter-"+h.name, "--hub", h.URL, "--", "sh", "-c", `grep -o '"role":' "$DRAGOMAN_REQUEST" | wc -l`)
	}
	return &talk{t: t, all: all}
}

func (k *talk) ask(agent string, at *clusterHub) {
	k.t.Helper()
	question := fmt.Sprintf("%s at %s?", agent, at.name)
	code, out, stderr := run(k.t, "ask", agent, question, "--thread", "talk", "--hub", at.URL, "--wait=2m")
	answer := fmt.Sprint(len(k.turns))
	if code != command.ExitDone || strings.TrimSpace(out) != answer {
		k.t.Fatalf("%s: got %d, %q and %q, want an agent that knows the %s turns before", question, code, out, stderr, answer)
	}
	k.turns = append(k.turns, question, answer)
}

func (k *talk) begin() {
	k.t.Helper()
	a, b, c := k.all[0], k.all[1], k.all[2]
	k.ask("counter-b", a)
	k.ask("counter-c", b)
	k.ask("counter-a", c)
}

func (k *talk) withoutB() {
	k.t.Helper()
	k.ask("counter-c", k.all[0])
}

func (k *talk) withBAgain() {
	k.t.Helper()
	b, c := k.all[1], k.all[2]
	k.ask("counter-b", b)
	k.ask("counter-b", c)
	for _, h := range k.all {
		if got, want := h.thread("talk"), strings.Join(k.turns, ", "); got != want {
			k.t.Errorf("hub %s has the turns %q, want %q", h.name, got, want)
		}
	}
}
