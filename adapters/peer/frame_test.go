package peer

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

var update = flag.Bool("update", false, "write the golden files")

const goldenFrames = "testdata/frames.txt"

// frames returns one frame, or letter, of each form, each on its lines.
func frames(t *testing.T) string {
	t.Helper()
	const id = "01234567-0123-7123-8123-0123456789ab"
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ann := core.Principal{ID: "ann", Dialect: "rest", Authenticated: true, Credential: &core.Credential{Roles: []string{"r"}, Agents: []string{"a*"}, Packs: []string{"p"}}}
	to := core.ToAgent("shout")
	var all []string
	add := func(b []byte, err error) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(b))
	}
	add(encode(frameHello, hello{Version: version, Program: "v1.2.3", Got: 7}))
	add(encodeOpening(hub.Opening{
		Opened: core.Event{Seq: 1, Epoch: 1, At: at, Body: core.Opened{Task: id, From: core.Principal{ID: "ann"}, Request: core.Request{To: to, Content: "hello"}, Key: "coven:c2FtZSByZXF1ZXN0"}},
		From:   ann, Keep: true, Private: true,
	}))
	add(encodeCall(core.Call{Principal: ann, Command: core.Cancel{Task: id, Reason: "enough"}}))
	add(appendEvents(nil, id, []core.Event{{Seq: 2, Epoch: 1, At: at, Body: core.Text{Text: "HE"}}, {Seq: 3, Epoch: 1, At: at, Body: core.Done{}}}))
	add(encodeFollow(id, core.Cursor{Epoch: 1, Seq: 12}), nil)
	return strings.Join(all, "\n---\n") + "\n"
}

// Members are added to this file, never renamed or removed: hubs one minor version apart work
// together.
func TestTheFormOfFramesIsStable(t *testing.T) {
	got := frames(t)
	if *update {
		if err := os.WriteFile(goldenFrames, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(goldenFrames)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestWhatAHubOfTheNextMinorVersionAddsToFramesIsIgnored(t *testing.T) {
	later := func(s string) []byte {
		return []byte(strings.Replace(s[1:], "{", `{"weather":{"wind":1},`, 1))
	}
	parts := strings.Split(strings.TrimSuffix(frames(t), "\n"), "\n---\n")
	if h, err := decodeHello(later(parts[0])); err != nil || h != (hello{version, "v1.2.3", 7}) {
		t.Errorf("a hello: got %+v and %v", h, err)
	}
	if o, err := decodeOpening(later(parts[1])); err != nil || o.From.ID != "ann" || !o.Keep || !o.Private {
		t.Errorf("an opening: got %+v and %v", o, err)
	}
	if c, err := decodeCall(later(parts[2])); err != nil || c.Command != (core.Command(core.Cancel{Task: "01234567-0123-7123-8123-0123456789ab", Reason: "enough"})) {
		t.Errorf("a call: got %+v and %v", c, err)
	}
	if id, events, err := decodeEvents([]byte(strings.Replace(parts[3][1:], "\n{", "\n"+`{"weather":1,`, 1))); err != nil || len(events) != 2 || id == "" {
		t.Errorf("events: got %q, %+v and %v", id, events, err)
	}
	const id = "01234567-0123-7123-8123-0123456789ab"
	for frame, want := range map[string]core.Cursor{parts[4][1:]: {Epoch: 1, Seq: 12}, id + `{"weather":1}`: {}, id: {}} {
		if got, after, err := decodeFollow([]byte(frame)); err != nil || got != id || after != want {
			t.Errorf("what is wanted by %q: got %q from %s and %v, want it from %s", frame, got, after, err, want)
		}
	}
	// A frame or a letter of a kind that this version does not know does nothing.
	c := &connection{}
	if err := c.open([]byte("z{}")); err != nil {
		t.Errorf("an unknown letter: got %v, want it ignored", err)
	}
}
