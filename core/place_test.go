package core_test

import (
	"cmp"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core"
)

const aTask = "019b0000-0000-7000-8000-000000000001"

func TestThePlaceThatIsWrittenIsParsed(t *testing.T) {
	at := func(t *rapid.T, label string) core.Place {
		return core.Place{
			Task: core.TaskID(rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}`).Draw(t, label+" task")),
			Cursor: core.Cursor{
				Epoch: rapid.Uint32Min(1).Draw(t, label+" epoch"), Seq: rapid.Uint64Min(1).Draw(t, label+" seq"),
			},
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		p, q := at(t, "p"), at(t, "q")
		if got, err := core.ParsePlace(p.String()); err != nil || got != p {
			t.Fatalf("got %v and %v, want %v", got, err, p)
		}
		if got, want := cmp.Compare(p.String(), q.String()), p.Compare(q); got != want {
			t.Fatalf("the texts %q and %q compare as %d, want %d as the places do", p, q, got, want)
		}
	})
}

func TestTheBeginningIsAnEmptyText(t *testing.T) {
	if got := (core.Place{}).String(); got != "" {
		t.Errorf("got %q, want nothing", got)
	}
	if got, err := core.ParsePlace(""); err != nil || got != (core.Place{}) {
		t.Errorf("got %v and %v, want the beginning", got, err)
	}
}

func TestWhatIsNoPlaceIsRefused(t *testing.T) {
	for _, text := range []string{
		"x", ".", "..", aTask, aTask + ".1.1", aTask + ".00000001", aTask + ".00000000.0000000000000001", aTask + ".00000001.0000000000000000",
		aTask + ".00000001.000000000000000G", aTask + ".00000001.000000000000000A", aTask + ".00000001.0000000000000001 ",
		aTask + ".00000001.0000000000000001.1", ".00000001.0000000000000001", "+0000001.00000001.00000001",
	} {
		if got, err := core.ParsePlace(text); !errors.Is(err, &core.Fault{Code: core.CodeInvalid}) {
			t.Errorf("%q: got %v and %v, want it invalid", text, got, err)
		}
	}
}

func FuzzParsePlace(f *testing.F) {
	for _, seed := range []string{"", "x", aTask + ".00000001.0000000000000007", aTask + ".ffffffff.ffffffffffffffff", aTask + ".1.2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := core.ParsePlace(text)
		switch {
		case err != nil && p != (core.Place{}):
			t.Errorf("got %v beside the error %v, want nothing", p, err)
		case err == nil && p.String() != text:
			t.Errorf("got %q back from %q, want it as it was: an event has one id", p, text)
		}
	})
}
