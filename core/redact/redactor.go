package redact

import (
	"cmp"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/core"
)

// Mark stands for what was taken out.
const Mark = "[redacted]"

// The bounds of matches that are found over pieces of text, in bytes, for patterns without one
// of their own.
const (
	LongMatch  = 8 << 10
	ShortMatch = 256
)

// MinSecret is the minimum length of a known secret in bytes: a shorter one would be found in
// ordinary words.
const MinSecret = 8

// OwnTokens is the pattern of the tokens that the program makes: those of "dragoman token new", of
// which a hub keeps only the hash, and those that it gives agents for MCP.
const OwnTokens = core.TokenPrefix + `(?:[0-9a-f]{64}|mcp_[A-Z2-7]{26})`

// Redactor finds what is redacted. It does not change and is safe for concurrent use. A nil
// Redactor finds nothing.
type Redactor struct {
	patterns []pattern
	// heads has the secrets by their first bytes, and first which bytes these begin with.
	heads   map[head][]string
	first   [256]bool
	longest int // of the secrets
	context int // how much text before the end may be a part of a match
}

// head is the beginning of a secret.
type head [4]byte

type pattern struct {
	*regexp.Regexp
	prefix string // the literal text that every match begins with
	most   int    // the bytes of the longest match
}

// span is a part of a text.
type span struct{ from, to int }

// New returns a Redactor for patterns (RE2) and known secrets; nil if there are none. Secrets
// shorter than MinSecret are left out.
func New(patterns, secrets []string) (*Redactor, error) {
	r := &Redactor{heads: map[head][]string{}}
	for _, text := range patterns {
		p, err := compile(text)
		if err != nil {
			return nil, err
		}
		r.patterns = append(r.patterns, p)
		r.context = max(r.context, p.most)
	}
	for _, s := range secrets {
		if len(s) < MinSecret {
			continue
		}
		h := head([]byte(s[:len(head{})]))
		if !slices.Contains(r.heads[h], s) {
			r.heads[h] = append(r.heads[h], s)
		}
		r.first[s[0]] = true
		r.longest = max(r.longest, len(s))
	}
	for _, all := range r.heads {
		slices.SortFunc(all, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	}
	if len(r.patterns) == 0 && len(r.heads) == 0 {
		return nil, nil //nolint:nilnil // a nil Redactor finds nothing
	}
	r.context = max(r.context, r.longest)
	return r, nil
}

// compile reads a pattern.
func compile(text string) (pattern, error) {
	re, err := regexp.Compile(text)
	if err != nil {
		return pattern{}, fmt.Errorf("the pattern %q: %w", text, err)
	}
	if re.MatchString("") {
		return pattern{}, fmt.Errorf("the pattern %q matches the empty text: make it match something", text)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return pattern{}, fmt.Errorf("the pattern %q: %w", text, err)
	}
	p := pattern{Regexp: re}
	p.prefix, _ = re.LiteralPrefix()
	bound := ShortMatch
	if p.prefix != "" {
		bound = LongMatch
	}
	p.most = min(longest(tree, bound), bound)
	return p, nil
}

// longest returns the bytes of the longest match; more than bound if there is none.
func longest(re *syntax.Regexp, bound int) int {
	sum := func(times int) (n int) {
		for _, sub := range re.Sub {
			n += longest(sub, bound)
		}
		if times > 0 && n > bound/times {
			return bound + 1
		}
		return n * times
	}
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			return len(string(re.Rune))
		}
		return utf8.UTFMax * len(re.Rune)
	case syntax.OpCharClass:
		if len(re.Rune) == 0 {
			return 0
		}
		return max(1, utf8.RuneLen(re.Rune[len(re.Rune)-1]))
	case syntax.OpAnyCharNotNL, syntax.OpAnyChar:
		return utf8.UTFMax
	case syntax.OpStar, syntax.OpPlus:
		return bound + 1
	case syntax.OpRepeat:
		if re.Max < 0 {
			return bound + 1
		}
		return sum(re.Max)
	case syntax.OpAlternate:
		n := 0
		for _, sub := range re.Sub {
			n = max(n, longest(sub, bound))
		}
		return n
	}
	return sum(1)
}

