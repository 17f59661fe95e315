package core_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// readGenerally reads an event by package encoding/json: the space keeps it from being read in one pass.
func readGenerally(b []byte) (e core.Event, err error) {
	err = e.UnmarshalJSON(slices.Concat([]byte(" "), b))
	return e, err
}

func TestTheEventsThatAreWrittenMostAreReadInOnePass(t *testing.T) {
	at := time.Date(2026, 2, 3, 4, 5, 6, 700, time.UTC)
	for _, body := range []core.Body{
		core.Text{Text: "über alles"}, core.Text{}, core.Thinking{Text: "so"}, core.Done{}, core.Done{Text: "all"},
		core.Assigned{Agent: "bob", Attempt: 2}, core.Assigned{Agent: "bob", Attempt: 1, Dialect: "coven"},
	} {
		for _, want := range []core.Event{{Seq: 7, Epoch: 1, At: at, Body: body}, {Seq: 1, At: at, Body: body}} {
			b, err := want.AppendJSON(nil)
			if err != nil {
				t.Fatal(err)
			}
			var got core.Event
			if err := got.UnmarshalJSON(b); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: got %+v and %v, want %+v", b, got, err, want)
			}
			once := testing.AllocsPerRun(10, func() { _ = got.UnmarshalJSON(b) })
			if generally := testing.AllocsPerRun(10, func() { _, _ = readGenerally(b) }); once >= generally/2 {
				t.Errorf("%s: got %v allocations, want less than half of the %v of package json", b, once, generally)
			}
		}
	}
}

// Whatever is read in one pass is what package json reads.
func FuzzReadEvent(f *testing.F) {
	for _, seed := range []string{
		`{"seq":7,"epoch":1,"at":"2026-02-03T04:05:06Z","kind":"text","body":{"text":"a"}}`,
		`{"seq":7,"at":"2026-02-03T04:05:06.5+01:00","kind":"done","body":{}}`,
		`{"seq":007,"at":"2026-02-03T04:05:06Z","kind":"assigned","body":{"agent":"b","attempt":1,"dialect":"c"}}`,
		`{"seq":7,"at":"2026-02-03T04:05:06Z","kind":"text","body":{"text":"a"},"foreign":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var got core.Event
		err := got.UnmarshalJSON(b)
		want, wantErr := readGenerally(b)
		if (err == nil) != (wantErr == nil) || err == nil && !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v and %v, want %+v and %v", got, err, want, wantErr)
		}
	})
}
