package credentials

import (
	"errors"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
)

// What to write in a file of rules.
const (
	wantRules = `write rules: and below it a list, such as - {who: alice, may: [see, ask], to: "*"}`
	wantWho   = `the name of a principal such as alice, with * for any characters, or role:NAME`
	wantMay   = `some of see, ask, read, steer, approve, answer, provide and operate, or "*" for all`
	wantTo    = `the id of an agent, with * for any characters, capability:NAME, domain:NAME or pack:ID; leave to out for a rule that holds everywhere`
)

// ReadRules reads the file of rules (the setting auth.rules) and compiles it. The error has a
// line for each mistake. [policy.Table.Shadowed] of the result has the warnings.
func ReadRules(path string) (*policy.Table, error) {
	f := &file{setting: "auth.rules", path: path}
	root, err := f.read(wantRules)
	if err != nil {
		return nil, err
	}
	rules := f.rules(root)
	if err := errors.Join(f.mistakes...); err != nil {
		return nil, err
	}
	return policy.Compile(rules)
}

// rules reads the whole file.
func (f *file) rules(root *yaml.Node) []policy.Rule {
	if root.Kind == yaml.SequenceNode {
		f.fail(root, "the list stands alone: %s", wantRules)
		return nil
	}
	if root.Kind != yaml.MappingNode {
		f.fail(root, "the file is %s: %s", kindOf(root), wantRules)
		return nil
	}
	list := f.fields(root, "the file", "rules")["rules"]
	switch {
	case list == nil && len(f.mistakes) > 0:
		return nil
	case list == nil:
		f.fail(root, "there are no rules: %s", wantRules)
		return nil
	case list.Kind != yaml.SequenceNode || len(list.Content) == 0:
		f.fail(list, "rules: want a list of at least one: without a rule, nobody but operators may do anything; %s", wantRules)
		return nil
	}
	var all []policy.Rule
	for _, n := range list.Content {
		all = append(all, f.rule(n))
	}
	return all
}

// rule reads one rule. What it returns is of use only if no mistake was noted.
func (f *file) rule(n *yaml.Node) policy.Rule {
	r := policy.Rule{Line: n.Line}
	of := f.fields(n, "the rule", "who", "may", "to", "deny")
	if of == nil {
		return r
	}
	if who := of["who"]; who == nil {
		f.fail(n, "the rule names nobody: write who: and %s", wantWho)
	} else {
		r.Who = f.checked(who, "who", wantWho, policy.CheckWho)
	}
	if may := of["may"]; may == nil {
		f.fail(n, "the rule names no right: write may: and %s", wantMay)
	} else {
		r.May = f.rights(may)
	}
	if to := of["to"]; to != nil {
		r.To = f.checked(to, "to", wantTo, policy.CheckTo)
	}
	if deny := of["deny"]; deny != nil {
		r.Deny = f.flag(deny, "deny")
	}
	return r
}

// checked reads texts that pass the check.
func (f *file) checked(n *yaml.Node, what, example string, check func(string) error) (all []string) {
	for _, item := range f.texts(n, what, example) {
		if err := check(item.Value); err != nil {
			f.fail(item, "%w", err)
		}
		all = append(all, item.Value)
	}
	return all
}

// rights reads rights, of which "*" is all.
func (f *file) rights(n *yaml.Node) (all []core.Right) {
	for _, item := range f.texts(n, "may", wantMay) {
		if item.Value == "*" {
			all = append(all, policy.Rights()...)
			continue
		}
		right, err := policy.ParseRight(strings.TrimSpace(item.Value))
		if err != nil {
			f.fail(item, "may: %w", err)
		}
		all = append(all, right)
	}
	return all
}
