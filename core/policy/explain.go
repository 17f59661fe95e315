package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
)

// Decision is the answer of a [Table] to one question, for people.
type Decision struct {
	Allowed bool
	// Rule decided; nil where none matches, and for an operator.
	Rule *Rule
	// Operator says that the principal is one, who passes every rule.
	Operator bool
	// Hidden says that the principal may ask the receiver, but not see it, and so does not
	// find it.
	Hidden bool
}

// Explain decides as Decide does, and says why.
func (t *Table) Explain(p core.Principal, right core.Right, to Target) Decision {
	if p.Operator {
		return Decision{Allowed: true, Operator: true}
	}
	i := t.find(&p, right, &to)
	if i < 0 {
		return Decision{}
	}
	r := t.rules[i]
	d := Decision{Allowed: !r.Deny, Rule: &r}
	if d.Allowed && right == core.RightAsk && !to.isHub() {
		sees, _ := t.Decide(p, core.RightSee, to)
		d.Hidden = !sees
	}
	return d
}

// String returns the decision as a sentence.
func (d Decision) String() string {
	switch {
	case d.Operator:
		return "yes: an operator passes every rule"
	case d.Rule == nil:
		return "no: no rule matches, which refuses"
	case d.Hidden:
		return fmt.Sprintf("yes, by line %d: %s; but without the right to see it, who asks does not find it: add see", d.Rule.Line, d.Rule)
	case d.Allowed:
		return fmt.Sprintf("yes, by line %d: %s", d.Rule.Line, d.Rule)
	}
	return fmt.Sprintf("no, by line %d: %s", d.Rule.Line, d.Rule)
}

// ParseTarget reads a receiver as people write it: the id of an agent, capability:NAME and
// domain:NAME for an agent of which only that is known, "*" for an agent of which nothing is
// known, pack:ID, and "hub" or "" for the hub itself.
func ParseTarget(text string) (Target, error) {
	if pack, is := strings.CutPrefix(text, packPrefix); is {
		if pack == "" {
			return Target{}, errors.New("the pack is missing: write pack:ID")
		}
		return Target{Pack: pack}, nil
	}
	to, err := core.ParseAddress(text)
	if err != nil {
		return Target{}, err
	}
	switch to.Reach() {
	case core.ReachAgent:
		return Target{Agent: to.Agent()}, nil
	case core.ReachCapability:
		return Target{Agent: everything, Capabilities: to.Capabilities()}, nil
	case core.ReachDomain:
		return Target{Agent: everything, Domains: []string{to.Domain()}}, nil
	case core.ReachAny:
		return Target{Agent: everything}, nil
	}
	return Target{}, nil
}

// Shadowed is a rule that can never decide, because earlier rules match all that it matches.
type Shadowed struct {
	Line int
	// By are the lines of the earlier rules.
	By []int
}

// String returns a warning for people.
func (s Shadowed) String() string {
	by := make([]string, len(s.By))
	for i, line := range s.By {
		by[i] = fmt.Sprint(line)
	}
	if len(by) == 1 {
		return fmt.Sprintf("line %d never decides: line %s matches all of it first; move it above that line, or remove it", s.Line, by[0])
	}
	return fmt.Sprintf("line %d never decides: lines %s match all of it first; move it above them, or remove it", s.Line, strings.Join(by, ", "))
}

// Rules returns the rules, in order.
func (t *Table) Rules() []Rule { return slices.Clone(t.rules) }

// Shadowed returns the rules that can never decide, in order. It finds those of which each
// principal, right and receiver is matched as a whole by one earlier rule; what only several
// of these match together it does not find.
func (t *Table) Shadowed() []Shadowed {
	var all []Shadowed
	s := shadows{table: t, who: map[string]lines{}, where: map[string]lines{}}
	for i := range t.rules {
		if by := s.over(i); by != nil {
			all = append(all, Shadowed{t.rules[i].Line, by})
		}
	}
	return all
}

// shadows finds the rules that match all that a pattern does. It asks the table about the
// pattern as if it were an id, since a * is only matched by another: see [glob.matches].
type shadows struct {
	table      *Table
	who, where map[string]lines
}

// over returns the lines of the rules that match all of a rule before it, nil if some of it
// is left.
func (s *shadows) over(rule int) (by []int) {
	r := &s.table.rules[rule]
	receivers := r.To
	if len(receivers) == 0 {
		receivers = []string{""}
	}
	for _, who := range r.Who {
		for _, right := range r.May {
			set := slices.Clone(s.ofWho(who))
			set.and(s.table.rights[right])
			if set.first(set) >= rule {
				return nil
			}
			for _, to := range receivers {
				first := set.first(s.ofTarget(to))
				if first >= rule {
					return nil
				}
				by = append(by, s.table.rules[first].Line)
			}
		}
	}
	slices.Sort(by)
	return slices.Compact(by)
}

func (s *shadows) ofWho(who string) lines {
	set := s.who[who]
	if set == nil {
		set = s.table.none()
		if role, is := strings.CutPrefix(who, rolePrefix); is {
			s.table.markPrincipal(everything, []string{role}, set)
		} else {
			s.table.markPrincipal(who, nil, set)
		}
		s.who[who] = set
	}
	return set
}

func (s *shadows) ofTarget(receiver string) lines {
	set := s.where[receiver]
	if set == nil {
		set = s.table.none()
		to, _ := ParseTarget(receiver) // it has been checked
		s.table.markTarget(&to, set)
		s.where[receiver] = set
	}
	return set
}
