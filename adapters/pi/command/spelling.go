package command

import (
	"fmt"
	"slices"
	"strings"
)

// field is one key of a command beside those of every command (section 4).
type field struct {
	name string
	// check adds what is wrong with it, or that it is missing; nil checks nothing.
	check func(*Problems, Command)
	// keys are those of the object that it holds, or of each object in its list; nil
	// of any other value.
	keys []string
}

// envelopeKeys are those of every command.
var envelopeKeys = []string{"type", "id", "sessionId", "dependsOn", "ifSessionVersion", "idempotencyKey"}

// CheckKeys names the keys that differ from known ones in case alone: ignored as
// unknown they would be lost without a word, and two readers could take them for
// different things. All other unknown keys are harmless (section 14).
func CheckKeys(p *Problems, c Command) {
	if c.Spec == nil {
		checkSpelling(p, "", c, envelopeKeys)
		return
	}
	checkSpelling(p, "", c, c.Spec.keys)
	for _, f := range c.Spec.fields {
		if f.keys == nil {
			continue
		}
		if inner, ok := c.Object(f.name); ok {
			checkSpelling(p, f.name+".", inner, f.keys)
		}
		items, _ := c.List(f.name)
		for i, item := range items {
			if inner, ok := objectOf(item); ok {
				checkSpelling(p, fmt.Sprintf("%s[%d].", f.name, i), inner, f.keys)
			}
		}
	}
}

func checkSpelling(p *Problems, path string, c Command, known []string) {
	from := len(*p)
	for _, m := range c.Fields {
		key := string(m.Key)
		if slices.Contains(known, key) {
			continue
		}
		if i := slices.IndexFunc(known, func(name string) bool { return strings.EqualFold(key, name) }); i >= 0 {
			p.add(path+key, "Unknown key, did you mean '"+known[i]+"'?")
		}
	}
	slices.Sort((*p)[from:])
}
