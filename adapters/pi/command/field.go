package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// field describes a key of an object and what its value must be.
type field struct {
	name string
	// rules are checked in order; each problem is reported.
	rules []rule
	// check reports problems that take more than the value to find; nil checks nothing.
	check func(*Problems, Command)
	// members describe the object that is the value, or each object in its list.
	members []field
}

// rule returns what is wrong with a value, which may be absent, or "".
type rule func(strictjson.Value) string

// key returns a field with rules.
func key(name string, rules ...rule) field { return field{name: name, rules: rules} }

// checkFields reports what is wrong with the fields of an object at a path.
func checkFields(p *Problems, path string, object Command, fields []field) {
	for i := range fields {
		f := &fields[i]
		v := object.object.Get(f.name)
		for _, r := range f.rules {
			if problem := r(v); problem != "" {
				p.add(path+f.name, problem)
			}
		}
		if f.check != nil {
			f.check(p, object)
		}
		if f.members == nil {
			continue
		}
		if inner, ok := objectOf(v); ok {
			checkFields(p, f.name+".", inner, f.members)
		}
	}
}

// CheckKeys reports keys that differ from known ones only in case: ignored as unknown they
// would be lost silently, and two readers could disagree about them. All other unknown
// keys are harmless (section 14).
func CheckKeys(p *Problems, c Command) {
	fields := c.fields()
	checkCase(p, "", c, fields)
	for _, f := range fields {
		if f.members == nil {
			continue
		}
		if inner, ok := c.Object(f.name); ok {
			checkCase(p, f.name+".", inner, f.members)
		}
		items, _ := c.List(f.name)
		for i, item := range items {
			if inner, ok := objectOf(item); ok {
				checkCase(p, fmt.Sprintf("%s[%d].", f.name, i), inner, f.members)
			}
		}
	}
}

func checkCase(p *Problems, path string, object Command, fields []field) {
	first := len(*p)
	for key := range object.object.Members() {
		name := string(key)
		if known := similar(fields, name); known != "" {
			p.add(path+name, "Unknown key, did you mean '"+known+"'?")
		}
	}
	slices.Sort((*p)[first:])
}

// similar returns the field that an unknown key differs from only in case, or "".
func similar(fields []field, name string) string {
	found := ""
	for i := range fields {
		switch known := fields[i].name; {
		case known == name:
			return ""
		case strings.EqualFold(known, name):
			found = known
		}
	}
	return found
}
