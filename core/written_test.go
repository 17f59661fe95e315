package core_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
)

func TestTurnsAreWrittenAsEachDialectWritesThem(t *testing.T) {
	turns := []core.Turn{{Text: "a", Written: new(core.Written)}, {Text: "b"}, {Text: "c", Written: new(core.Written)}}
	in := func(dialect string) string {
		return string(core.WriteTurns([]byte("["), turns, dialect, func(turn core.Turn) []byte { return []byte(dialect + turn.Text) }))
	}
	for _, dialect := range []string{"x", "y", "x", "x"} {
		if got, want := in(dialect), "[xa,xb,xc"; got != strings.ReplaceAll(want, "x", dialect) {
			t.Errorf("got %s, want %s", got, strings.ReplaceAll(want, "x", dialect))
		}
	}
	var group sync.WaitGroup
	for _, dialect := range []string{"x", "y", "z"} {
		group.Go(func() {
			for range 100 {
				if got, want := in(dialect), strings.ReplaceAll("[xa,xb,xc", "x", dialect); got != want {
					t.Errorf("many at once: got %s, want %s", got, want)
				}
			}
		})
	}
	group.Wait()
}

func TestATurnThatBecomesMuchLongerIsNotKeptWritten(t *testing.T) {
	turn, encoded := core.Turn{Text: strings.Repeat("x", 1000), Written: new(core.Written)}, 0
	for range 2 {
		core.WriteTurns(nil, []core.Turn{turn}, "test", func(core.Turn) []byte {
			encoded++
			return make([]byte, 6000)
		})
	}
	if encoded != 2 {
		t.Errorf("got it encoded %d times, want each time: it would cost more than the turn counts for", encoded)
	}
}
