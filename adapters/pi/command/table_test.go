package command

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

func TestCommandsThatChangeASessionHaveATimeLimitOfTheirOwn(t *testing.T) {
	for kind, c := range Table {
		if c.Mutates && !c.Control && c.Limit == 0 {
			t.Errorf("%s changes a session and has the short limit, want Long or unlimited", kind)
		}
	}
}

func TestEveryKeyOfEveryCommandIsCaseSensitive(t *testing.T) {
	kinds := slices.Sorted(maps.Keys(Table))
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		var known []string
		for _, f := range Table[kind].fields {
			if f.name != "type" {
				known = append(known, f.name)
			}
		}
		key := rapid.SampledFrom(known).Draw(t, "key")
		other := []rune(key)
		i := rapid.IntRange(0, len(other)-1).Draw(t, "letter")
		if other[i] = unicode.ToUpper(other[i]); string(other) == key {
			other[i] = unicode.ToLower(other[i])
		}
		c, err := Decode(strictjson.Encode(map[string]any{"type": kind, string(other): 1}), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := validate(c), string(other)+": Unknown key, did you mean '"+key+"'?"; !strings.Contains(got, want) {
			t.Fatalf("%s with %s: got %q, want among it %q", kind, string(other), got, want)
		}
	})
}
