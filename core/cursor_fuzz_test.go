package core_test

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
)

// FuzzParseCursor holds that a text is a cursor that reads back from its own text,
// or a short fault that says what to send.
func FuzzParseCursor(f *testing.F) {
	for _, text := range []string{
		"", "1.2", "0.0", "4294967295.18446744073709551615", "4294967296.0", "1.18446744073709551616", "01.002", "1.", ".1", "1.2.3", "-1.2", "+1.2",
		"1_0.2", "0x1.2", "latest", " 1.2", "١.٢", "1.2\n", strings.Repeat("1", 400),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := core.ParseCursor(text)
		if err != nil {
			checkRefusal(t, err)
			if c != (core.Cursor{}) {
				t.Errorf("got %+v beside the error, want the beginning", c)
			}
			return
		}
		if again, err := core.ParseCursor(c.String()); err != nil || again != c {
			t.Errorf("%q: got %+v and %v, want %+v", c, again, err, c)
		}
	})
}
