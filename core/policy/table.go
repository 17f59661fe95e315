package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
)

// Target is what a right is exercised on: an agent with what its card declares, or a pack. The
// zero Target is the hub itself. Its lists are not changed afterwards.
type Target struct {
	Agent        core.AgentID
	Capabilities []string
	Domains      []string
	Pack         string
	// Undeclared says that what the agent declares is not known, as it has left: a rule that
	// refuses agents of a capability or a domain refuses this one, too.
	Undeclared bool
}

// TargetOf returns the agent of a card as a Target.
func TargetOf(c core.Card) Target {
	return Target{Agent: c.ID, Capabilities: c.Capabilities, Domains: c.Domains}
}

// isHub reports whether the target is the hub itself.
func (to *Target) isHub() bool {
	return to.Agent == "" && to.Pack == "" && len(to.Capabilities) == 0 && len(to.Domains) == 0
}

// Table is a list of rules, compiled. The first rule that matches decides; where none does,
// the answer is no. It never changes and is safe for concurrent use. The zero Table refuses
// everything to everybody but operators.
//
// The rules that match a principal and a right, and those that match a receiver, are sets of
// bits, which the table remembers. A decision is the first bit that the two have in common.
type Table struct {
	rules  []Rule
	rights [core.RightOperate + 1]lines

	ids   index            // of principals
	roles map[string][]int // role:NAME

	everywhere   lines // the rules without receivers
	agents       index
	capabilities map[string][]needs // by the first that is needed
	domains      map[string][]int
	cautious     lines // the rules that refuse agents of a capability or a domain
	packs        index

	principals, receivers *memo
}

// Compile makes a Table. Its error names the line of each invalid rule and what to write.
func Compile(rules []Rule) (*Table, error) {
	t := &Table{rules: slices.Clone(rules), roles: map[string][]int{}, capabilities: map[string][]needs{}, domains: map[string][]int{}}
	t.principals, t.receivers = newMemo(), newMemo()
	for i := range t.rights {
		t.rights[i] = t.none()
	}
	t.everywhere, t.cautious = t.none(), t.none()
	var errs []error
	for i, r := range rules {
		if err := r.Check(); err != nil {
			errs = append(errs, fmt.Errorf("line %d: %w", r.Line, err))
			continue
		}
		t.put(i, r)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return t, nil
}

// none returns an empty set of rules.
func (t *Table) none() lines { return make(lines, (len(t.rules)+63)/64) }

// put adds a rule to the indexes.
func (t *Table) put(i int, r Rule) {
	for _, who := range r.Who {
		if role, is := strings.CutPrefix(who, rolePrefix); is {
			t.roles[role] = append(t.roles[role], i)
		} else {
			t.ids.put(who, i)
		}
	}
	for _, right := range r.May {
		t.rights[right].add(i)
	}
	if len(r.To) == 0 {
		t.everywhere.add(i)
	}
	for _, to := range r.To {
		if pack, is := strings.CutPrefix(to, packPrefix); is {
			t.packs.put(pack, i)
			continue
		}
		switch address, _ := core.ParseAddress(to); address.Reach() {
		case core.ReachCapability:
			t.markCautious(i, r)
			all := address.Capabilities()
			t.capabilities[all[0]] = append(t.capabilities[all[0]], needs{all, i})
		case core.ReachDomain:
			t.markCautious(i, r)
			d := bareDomain(address.Domain())
			t.domains[d] = append(t.domains[d], i)
		default:
			t.agents.put(to, i)
		}
	}
}

func (t *Table) markCautious(i int, r Rule) {
	if r.Deny {
		t.cautious.add(i)
	}
}

// bareDomain returns a domain without the .* that it may end with, as [core.Card.Answers]
// reads it.
func bareDomain(d string) string { return strings.TrimSuffix(d, ".*") }

// Decide reports whether the principal has the right on the target, and the line of the rule
// that decided. The line is 0 where no rule matches, which refuses, and for an operator, who
// passes every rule.
func (t *Table) Decide(p core.Principal, right core.Right, to Target) (allowed bool, line int) {
	if p.Operator {
		return true, 0
	}
	i := t.find(&p, right, &to)
	if i < 0 {
		return false, 0
	}
	r := &t.rules[i]
	return !r.Deny, r.Line
}

// find returns the first rule that matches, -1 if none does.
func (t *Table) find(p *core.Principal, right core.Right, to *Target) int {
	if len(t.rules) == 0 || int(right) >= len(t.rights) {
		return -1
	}
	return t.principal(p, right).first(t.target(to))
}

// principal returns the rules that match the principal and the right, whatever the receiver.
func (t *Table) principal(p *core.Principal, right core.Right) lines {
	k := key{id: p.ID, right: right}
	var roles []string
	if p.Credential != nil {
		roles = p.Credential.Roles
	}
	set := t.principals.find(k, roles, nil)
	if set == nil {
		set = t.none()
		t.markPrincipal(p.ID, roles, set)
		set.and(t.rights[right])
		t.principals.keep(k, roles, nil, set)
	}
	return set
}

func (t *Table) markPrincipal(id string, roles []string, set lines) {
	t.ids.mark(id, set)
	for _, role := range roles {
		for _, i := range t.roles[role] {
			set.add(i)
		}
	}
}

// target returns the rules that match the receiver, whoever wants what of it.
func (t *Table) target(to *Target) lines {
	if to.isHub() {
		return t.everywhere
	}
	k := key{id: string(to.Agent), undeclared: to.Undeclared}
	if to.Pack != "" {
		k = key{id: to.Pack, pack: true}
	}
	set := t.receivers.find(k, to.Capabilities, to.Domains)
	if set == nil {
		set = t.none()
		t.markTarget(to, set)
		t.receivers.keep(k, to.Capabilities, to.Domains, set)
	}
	return set
}

func (t *Table) markTarget(to *Target, set lines) {
	copy(set, t.everywhere)
	if to.isHub() {
		return
	}
	if to.Pack != "" {
		t.packs.mark(to.Pack, set)
		return
	}
	t.agents.mark(string(to.Agent), set)
	if to.Undeclared {
		set.or(t.cautious)
	}
	if len(t.capabilities) > 0 {
		t.markCapabilities(to.Capabilities, set)
	}
	if len(t.domains) == 0 {
		return
	}
	for _, d := range to.Domains {
		for d = bareDomain(d); d != ""; d = d[:max(strings.LastIndexByte(d, '.'), 0)] {
			for _, i := range t.domains[d] {
				set.add(i)
			}
		}
	}
}

func (t *Table) markCapabilities(all []string, set lines) {
	has := make(map[string]bool, len(all))
	for _, c := range all {
		has[c] = true
	}
	for c := range has {
	rules:
		for _, n := range t.capabilities[c] {
			for _, other := range n.all[1:] {
				if !has[other] {
					continue rules
				}
			}
			set.add(n.rule)
		}
	}
}
