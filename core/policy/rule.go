package policy

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/suggest"
)

// Rule is one line of the rules: it allows, or refuses, some principals some rights on some
// receivers. A rule matches when one of its Who, one of its May and one of its To do.
type Rule struct {
	// Who are ids of principals, with * for any characters, and role:NAME for every principal
	// whose credential has the role.
	Who []string
	// May are the rights.
	May []core.Right
	// To are the receivers: ids of agents and, after pack:, of packs, both with * for any
	// characters; capability:NAME, for agents that declare it, or all of capability:A,B;
	// domain:NAME, for agents that declare the domain or one below it. "*" is every agent.
	// Without To a rule holds everywhere: for every agent, every pack and the hub itself.
	To []string
	// Deny refuses what the rule would allow.
	Deny bool
	// Line is where the rule begins in its file.
	Line int
}

// Prefixes in Who and To.
const (
	rolePrefix       = "role:"
	packPrefix       = "pack:"
	capabilityPrefix = "capability:"
	domainPrefix     = "domain:"

	everything = "*"
)

// Rights returns every right, in order.
func Rights() []core.Right {
	var all []core.Right
	for r := core.RightSee; r <= core.RightOperate; r++ {
		all = append(all, r)
	}
	return all
}

// rightNames returns the names of all rights.
func rightNames() []string {
	var all []string
	for _, r := range Rights() {
		all = append(all, r.String())
	}
	return all
}

// ParseRight returns the right with the name. The error suggests the closest name.
func ParseRight(name string) (core.Right, error) {
	names := rightNames()
	if i := slices.Index(names, name); i >= 0 {
		return Rights()[i], nil
	}
	if near := suggest.Nearest(name, names); near != "" {
		return 0, fmt.Errorf("unknown right %q: did you mean %s?", name, near)
	}
	return 0, fmt.Errorf("unknown right %q: write some of %s, or \"*\" for all", name, strings.Join(names, ", "))
}

// CheckWho returns an error that says what to write if no principal can match text.
func CheckWho(text string) error {
	role, isRole := strings.CutPrefix(text, rolePrefix)
	switch {
	case isRole && (strings.TrimSpace(role) == "" || strings.TrimSpace(role) != role || strings.ContainsFunc(role, unicode.IsControl)):
		return fmt.Errorf("who: %q names no role: write role:NAME", text)
	case isRole && strings.Contains(role, "*"):
		return fmt.Errorf("who: the role in %q has a *, but roles are compared whole: write role:NAME for each", text)
	case isRole:
		return nil
	}
	if near := misspelt(text, rolePrefix); near != "" {
		return fmt.Errorf("who: unknown prefix in %q: did you mean %s?", text, near)
	}
	if err := checkGlob(text); err != nil {
		return fmt.Errorf("who: no principal is named %q (%w): write the name of a principal such as alice, with * for any characters, or role:NAME", text, err)
	}
	return nil
}

// CheckTo returns an error that says what to write if no receiver can match text.
func CheckTo(text string) error {
	if id, isPack := strings.CutPrefix(text, packPrefix); isPack {
		if strings.TrimSpace(id) != id || id == "" || strings.ContainsFunc(id, unicode.IsControl) {
			return fmt.Errorf("to: %q names no pack: write pack:ID, with * for any characters", text)
		}
		return nil
	}
	if strings.HasPrefix(text, capabilityPrefix) || strings.HasPrefix(text, domainPrefix) {
		_, err := core.ParseAddress(text)
		switch {
		case err != nil:
			return fmt.Errorf("to: %w", err)
		case strings.Contains(strings.TrimSuffix(text, ".*"), "*"):
			return fmt.Errorf("to: %q has a *, but capabilities and domains are compared whole: write each (a domain includes those below it)", text)
		}
		return nil
	}
	if text == "hub" {
		return errors.New("to: the hub is no agent: leave to out for a rule that holds everywhere, the hub included")
	}
	if near := misspelt(text, capabilityPrefix, domainPrefix, packPrefix, rolePrefix); near == rolePrefix+afterColon(text) {
		return fmt.Errorf("to: %q is a role, which is no receiver: write it under who", text)
	} else if near != "" {
		return fmt.Errorf("to: unknown prefix in %q: did you mean %s?", text, near)
	}
	err := checkGlob(text)
	if err == nil && strings.Contains(text, ",") {
		err = errors.New("it has a comma: write a list of ids")
	}
	if err != nil {
		return fmt.Errorf("to: no agent has the id %q (%w): write the id of an agent, with * for any characters, capability:NAME, domain:NAME or pack:ID", text, err)
	}
	return nil
}