// find returns the parts of a text that are redacted, in order and apart.
func (r *Redactor) find(text string) []span {
	var all []span
	if r.longest > 0 {
		for i := 0; i+MinSecret <= len(text); i++ {
			if !r.first[text[i]] {
				continue
			}
			for _, s := range r.heads[head([]byte(text[i:i+len(head{})]))] {
				if strings.HasPrefix(text[i:], s) {
					all = append(all, span{i, i + len(s)})
					break
				}
			}
		}
	}
	for _, p := range r.patterns {
		if !strings.Contains(text, p.prefix) {
			continue
		}
		for _, m := range p.FindAllStringIndex(text, -1) {
			if m[0] < m[1] {
				all = append(all, span{m[0], m[1]})
			}
		}
	}
	if len(all) < 2 {
		return all
	}
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	joined := all[:1]
	for _, s := range all[1:] {
		if last := &joined[len(joined)-1]; s.from < last.to {
			last.to = max(last.to, s.to)
		} else {
			joined = append(joined, s)
		}
	}
	return joined
}

// isPlain reports whether no part of a text is a match or may become one with more text.
func (r *Redactor) isPlain(text string) bool {
	return r.undecided(text) == len(text) && len(r.find(text)) == 0
}

// undecided returns where the first part of a text begins that may become a match with more
// text; the length of the text if there is none.
func (r *Redactor) undecided(text string) int {
	at := len(text)
	for i := max(0, len(text)-r.longest+1); i < at; i++ {
		if r.first[text[i]] && r.begins(text[i:]) {
			at = i
		}
	}
	for _, p := range r.patterns {
		at = min(at, p.undecided(text))
	}
	return at
}

// begins reports whether a secret begins with the text and is longer.
func (r *Redactor) begins(text string) bool {
	longer := func(all []string) bool {
		return slices.ContainsFunc(all, func(s string) bool { return len(s) > len(text) && strings.HasPrefix(s, text) })
	}
	if len(text) >= len(head{}) {
		return longer(r.heads[head([]byte(text[:len(head{})]))])
	}
	for h, all := range r.heads {
		if string(h[:len(text)]) == text && longer(all) {
			return true
		}
	}
	return false
}

// undecided is that of Redactor for one pattern. A match that ends before the text does is
// decided.
func (p pattern) undecided(text string) int {
	from := max(0, len(text)-p.most)
	if p.prefix == "" {
		return from
	}
	for {
		i := strings.Index(text[from:], p.prefix)
		if i < 0 {
			break
		}
		from += i
		m := p.FindStringIndex(text[from:])
		if len(m) == 0 || m[0] > 0 || from+m[1] == len(text) {
			return from
		}
		from += m[1]
	}
	return len(text) - p.begun(text)
}

// begun returns how much of the prefix a text ends with.
func (p pattern) begun(text string) int {
	if len(p.prefix) == 0 {
		return 0
	}
	end := text[max(0, len(text)-len(p.prefix)+1):]
	for i := range len(end) {
		if end[i] == p.prefix[0] && strings.HasPrefix(p.prefix, end[i:]) {
			return len(end) - i
		}
	}
	return 0
}

// Beginning returns the beginning of a text that goes on, without what is redacted: up to where a
// match may begin that ends in the rest.
func (r *Redactor) Beginning(text string) string {
	if r == nil {
		return text
	}
	cut := r.undecided(text)
	for _, m := range r.find(text) {
		if m.from < cut && m.to > cut { // what is redacted anyway needs no decision
			cut = m.to
		}
	}
	return r.Text(text[:cut])
}

// Text returns a text without what is redacted.
func (r *Redactor) Text(text string) string {
	if r == nil || text == "" {
		return text
	}
	all := r.find(text)
	if len(all) == 0 {
		return text
	}
	var b strings.Builder
	at := 0
	for _, s := range all {
		b.WriteString(text[at:s.from])
		b.WriteString(Mark)
		at = s.to
	}
	b.WriteString(text[at:])
	return b.String()
}
