package policy

import (
	"math/bits"
	"slices"
	"strings"
)

// lines is a set of rules, by their index.
type lines []uint64

func (l lines) add(rule int) { l[rule>>6] |= 1 << (rule & 63) }

// first returns the first rule that both sets have, -1 if there is none.
func (l lines) first(other lines) int {
	other = other[:len(l)]
	for i := range l {
		if m := l[i] & other[i]; m != 0 {
			return i<<6 | bits.TrailingZeros64(m)
		}
	}
	return -1
}

// and leaves what the other set has too.
func (l lines) and(other lines) {
	for i := range l {
		l[i] &= other[i]
	}
}

// or adds what the other set has.
func (l lines) or(other lines) {
	for i, rules := range other {
		l[i] |= rules
	}
}

// glob is a pattern with at least one *, which stands for any characters.
type glob struct {
	prefix, suffix string
	middle         []string // between two *, in order
}

func newGlob(pattern string) glob {
	parts := strings.Split(pattern, everything)
	last := len(parts) - 1
	return glob{parts[0], parts[last], slices.DeleteFunc(parts[1:last], func(s string) bool { return s == "" })}
}

// matches reports whether the glob matches a text. If the text is itself a pattern, it reports
// whether the glob matches all that the pattern matches: a * of the text is only matched by
// one of the glob, which matches everything.
func (g *glob) matches(text string) bool {
	if len(text) < len(g.prefix)+len(g.suffix) || !strings.HasPrefix(text, g.prefix) || !strings.HasSuffix(text, g.suffix) {
		return false
	}
	text = text[len(g.prefix) : len(text)-len(g.suffix)]
	for _, part := range g.middle {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return true
}

// index finds the rules whose patterns match an id. Patterns are found by the text that they
// begin with, or else end with, so that most of those that do not match cost nothing.
type index struct {
	exact              map[string][]int
	byPrefix, bySuffix affixes
	others             []globOf // that begin and end with a *
}

// affixes are globs by the text that they begin or end with.
type affixes struct {
	lengths []int // of these texts, each once
	globs   map[string][]globOf
}

type globOf struct {
	glob
	rule int
}

func (x *index) put(pattern string, rule int) {
	if !strings.Contains(pattern, everything) {
		if x.exact == nil {
			x.exact = map[string][]int{}
		}
		x.exact[pattern] = append(x.exact[pattern], rule)
		return
	}
	switch g := (globOf{newGlob(pattern), rule}); {
	case g.prefix != "":
		x.byPrefix.put(g.prefix, g)
	case g.suffix != "":
		x.bySuffix.put(g.suffix, g)
	default:
		x.others = append(x.others, g)
	}
}

func (a *affixes) put(text string, g globOf) {
	if a.globs == nil {
		a.globs = map[string][]globOf{}
	}
	if !slices.Contains(a.lengths, len(text)) {
		a.lengths = append(a.lengths, len(text))
	}
	a.globs[text] = append(a.globs[text], g)
}

// mark adds the rules that match the id.
func (x *index) mark(id string, to lines) {
	for _, rule := range x.exact[id] {
		to.add(rule)
	}
	for _, n := range x.byPrefix.lengths {
		if n <= len(id) {
			to.addMatching(x.byPrefix.globs[id[:n]], id)
		}
	}
	for _, n := range x.bySuffix.lengths {
		if n <= len(id) {
			to.addMatching(x.bySuffix.globs[id[len(id)-n:]], id)
		}
	}
	to.addMatching(x.others, id)
}

func (l lines) addMatching(globs []globOf, id string) {
	for i := range globs {
		if globs[i].matches(id) {
			l.add(globs[i].rule)
		}
	}
}

// needs are the capabilities of a receiver in a rule.
type needs struct {
	all  []string
	rule int
}
