package mcp

import (
	"crypto/rand"
	"testing"
)

func TestANameSaysWhichHubHasMadeIt(t *testing.T) {
	for index := range 1024 {
		name := letters(index) + rand.Text()[homeLetters:]
		if got, ok := indexIn(name); !ok || got != index {
			t.Fatalf("%s: got %d, %v, want %d", name, got, ok, index)
		}
	}
	for _, name := range []string{"", "A", "a1", "..", "ab-elicits"} {
		if got, ok := indexIn(name); ok {
			t.Errorf("%q: got %d, want no hub", name, got)
		}
	}
}
