package command_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

func TestFramesAreBlocksWithWhatTheyBecame(t *testing.T) {
	hub := fakeHub(t, map[string]string{"GET /v1/tasks/t/frames": `{"missing":"some","frames":[
		{"at":"2026-01-01T00:00:00Z","connection":"pi-1","direction":"in","frame":{"type":"prompt"},"became":[{"kind":"opened","disposition":"native"}]},
		{"at":"2026-01-01T00:00:01Z","connection":"pi-1","direction":"out","frame":null,"became":[{"kind":"file","disposition":"refused"},{"kind":"text","disposition":"folded"}]},
		{"at":"2026-01-01T00:00:02Z","connection":"pi-1","direction":"out","frame":[],"became":[]}]}`})
	code, out, stderr := run(t, "frames", "t", hub)
	for _, want := range []string{
		" pi-1 --> opened native\n  {\"type\":\"prompt\"}\n", " pi-1 <-- file refused, text folded\n", " pi-1 <--\n  []\n",
	} {
		if code != command.ExitDone || !strings.Contains(out, want) {
			t.Errorf("got %d and %q, want %q", code, out, want)
		}
	}
	if stderr != "some\n" {
		t.Errorf("got %q on stderr, want what is missing", stderr)
	}
}

func TestTheHintForMoreTasksKeepsTheFlags(t *testing.T) {
	hub := fakeHub(t, map[string]string{"GET /v1/tasks": `{"tasks":[{"id":"c"},{"id":"b"}],"before":"b"}`})
	_, _, stderr := run(t, "tasks", hub, "--state", "failed", "--agent", "a b", "--limit", "2", "--before", "d", "--token", "secret")
	want := `'dragoman tasks --agent "a b" ` + strings.Replace(hub, "=", " ", 1) + ` --limit 2 --state failed --before b' lists them`
	if !strings.Contains(stderr, want) || strings.Contains(stderr, "secret") {
		t.Errorf("got %q, want %q and no token", stderr, want)
	}
}

func TestTheReadersOfATaskAreAnObjectInJSON(t *testing.T) {
	hub := fakeHub(t, map[string]string{"GET /v1/tasks/t/readers": `{"readers":[{"seq":3}]}`})
	if _, out, stderr := run(t, "tasks", "t", "--readers", "--json", hub); !strings.HasPrefix(out, "{\n  \"readers\": [\n") {
		t.Errorf("got %q and %q, want an object with the readers", out, stderr)
	}
}

func TestATaskThatNoAgentHasGotShowsWhomItIsFor(t *testing.T) {
	hub := fakeHub(t, map[string]string{"GET /v1/tasks": `{"tasks":[{"id":"c","state":"failed","to":"capability:tea"},{"id":"b","state":"queued","to":"pot"},
		{"id":"a","state":"done","to":"capability:tea","agent":"kettle"}]}`})
	_, out, stderr := run(t, "tasks", hub)
	want := []string{"TASK STATE AGENT FROM OPENED CONTENT", "c failed (capability:tea) - - -", "b queued (pot) - - -", "a done kettle - - -"}
	if diff := cmp.Diff(want, fields(out)); diff != "" {
		t.Errorf("got %s and (-want +got):\n%s", stderr, diff)
	}
}

func TestAListOfTasksSaysWhyTheyFailed(t *testing.T) {
	hub := fakeHub(t, map[string]string{"GET /v1/tasks": `{"tasks":[{"id":"b","state":"failed","agent":"pot","fault":{"code":"unreachable","message":"it has\u001b left"}},{"id":"a","state":"done","agent":"pot"}]}`})
	for _, of := range []struct {
		flags []string
		want  []string
	}{
		{nil, []string{"TASK STATE AGENT FROM OPENED CONTENT", "b failed (unreachable) pot - - -", "a done pot - - -"}},
		{[]string{"-o", "wide"}, []string{"TASK STATE FAULT AGENT FROM OPENED CONTENT", `b failed unreachable: it has\x1b left pot - - -`, "a done - pot - - -"}},
	} {
		_, out, stderr := run(t, append([]string{"tasks", hub}, of.flags...)...)
		if diff := cmp.Diff(of.want, fields(out)); diff != "" {
			t.Errorf("%v: got %s and (-want +got):\n%s", of.flags, stderr, diff)
		}
	}
}
