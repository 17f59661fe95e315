package pi

import (
	"fmt"
	"slices"
	"strings"
)

// field is one key of a command beside those of every command (section 4).
type field struct {
	name string
	// check adds what is wrong with it, or that it is missing; nil checks nothing.
	check func(*problems, command)
	// keys are those of the object that it holds, or of each object in its list; nil
	// of any other value.
	keys []string
}

// envelopeKeys are those of every command.
var envelopeKeys = []string{"type", "id", "sessionId", "dependsOn", "ifSessionVersion", "idempotencyKey"}

// checkKeys names the keys that differ from known ones in case alone: ignored as
// unknown they would be lost without a word, and two readers could take them for
// different things. All other unknown keys are harmless (section 14).
func checkKeys(p *problems, c command) {
	if c.spec == nil {
		checkSpelling(p, "", c, envelopeKeys)
		return
	}
	checkSpelling(p, "", c, c.spec.keys)
	for _, f := range c.spec.fields {
		if f.keys == nil {
			continue
		}
		if inner, ok := c.object(f.name); ok {
			checkSpelling(p, f.name+".", inner, f.keys)
		}
		items, _ := c.list(f.name)
		for i, raw := range items {
			if inner, ok := objectOf(raw); ok {
				checkSpelling(p, fmt.Sprintf("%s[%d].", f.name, i), inner, f.keys)
			}
		}
	}
}

func checkSpelling(p *problems, path string, c command, known []string) {
	from := len(*p)
	for _, m := range c.fields {
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
