package main_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A specItem is something that a specification says: a name, or a rule in its words.
type specItem struct {
	section, rule string
	// isName says that the rule is a name in a code block: a row has it in backticks.
	isName bool
}

var (
	protoField   = regexp.MustCompile(`^\s*(?:optional |repeated )?[\w.]+(?:<[^>]*>)?\s+(\w+) = \d+;`)
	protoValue   = regexp.MustCompile(`^\s*([A-Z][A-Z0-9_]+) = \d+;`)
	protoName    = regexp.MustCompile(`^\s*(?:message|enum|service|rpc) (\w+)`)
	jsonMember   = regexp.MustCompile(`"(\w+)"\s*:`)
	typeMember   = regexp.MustCompile(`^  (\w+)\??: [\w\[\]]+;`)
	httpHeader   = regexp.MustCompile(`^([A-Z][A-Za-z-]+): `)
	metricSample = regexp.MustCompile(`^([a-z_]+)(?:\{[^}]*\})? \d`)
	listItem     = regexp.MustCompile(`^\s*(?:[-*]|\d+\.)\s+(.*)`)
	normative    = regexp.MustCompile(`(?i)\b(must|should|never|always|shall|required|may not|cannot|immediately|only)\b`)
	sentenceEnd  = regexp.MustCompile(`[.!?](?:\s+|$)`)
)

// envelope has the members of every message, which one row of a ledger is enough for.
var envelope = []string{"type", "id", "timestamp", "payload", "kind", "ref"}

// isHeldIn reports whether a row of a ledger is about the item.
func (i specItem) isHeldIn(r ledgerRow) bool {
	if i.isName {
		return strings.Contains(r.rule, "`"+i.rule+"`") && (r.section == i.section || slices.Contains(envelope, i.rule))
	}
	return r.section == i.section && hasWords(plain(r.rule), plain(i.rule))
}

// hasWords reports whether a text has the words: context does not have text.
func hasWords(text, words string) bool {
	return regexp.MustCompile(`(^|\W)` + regexp.QuoteMeta(words) + `(\W|$)`).MatchString(text)
}

// membersOf are the names that a line of a code block declares, by the language of the block.
var membersOf = map[string][]*regexp.Regexp{
	"protobuf":   {protoField, protoValue, protoName},
	"json":       {jsonMember},
	"typescript": {typeMember},
	"http":       {httpHeader},
	"prometheus": {metricSample},
}

// specItems returns what a specification says: the names in its code blocks, the first cells of its tables, its
// list items, and each sentence that obliges somebody.
func specItems(text string) (items []specItem) {
	section, language, inCode, header := "", "", false, true
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if mark, ok := strings.CutPrefix(strings.TrimSpace(line), "```"); ok {
			inCode, language = !inCode, mark
			continue
		}
		if inCode {
			for _, pattern := range membersOf[language] {
				for _, m := range pattern.FindAllStringSubmatch(line, -1) {
					items = append(items, specItem{section, m[1], true})
				}
			}
			continue
		}
		if strings.HasPrefix(line, "#") {
			section = strings.TrimSpace(strings.TrimLeft(line, "#"))
			continue
		}
		if strings.HasPrefix(line, "|") {
			if cells := tableCells(line); len(cells) > 0 && !header {
				items = append(items, specItem{section, cells[0], false})
			}
			header = false
			continue
		}
		header = true
		items = append(items, proseItems(section, line)...)
	}
	return items
}

// proseItems returns the list item in a line, or the sentences in it that oblige somebody.
func proseItems(section, line string) (items []specItem) {
	if m := listItem.FindStringSubmatch(line); m != nil {
		return []specItem{{section, m[1], false}}
	}
	for _, sentence := range sentenceEnd.Split(line, -1) {
		if normative.MatchString(sentence) {
			items = append(items, specItem{section, strings.TrimLeft(sentence, "> "), false})
		}
	}
	return items
}

func TestTheItemsOfASpecificationAreItsNamesAndRules(t *testing.T) {
	const spec = "## Join\n\nFirst of all. An agent must say `hello`.\n\n| kind | use |\n|---|---|\n| `ping` | to be sure |\n\n- one rule\n\n```json\n{\"to\": 1}\n```\n"
	want := []specItem{{"Join", "An agent must say `hello`", false}, {"Join", "`ping`", false}, {"Join", "one rule", false}, {"Join", "to", true}}
	got := specItems(spec)
	if len(got) != len(want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	for i, w := range want {
		if got[i] != w {
			t.Errorf("got item %d %+v, want %+v", i, got[i], w)
		}
	}
}

func TestARowIsAboutWholeWords(t *testing.T) {
	item := specItem{section: "Say", rule: "**text**:"}
	if !item.isHeldIn(ledgerRow{section: "Say", rule: "`text`: what is said"}) {
		t.Error("a row with text: got it about something else, want it about text")
	}
	if item.isHeldIn(ledgerRow{section: "Say", rule: "`context`: what was said"}) {
		t.Error("a row with context: got it about text, want it about something else")
	}
}
