package topic_test

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/topic"
)

func TestAPatternMatchesTopics(t *testing.T) {
	for pattern, topics := range map[string]map[string]bool{
		"hans.location": {"hans.location": true, "hans": false, "hans.location.gym": false, "Hans.location": false, "": false},
		"hans.*":        {"hans.location": true, "hans.mood": true, "hans": false, "hans.location.gym": false},
		"*.location":    {"hans.location": true, "kit.location": true, "location": false, "hans.mood": false},
		"hans.>":        {"hans.location": true, "hans.location.gym": true, "hans": false, "hansel.location": false},
		">":             {"hans": true, "hans.location.gym": true, "": false},
		"*":             {"hans": true, "hans.location": false},
		"a.*.c.>":       {"a.b.c.d": true, "a.b.c": false, "a.b.x.d": false, "a.b.c.d.e": true},
	} {
		if err := topic.CheckPattern(pattern); err != nil {
			t.Errorf("%q: got %v, want a pattern", pattern, err)
		}
		for name, want := range topics {
			if got := topic.Match(pattern, name); got != want {
				t.Errorf("%q and %q: got %t, want %t", pattern, name, got, want)
			}
		}
	}
}

func TestAnInvalidPatternIsRefusedWithAnExplanation(t *testing.T) {
	for pattern, about := range map[string]string{
		"": "empty word", "a..b": "empty word", ".": "empty word", "a.": "empty word",
		">.a": "at the end", "a*.b": "one whole word", "a.b>": "one whole word",
		strings.Repeat("x", 257): "at most 256",
	} {
		if err := topic.CheckPattern(pattern); core.AsFault(err).Code != core.CodeInvalid || !strings.Contains(err.Error(), about) {
			t.Errorf("%.20q: got %v, want invalid, about %q", pattern, err, about)
		}
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("a.*.>", "a.b.c")
	f.Add(">", "")
	f.Add("*", "a.b")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if topic.CheckPattern(pattern) != nil {
			return
		}
		wild := strings.ContainsAny(pattern, "*>")
		if got := topic.Match(pattern, name); !wild && got != (pattern == name) {
			t.Errorf("%q and %q: got %t, want %t", pattern, name, got, pattern == name)
		}
		if name != "" && !topic.Match(">", name) {
			t.Errorf("> and %q: got no match, want one", name)
		}
	})
}
