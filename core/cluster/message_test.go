package cluster

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

var update = flag.Bool("update", false, "write the golden files")

// examples has one message of each kind, with every member.
func examples() []any {
	since := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	agent := stored{
		form: of(kindAgent), Hub: "a", Epoch: 3,
		Card: core.Card{
			ID: "shout", Name: "Shout", Dialect: "native", Capabilities: []string{"text.upper"}, Domains: []string{"text"}, Model: "m", Tools: []string{"t"},
			Channels: []string{"c"}, Features: core.FeatureStreaming, MaxConcurrent: 2, Metadata: map[string]json.RawMessage{"about": json.RawMessage(`"<loud> & ü"`)},
		},
		Principal: core.Principal{ID: "ann", Dialect: "native", Authenticated: true, Operator: true}, Connection: 7, Since: since, OnlyByID: true,
		Child: &core.Child{State: core.ChildReady, Restarts: 1, LastError: "e", PID: 2},
	}
	ann := core.Principal{ID: "ann", Authenticated: true}
	return []any{
		&beat{
			form: of(kindBeat), Hub: "a", Epoch: 3, Index: 0, Seq: 17, Address: "a:8080", Since: since, Draining: true, Leaving: true, Formed: true,
			Agents: 1, Tasks: 2, Known: []knownHub{
				{Hub: "b", Epoch: 1, Index: 1, Heard: true, Silent: true, Seq: 9},
				{Hub: "c", Epoch: 2, Index: 1023, By: &journal.Life{Hub: "b", Epoch: 1}, Forgotten: true},
			},
		},
		&loads{form: of(kindLoads), Hub: "a", Epoch: 3, Seq: 5, Loads: map[core.AgentID]Load{"shout": {Reported: core.LoadBusy, Active: 1, Queued: 2}}, Whole: true, After: "old", To: "shout"},
		&releaseAsk{form: of(kindReleaseAsk), Epoch: 3, Agent: "shout", Connection: 7, For: ann, Must: true},
		&releaseAnswer{form: of(kindReleaseAnswer), Left: true},
		&agent,
	}
}

// emptyOf returns an empty message of a kind.
func emptyOf(kind string) any {
	return map[string]any{
		kindBeat: &beat{}, kindLoads: &loads{}, kindAgent: &stored{}, kindReleaseAsk: &releaseAsk{}, kindReleaseAnswer: &releaseAnswer{},
	}[kind]
}

// readAny reads a message of any kind.
func readAny(data []byte) (any, error) {
	kind, v, err := kindOf(data)
	if err != nil {
		return nil, err
	}
	m := emptyOf(kind)
	if m == nil {
		return nil, errors.New("unknown kind")
	}
	return m, decodeMessage(v, m)
}

var compare = cmp.AllowUnexported(beat{}, loads{}, stored{}, releaseAsk{}, releaseAnswer{})

// Members are added to this file, never renamed or removed: hubs one version apart work together.
func TestTheFormOfEachMessageIsStable(t *testing.T) {
	file := filepath.Join("testdata", "messages.jsonl")
	var lines []string
	for _, m := range examples() {
		lines = append(lines, string(encode(m)))
	}
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(strings.TrimSpace(string(kept)), "\n"), lines); d != "" {
		t.Errorf("what is written (-want +got):\n%s", d)
	}
	var read []any
	for line := range strings.Lines(string(kept)) {
		m, err := readAny([]byte(line))
		if err != nil {
			t.Fatalf("reading %s: got %v, want no error", line, err)
		}
		read = append(read, m)
	}
	if d := cmp.Diff(examples(), read, compare); d != "" {
		t.Errorf("what is read (-want +got):\n%s", d)
	}
}

func TestWhatAHubOfTheNextMinorVersionAddsIsIgnored(t *testing.T) {
	for _, m := range examples() {
		later := strings.Replace(string(encode(m)), `{"v":"2.0",`, `{"v":"2.9","weather":{"wind":1},`, 1)
		got, err := readAny([]byte(later))
		if err != nil {
			t.Errorf("%s: got %v, want no error", later, err)
			continue
		}
		want := string(encode(m))
		if text := strings.Replace(string(encode(got)), `"v":"2.9"`, `"v":"2.0"`, 1); text != want {
			t.Errorf("what was read: got %s, want %s", text, want)
		}
	}
}

func TestALaterMajorVersionIsRefused(t *testing.T) {
	for _, m := range examples() {
		later := strings.Replace(string(encode(m)), `"v":"2.0"`, `"v":"3.0"`, 1)
		if _, err := readAny([]byte(later)); !errors.Is(err, errMajor) {
			t.Errorf("%s: got %v, want that the version is refused", later, err)
		}
	}
}

func TestMessagesThatMakeNoSenseAreRefused(t *testing.T) {
	for _, text := range []string{
		``, `{}`, `[]`, `{"v":1}`, `{"v":"x","kind":"beat"}`, `{"v":"0.9","kind":"beat"}`,
		`{"v":"2.0","kind":"beat"}`,
		`{"v":"2.0","kind":"beat","hub":"a.b","epoch":1}`,
		`{"v":"2.0","kind":"beat","hub":"a","epoch":0}`,
		`{"v":"2.0","kind":"beat","hub":"a","epoch":1,"index":1024}`,
		`{"v":"2.0","kind":"beat","hub":"a","epoch":1,"index":-1}`,
		`{"v":"2.0","kind":"beat","hub":"a","epoch":1,"known":[{"hub":"*","epoch":1}]}`,
		`{"v":"2.0","kind":"beat","hub":"a","epoch":1,"known":[{"hub":"b","epoch":1,"by":{"hub":"b","epoch":0}}]}`,
		`{"v":"2.0","kind":"loads","hub":"","epoch":1}`,
		`{"v":"2.0","kind":"agent","hub":"a"}`,
		`{"v":"2.0","v":"2.0","kind":"loads","hub":"a","epoch":1}`,
	} {
		if m, err := readAny([]byte(text)); err == nil {
			t.Errorf("%s: got %+v, want an error", text, m)
		}
	}
}

func FuzzMessage(f *testing.F) {
	for _, m := range examples() {
		f.Add(encode(m))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := readAny(data)
		if err != nil {
			return
		}
		again, err := readAny(encode(m))
		if err != nil {
			t.Fatalf("reading what was written: got %v, want no error: %s", err, encode(m))
		}
		if a, b := string(encode(m)), string(encode(again)); a != b {
			t.Errorf("written again: got %s, want %s", b, a)
		}
	})
}
