package core_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
)

// FuzzParseAddress holds that a text is an address that reads back from its own
// text and from JSON, or a short fault that says what to change.
func FuzzParseAddress(f *testing.F) {
	for _, text := range []string{
		"", "*", "hub", "ben", "Ben the 2nd: writer", "capability:write", "capability:write, test", "capability:a,,b", "a,b", "a, b,c", "a,a", ",", "a,*", "capability:",
		"domain:family.calendar", "domain:a..b", "domain:.", "capability:*", "domain:*", "capability:capability:a", " ben", "ben\n",
		"capability:a\nb", "domain:\x00", "capability:\xff", "domain:be\xffn", "be\xffn", "hub ", "**", "capability:" + strings.Repeat("a,", 300),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := core.ParseAddress(text)
		if err != nil {
			checkRefusal(t, err)
			if !a.IsZero() {
				t.Errorf("got %+v beside the error, want it unset", a)
			}
			return
		}
		if again, err := core.ParseAddress(a.String()); err != nil || again != a {
			t.Errorf("%q: got %+v and %v, want %+v", a, again, err, a)
		}
		raw, err := json.Marshal(a)
		if err != nil {
			t.Fatalf("writing %q: got %v, want no error", a, err)
		}
		var back core.Address
		if err := json.Unmarshal(raw, &back); err != nil || back != a {
			t.Errorf("%s: got %+v and %v, want %+v", raw, back, err, a)
		}
	})
}

// checkRefusal holds the refusal of a text to what a peer can be told: an invalid
// fault of one short line.
func checkRefusal(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, &core.Fault{Code: core.CodeInvalid}) {
		t.Errorf("got %v, want an invalid fault", err)
	}
	if message := core.AsFault(err).Message; message == "" || len(message) > 300 || strings.ContainsFunc(message, func(r rune) bool { return r < ' ' }) {
		t.Errorf("got the message %q, want one short line", message)
	}
}
