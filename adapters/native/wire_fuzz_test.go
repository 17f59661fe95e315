package native_test

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/core/coretest"
)

// FuzzDecode checks that any frame is read or refused with one line, and that an event that was
// read is written and read again without a change.
func FuzzDecode(f *testing.F) {
	calls, err := os.ReadFile("../../core/testdata/calls.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for line := range bytes.Lines(calls) {
		f.Add([]byte(`{"call":` + string(bytes.TrimSpace(line)) + `}`))
	}
	for _, s := range []string{
		`{"event":{"task":"t","kind":"text","body":{"text":"a","lang":"de"},"x":[1]}}`,
		`{"event":{"task":"t","kind":"sparkle","body":{"a":1},"foreign":{"dialect":"native","json":{"body":{"a":2}}}}}`,
		`{"event":{"task":"t","kind":"foreign","body":{"dialect":"native","name":"text"},"foreign":{"dialect":"native","json":{}}}}`,
		`{"event":{"task":"t","kind":"done","body":{"data":null},"foreign":{"dialect":"coven","wire":"AAE="}}}`,
		`{"event":{"task":"t","kind":"file","body":{"name":"a","data":"AAE="},"id":"7"}}`,
		`{"answer":{"execution":"e","error":{"code":"internal","message":"no"}}}`,
		`{"progress":{"execution":"e","detail":"half"}}`, `{"ask":{"id":"1","task":"t","question":{"question":"?"}}}`,
		`{"load":{"state":"busy"}}`, `{"vitals":{"metrics":{"a":1}}}`, `{"tools":{"id":"1"}}`, `{"hello":{"native":1}}`,
		`{"call":{"id":"1","act":"list","command":{"what":"agents"}},"with":{"limit":7,"after":"a"}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		wire.Names(frame)
		_, _, _ = wire.DecodeHub(frame)
		got, err := wire.Decode(frame, limit)
		if err != nil {
			var r *wire.Refusal
			if !errors.As(err, &r) || r.Fault == nil || bytes.ContainsAny([]byte(r.Fault.Message), "\n\x00") {
				t.Fatalf("got %q, want a refusal of one line", err)
			}
			return
		}
		e, ok := got.(wire.Event)
		if !ok {
			return
		}
		text, err := wire.AppendReport(nil, e)
		if err != nil {
			t.Fatalf("%+v: got %v, want it written", e, err)
		}
		again, err := wire.Decode(text, limit*2)
		if err != nil {
			t.Fatalf("%s: got %v, want it read again", text, err)
		}
		if d := cmp.Diff(e, again, coretest.Compare, same); d != "" {
			// The two may differ in how unknown members are written, not in what is sent.
			text2, err := wire.AppendReport(nil, again.(wire.Event))
			if err != nil || !bytes.Equal(text, text2) {
				t.Fatalf("%s and then %s: (-want +got)\n%s", text, text2, d)
			}
		}
		told, err := wire.AppendEvent(nil, wire.Head{Task: e.Task, Role: "viewer"}, eventOf(e))
		if err != nil {
			t.Fatal(err)
		}
		kind, v, err := wire.DecodeHub(told)
		if err != nil || kind != "event" {
			t.Fatalf("%s: got %s and %v, want an event", told, kind, err)
		}
		if _, err := wire.ReadTold(v); err != nil {
			t.Fatalf("%s: got %v, want it read", told, err)
		}
	})
}

// FuzzReadTold checks that any frame of a hub is read or refused.
func FuzzReadTold(f *testing.F) {
	events, err := os.ReadFile("../../core/testdata/events.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for line := range bytes.Lines(events) {
		f.Add([]byte(`{"event":{"task":"t","role":"viewer","cursor":"1.1",` + string(bytes.TrimSpace(line)[1:]) + `}`))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		kind, v, err := wire.DecodeHub(frame)
		if err != nil || kind != "event" {
			return
		}
		told, err := wire.ReadTold(v)
		if err != nil {
			return
		}
		if _, err := wire.AppendEvent(nil, told.Head, told.Event); err != nil && told.Event.At.Year() < 10_000 && told.Event.At.Year() >= 0 {
			t.Fatalf("%s: got %v, want it written", frame, err)
		}
	})
}
