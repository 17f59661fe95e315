package agent

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/core"
	"pgregory.net/rapid"
)

func TestOutputIsNeverSplitWithinACharacter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.String().Draw(t, "text")
		var got strings.Builder
		s := &textWriter{say: func(b core.Body) error {
			text := b.(core.Text).Text
			if !utf8.ValidString(text) {
				t.Fatalf("got %q, want whole characters", text)
			}
			got.WriteString(text)
			return nil
		}}
		for rest := []byte(want); len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			if _, err := s.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := s.flush(); err != nil {
			t.Fatal(err)
		}
		if got.String() != want {
			t.Fatalf("got %q, want %q", got.String(), want)
		}
	})
}
