package core_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core"
)

func TestACursorReadsBackFromItsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := core.Cursor{Epoch: rapid.Uint32().Draw(t, "epoch"), Seq: rapid.Uint64().Draw(t, "seq")}
		got, err := core.ParseCursor(want.String())
		if err != nil || got != want {
			t.Fatalf("%q: got %+v and %v, want %+v", want, got, err, want)
		}
		text, err := json.Marshal(map[string]core.Cursor{"from": want})
		if err != nil {
			t.Fatal(err)
		}
		var back map[string]core.Cursor
		if err := json.Unmarshal(text, &back); err != nil || back["from"] != want {
			t.Fatalf("%s: got %+v and %v, want %+v", text, back, err, want)
		}
	})
}

func TestAnEmptyCursorIsTheBeginning(t *testing.T) {
	if got, err := core.ParseCursor(""); err != nil || got != (core.Cursor{}) {
		t.Errorf("got %+v and %v, want the beginning", got, err)
	}
	c := core.Cursor{Epoch: 1, Seq: 2}
	if err := c.UnmarshalText(nil); err != nil || c != (core.Cursor{}) {
		t.Errorf("got %+v and %v, want the beginning", c, err)
	}
}

func TestWhatIsNoCursorIsRefused(t *testing.T) {
	for _, text := range []string{
		"1", "1.", ".1", ".", "a.b", "1.2.3", "-1.2", "1.-2", "+1.2", " 1.2", "1.2 ", "1,2", "0x1.2", "1_0.2",
		"4294967296.1", "1.18446744073709551616", "*", "latest",
	} {
		c, err := core.ParseCursor(text)
		if !errors.Is(err, &core.Fault{Code: core.CodeInvalid}) || c != (core.Cursor{}) {
			t.Errorf("%q: got %+v and %v, want an invalid fault", text, c, err)
			continue
		}
		if !strings.Contains(err.Error(), "send one that this hub gave") {
			t.Errorf("%q: got %q, want it to say what to send", text, err)
		}
		kept := core.Cursor{Epoch: 3, Seq: 4}
		if err := kept.UnmarshalText([]byte(text)); err == nil || kept != (core.Cursor{Epoch: 3, Seq: 4}) {
			t.Errorf("%q: got %+v and %v, want an error and the cursor untouched", text, kept, err)
		}
	}
}
