package core

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

func TestTheEventsThatAreWrittenMostAreReadInOnePass(t *testing.T) {
	at := time.Date(2026, 2, 3, 4, 5, 6, 700, time.UTC)
	for _, body := range []Body{Text{Text: "über alles"}, Text{}, Thinking{Text: "so"}, Done{}, Done{Text: "all"}, Assigned{Agent: "bob", Attempt: 2}, Assigned{Agent: "bob", Attempt: 1, Dialect: "coven"}} {
		for _, want := range []Event{{Seq: 7, Epoch: 1, At: at, Body: body}, {Seq: 1, At: at, Body: body}} {
			b, err := want.AppendJSON(nil)
			if err != nil {
				t.Fatal(err)
			}
			var got Event
			if !got.readWritten(b) || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: got %+v, want %+v in one pass", b, got, want)
			}
		}
	}
}

// Whatever is read in one pass is what package json reads.
func FuzzReadWritten(f *testing.F) {
	for _, seed := range []string{
		`{"seq":7,"epoch":1,"at":"2026-02-03T04:05:06Z","kind":"text","body":{"text":"a"}}`,
		`{"seq":7,"at":"2026-02-03T04:05:06.5+01:00","kind":"done","body":{}}`,
		`{"seq":007,"at":"2026-02-03T04:05:06Z","kind":"assigned","body":{"agent":"b","attempt":1,"dialect":"c"}}`,
		`{"seq":7,"at":"2026-02-03T04:05:06Z","kind":"text","body":{"text":"a"},"foreign":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var got Event
		if !got.readWritten(b) {
			return
		}
		var j eventJSON
		if err := json.Unmarshal(b, &j); err != nil {
			t.Fatalf("got %+v, want %v", got, err)
		}
		k, _ := ParseKind(j.Kind)
		body, err := readBody(k, j.Body)
		if want := (Event{Seq: j.Seq, Epoch: j.Epoch, At: j.At, Body: body}); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, want %+v (%v)", got, want, err)
		}
	})
}
