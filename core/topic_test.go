package core_test

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
)

func TestAPatternStandsForTheTopicsThatItsWordsAllow(t *testing.T) {
	for pattern, topics := range map[string]map[string]bool{
		"hans.location": {"hans.location": true, "hans": false, "hans.location.gym": false, "Hans.location": false, "": false},
		"hans.*":        {"hans.location": true, "hans.mood": true, "hans": false, "hans.location.gym": false},
		"*.location":    {"hans.location": true, "kit.location": true, "location": false, "hans.mood": false},
		"hans.>":        {"hans.location": true, "hans.location.gym": true, "hans": false, "hansel.location": false},
		">":             {"hans": true, "hans.location.gym": true, "": false},
		"*":             {"hans": true, "hans.location": false},
		"a.*.c.>":       {"a.b.c.d": true, "a.b.c": false, "a.b.x.d": false, "a.b.c.d.e": true},
	} {
		if err := core.CheckTopicPattern(pattern); err != nil {
			t.Errorf("%q: got %v, want a pattern", pattern, err)
		}
		for topic, want := range topics {
			if got := core.MatchTopic(pattern, topic); got != want {
				t.Errorf("%q and %q: got %t, want %t", pattern, topic, got, want)
			}
		}
	}
}

func TestWhatIsNoPatternIsRefusedInWordsThatSayWhatToChange(t *testing.T) {
	for pattern, about := range map[string]string{
		"": "empty word", "a..b": "empty word", ".": "empty word", "a.": "empty word",
		">.a": "at the end", "a*.b": "one whole word", "a.b>": "one whole word",
		strings.Repeat("x", core.MaxTopicBytes+1): "at most 256",
	} {
		if err := core.CheckTopicPattern(pattern); core.AsFault(err).Code != core.CodeInvalid || !strings.Contains(err.Error(), about) {
			t.Errorf("%.20q: got %v, want invalid, about %q", pattern, err, about)
		}
	}
}

func FuzzMatchTopic(f *testing.F) {
	f.Add("a.*.>", "a.b.c")
	f.Add(">", "")
	f.Add("*", "a.b")
	f.Fuzz(func(t *testing.T, pattern, topic string) {
		if core.CheckTopicPattern(pattern) != nil {
			return
		}
		wild := strings.ContainsAny(pattern, "*>")
		if got := core.MatchTopic(pattern, topic); !wild && got != (pattern == topic) {
			t.Errorf("%q and %q: got %t, want that they are the same", pattern, topic, got)
		}
		if topic != "" && !core.MatchTopic(">", topic) {
			t.Errorf("> and %q: got no match, want one", topic)
		}
	})
}
