package topic

import (
	"strings"

	"github.com/dragoman-hub/dragoman/core"
)

// maxPatternBytes bounds a pattern of topics.
const maxPatternBytes = 256

// CheckPattern returns an invalid Fault unless the text is a pattern of topics: words with
// dots between, where * stands for one word and > at the end for one or more.
func CheckPattern(pattern string) error {
	if len(pattern) > maxPatternBytes {
		return core.NewFault(core.CodeInvalid, "the topic has %d bytes: use at most %d", len(pattern), maxPatternBytes)
	}
	words := strings.Split(pattern, ".")
	for i, w := range words {
		switch {
		case w == "":
			return core.NewFault(core.CodeInvalid, "the topic %q has an empty word: send words with dots between, such as family.calendar", pattern)
		case w == ">" && i < len(words)-1:
			return core.NewFault(core.CodeInvalid, "in the topic %q > is not at the end: it stands for all words that follow", pattern)
		case len(w) > 1 && strings.ContainsAny(w, "*>"):
			return core.NewFault(core.CodeInvalid, "in the topic %q %q is a part of a word: * stands for one whole word, > for all that follows", pattern, w)
		}
	}
	return nil
}

// Match reports whether the pattern matches the topic.
func Match(pattern, topic string) bool {
	for {
		want, wants, more := strings.Cut(pattern, ".")
		have, has, goesOn := strings.Cut(topic, ".")
		switch {
		case want == ">" && !more:
			return topic != ""
		case want != "*" && want != have, more != goesOn:
			// > needs at least one word.
			return false
		case !more:
			return true
		}
		pattern, topic = wants, has
	}
}
