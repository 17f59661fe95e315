package native_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

func sendable(t *rapid.T, frame []byte) {
	if err := strictjson.Check(frame, strictjson.Limits{}); err != nil {
		var why *strictjson.Error
		if errors.As(err, &why) && why.Problem == "NUL in a key" {
			t.Skip(err)
		}
		t.Fatalf("%s: got %v, want strict JSON", frame, err)
	}
}

var same = cmp.Options{coretest.Compare, cmpopts.EquateEmpty()}

func TestAnEventOfAnyKindSurvivesTheFramesOfBothDirections(t *testing.T) {
	for _, k := range core.Kinds() {
		t.Run(k.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				want := wire.Told{
					Head:  wire.Head{Task: core.TaskID(rapid.StringN(1, 9, 20).Draw(t, "task")), Role: "viewer", Call: rapid.String().Draw(t, "call")},
					Event: coretest.EventOf(k).Draw(t, "event"),
				}
				want.Cursor = want.Event.Cursor()
				frame, err := wire.AppendEvent(nil, want.Head, want.Event)
				if err != nil {
					t.Fatal(err)
				}
				sendable(t, frame)
				kind, v, err := wire.DecodeHub(frame)
				if err != nil || kind != "event" {
					t.Fatalf("%s: got %s and %v, want an event", frame, kind, err)
				}
				got, err := wire.ReadTold(v)
				if err != nil {
					t.Fatalf("%s: got %v, want no error", frame, err)
				}
				if d := cmp.Diff(want, got, same); d != "" {
					t.Errorf("from the hub (-want +got):\n%s", d)
				}
				report := wire.Event{ID: want.Call, Task: want.Task, Body: want.Event.Body, Foreign: want.Event.Foreign}
				if frame, err = wire.AppendReport(nil, report); err != nil {
					t.Fatal(err)
				}
				f, err := wire.Decode(frame, limit)
				if err != nil {
					t.Fatalf("%s: got %v, want no error", frame, err)
				}
				if d := cmp.Diff(report, f, same); d != "" {
					t.Errorf("from an agent (-want +got):\n%s", d)
				}
			})
		})
	}
}

func TestMergedTextSurvivesItsFrame(t *testing.T) {
	want := core.Event{Seq: 3, Epoch: 1, Body: core.Text{Text: "abc"}, Merged: &core.Merged{Cuts: []int{1, 2}}}
	frame, err := wire.AppendEvent(nil, wire.Head{Task: "t", Role: "viewer"}, want)
	if err != nil {
		t.Fatal(err)
	}
	_, v, _ := wire.DecodeHub(frame)
	got, err := wire.ReadTold(v)
	if d := cmp.Diff(want, got.Event, same); err != nil || d != "" || got.Cursor != (core.Cursor{Epoch: 1, Seq: 5}) {
		t.Errorf("got %v and the cursor %v (-want +got):\n%s", err, got.Cursor, d)
	}
}

// unknownFields draws members whose names nobody knows.
func unknownFields(t *rapid.T, what string) (all []strictjson.Field) {
	for _, key := range rapid.SliceOfNDistinct(rapid.StringMatching(`x_[a-z ü"\\]{0,4}`), 0, 3, rapid.ID[string]).Draw(t, what) {
		all = append(all, strictjson.Field{Key: key, Value: coretest.JSON().Draw(t, "value")})
	}
	return all
}

func TestUnknownMembersStandWhereTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.SampledFrom(core.Kinds()).Draw(t, "kind")
		e := wire.Event{Task: "t", Body: coretest.Body(k).Draw(t, "body")}
		if rapid.Bool().Draw(t, "has foreign") {
			e.Foreign = &core.Foreign{Dialect: "acp", JSON: []byte(`{"a":1}`)}
		}
		frame, err := wire.AppendReport(nil, e)
		if err != nil {
			t.Fatal(err)
		}
		root := strictjson.ParseValid(frame)
		event := root.Get("event")
		body := event.Get("body").Set(unknownFields(t, "inside")...)
		event = strictjson.ParseValid(event.Set(append(unknownFields(t, "outside"), strictjson.Field{Key: "body", Value: body})...))
		want := root.Set(strictjson.Field{Key: "event", Value: event.Raw()})
		sendable(t, want)
		f, err := wire.Decode(want, limit)
		if err != nil {
			t.Fatalf("%s: got %v, want no error", want, err)
		}
		got, err := wire.AppendReport(nil, f.(wire.Event))
		if err != nil {
			t.Fatal(err)
		}
		if !sameJSON(t, got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// sameJSON reports whether two texts are the same value.
func sameJSON(t *rapid.T, a, b []byte) bool {
	var x, y any
	for text, into := range map[*any][]byte{&x: a, &y: b} {
		if err := strictjson.Decode(into, strictjson.Limits{}, text); err != nil {
			t.Fatalf("%s: got %v, want strict JSON", into, err)
		}
	}
	return cmp.Equal(x, y)
}

func TestAnUnreadableFrameStillHasNames(t *testing.T) {
	for text, want := range map[string][2]string{
		`{"event":{"task":"t1","kind":"text","body":{"text":"aaa`: {"", "t1"},
		`{"call":{"id" : "7", "act":`:                             {"7", ""},
		`{"call":{"id":7,"task":"`:                                {"", ""},
		`{"id":"\ud8"}`:                                           {"", ""},
		``:                                                        {"", ""},
	} {
		id, task := wire.Names([]byte(text))
		if got := [2]string{id, string(task)}; got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestEveryFrameOfAPeerIsReadAsItIsWritten(t *testing.T) {
	for kind, want := range map[string]wire.Frame{
		"hello":  wire.Greeting{Native: 1},
		"answer": wire.Answer{Execution: "e", Output: []byte(`{"a":[1]}`)},
		"load":   wire.Load{ID: "1", State: core.LoadOverloaded},
		"vitals": wire.Vitals{ID: "2", Status: "well", Active: 3, Metrics: map[string]float64{"heat": 0.5}},
		"tools":  wire.Tools{ID: "3"},
	} {
		frame, err := wire.Encode(kind, want)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := wire.Decode(frame, limit); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: got %+v and %v, want %+v", kind, got, err, want)
		}
	}
	failed := wire.Answer{Execution: "e", Error: core.NewFault(core.CodeInternal, "no")}
	frame, _ := wire.Encode("answer", failed)
	if got, err := wire.Decode(frame, limit); err != nil || !cmp.Equal(got, failed, coretest.Compare) {
		t.Errorf("a failure: got %+v and %v, want %+v", got, err, failed)
	}
}

func eventOf(e wire.Event) core.Event {
	return core.Event{Seq: 1, Epoch: 1, Body: e.Body, Foreign: e.Foreign}
}