func afterColon(text string) string { return text[strings.IndexByte(text, ':')+1:] }

// misspelt returns text with the prefix that was meant, if it begins with a word and a colon
// that resemble one of the prefixes.
func misspelt(text string, prefixes ...string) string {
	word, rest, has := strings.Cut(text, ":")
	if !has {
		return ""
	}
	near := suggest.Nearest(word+":", prefixes)
	if near == "" {
		return ""
	}
	return near + rest
}

// checkGlob returns an error if no id matches the pattern.
func checkGlob(pattern string) error {
	if strings.Trim(pattern, "*") == "" && pattern != "" {
		return nil
	}
	if len(pattern) > core.MaxIDBytes {
		return fmt.Errorf("it has %d bytes: use at most %d", len(pattern), core.MaxIDBytes)
	}
	// A digit may stand beside the letters of every script.
	return core.CheckName(strings.ReplaceAll(pattern, "*", "1"))
}

// Check returns an error that says what to write if the rule can never match, or says nothing.
func (r Rule) Check() error {
	if len(r.Who) == 0 {
		return errors.New("the rule names nobody: write who: and a principal, role:NAME or \"*\"")
	}
	if len(r.May) == 0 {
		return fmt.Errorf("the rule names no right: write may: and some of %s", strings.Join(rightNames(), ", "))
	}
	var errs []error
	for _, text := range r.Who {
		errs = append(errs, CheckWho(text))
	}
	for _, right := range r.May {
		if right < core.RightSee || right > core.RightOperate {
			errs = append(errs, fmt.Errorf("may: unknown right %s", right))
		}
	}
	for _, text := range r.To {
		errs = append(errs, CheckTo(text))
	}
	return errors.Join(errs...)
}

// String returns the rule as it may be written in a file of rules, on one line.
func (r Rule) String() string {
	var b strings.Builder
	b.WriteString("{who: " + inline(r.Who))
	may := make([]string, len(r.May))
	for i, right := range r.May {
		may[i] = right.String()
	}
	if slices.Equal(may, rightNames()) {
		may = []string{everything}
	}
	b.WriteString(", may: " + inline(may))
	if len(r.To) > 0 {
		b.WriteString(", to: " + inline(r.To))
	}
	if r.Deny {
		b.WriteString(", deny: true")
	}
	return b.String() + "}"
}

// inline returns texts as YAML: one alone, several as a list.
func inline(all []string) string {
	quoted := make([]string, len(all))
	for i, text := range all {
		quoted[i] = yamlText(text)
	}
	if len(quoted) == 1 {
		return quoted[0]
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// yamlText returns a text as YAML, in quotes unless it is plainly text.
func yamlText(text string) string {
	special := func(r rune) bool {
		return r >= 0x80 || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./@*:", r)
	}
	switch strings.ToLower(text) {
	case "", "true", "false", "null", "yes", "no", "on", "off", "y", "n":
		return strconv.Quote(text)
	}
	if !unicode.IsLetter(rune(text[0])) || strings.ContainsFunc(text, special) || strings.HasSuffix(text, ":") {
		return strconv.Quote(text)
	}
	return text
}
