package command

import (
	"fmt"
	"strings"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Problems are what is wrong with a command, in the order of the specification's
// reference. Clients see all of them at once.
type Problems []string

func (p *Problems) add(field, message string) { *p = append(*p, field+": "+message) }

// AnonymousPrefix begins the ids that the server gives to commands without one.
const AnonymousPrefix = "anon:"

// envelope are the fields that every command may have, in the order of their checks.
var envelope = []field{
	key("type", typeName),
	{name: "id", rules: []rule{identity}, check: checkReserved},
	key("idempotencyKey", identity),
	{name: "dependsOn", check: checkDependencies},
	key("ifSessionVersion", natural("Must be a non-negative integer")),
	{name: "sessionId", check: checkSession},
}

// fields are those that the type of the command knows.
func (c Command) fields() []field {
	if c.Spec == nil {
		return envelope
	}
	return c.Spec.fields
}

// validate returns why a command cannot be admitted, or "" (section 4.2).
func validate(c Command) string {
	var p Problems
	CheckKeys(&p, c)
	checkFields(&p, "", c, c.fields())
	if kind := c.object.Get("type"); c.Spec == nil && kind.Kind() == strictjson.String {
		p.add("type", "Unknown command type '"+c.Kind+"'")
	}
	if len(p) == 0 {
		return ""
	}
	return "Validation failed: " + strings.Join(p, "; ")
}

func checkReserved(p *Problems, c Command) {
	if strings.HasPrefix(c.id, AnonymousPrefix) {
		p.add("id", "Cannot use reserved prefix '"+AnonymousPrefix+"'")
	}
}

func checkDependencies(p *Problems, c Command) {
	if !c.Has("dependsOn") {
		return
	}
	items, ok := c.List("dependsOn")
	if !ok {
		p.add("dependsOn", "Must be an array of command IDs")
		return
	}
	if len(items) > maxDependencies {
		p.add("dependsOn", fmt.Sprintf("Too many dependencies (max %d)", maxDependencies))
	}
	for i, item := range items {
		if s, _ := item.Text(); !notBlankText(s) {
			p.add(fmt.Sprintf("dependsOn[%d]", i), "Must be a non-empty command ID string")
		}
	}
	if len(items) > 0 && !c.Has("id") {
		p.add("id", "Required when dependsOn is provided")
	}
}

func checkSession(p *Problems, c Command) {
	if c.Spec == nil {
		return
	}
	if c.Spec.Session && !notBlankText(c.Session) {
		p.add("sessionId", "Session commands must have a non-empty string 'sessionId'")
	}
	if c.Has("ifSessionVersion") && !c.Spec.Session && c.Kind != "delete_session" {
		p.add("ifSessionVersion", "Only supported for session-targeted commands")
	}
}

// checkTimes reports a beginning that is later than the end.
func checkTimes(p *Problems, c Command) {
	from, hasFrom := c.whole("fromTimestamp")
	to, hasTo := c.whole("toTimestamp")
	if hasFrom && hasTo && from > to && to >= 0 {
		p.add("fromTimestamp", "Must be less than or equal to toTimestamp")
	}
}
