package pi

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
)

// The bounds of a command, in UTF-16 code units.
const (
	maxID           = 256
	maxDependencies = 32
	maxPath         = 4096
	maxMessage      = 200_000
	maxBash         = 20_000
	maxName         = 256
	maxHistory      = 500
)

const (
	notBlank       = "Must be a non-empty string if provided"
	requiredString = "Required string"
	ifString       = "Must be a string if provided"
	ifBoolean      = "Must be a boolean if provided"
)

// problems are what is wrong with a command, in the order of the specification's
// reference: clients see all of them at once.
type problems []string

func (p *problems) add(field, message string) { *p = append(*p, field+": "+message) }

// validate returns the text of the failure, or "" of a command that may be
// admitted (section 4.2).
func validate(c command) string {
	var p problems
	checkKeys(&p, c)
	kind, _ := c.fields.get("type")
	if !wire.IsString(kind) {
		p.add("type", "Command must have a string 'type' field")
	}
	if c.has("id") && checkIdentity(&p, "id", c.id) && strings.HasPrefix(c.id, anonymous) {
		p.add("id", "Cannot use reserved prefix '"+anonymous+"'")
	}
	if c.has("idempotencyKey") {
		key, _ := c.text("idempotencyKey")
		checkIdentity(&p, "idempotencyKey", key)
	}
	checkDependencies(&p, c)
	if c.has("ifSessionVersion") {
		if n, ok := c.whole("ifSessionVersion"); !ok || n < 0 {
			p.add("ifSessionVersion", "Must be a non-negative integer")
		}
	}
	switch {
	case c.spec != nil:
		checkSession(&p, c)
		for _, f := range c.spec.fields {
			if f.check != nil {
				f.check(&p, c)
			}
		}
	case wire.IsString(kind):
		p.add("type", "Unknown command type '"+c.kind+"'")
	}
	if len(p) == 0 {
		return ""
	}
	return "Validation failed: " + strings.Join(p, "; ")
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// units counts UTF-16 code units, in which the limits are.
func units(s string) int {
	n := 0
	for _, r := range s {
		if n++; r > 0xFFFF {
			n++
		}
	}
	return n
}

// checkIdentity checks what a command has there that names it: "" of what is no string.
func checkIdentity(p *problems, field, s string) bool {
	if blank(s) {
		p.add(field, notBlank)
		return false
	}
	if units(s) > maxID {
		p.add(field, fmt.Sprintf("Too long (max %d chars)", maxID))
	}
	return true
}

func checkDependencies(p *problems, c command) {
	if !c.has("dependsOn") {
		return
	}
	items, ok := c.list("dependsOn")
	if !ok {
		p.add("dependsOn", "Must be an array of command IDs")
		return
	}
	if len(items) > maxDependencies {
		p.add("dependsOn", fmt.Sprintf("Too many dependencies (max %d)", maxDependencies))
	}
	for i, raw := range items {
		var s string
		if json.Unmarshal(raw, &s) != nil || blank(s) {
			p.add(fmt.Sprintf("dependsOn[%d]", i), "Must be a non-empty command ID string")
		}
	}
	if len(items) > 0 && !c.has("id") {
		p.add("id", "Required when dependsOn is provided")
	}
}

func checkSession(p *problems, c command) {
	if c.spec.session && blank(c.session) {
		p.add("sessionId", "Session commands must have a non-empty string 'sessionId'")
	}
	if c.has("ifSessionVersion") && !c.spec.session && c.kind != "delete_session" {
		p.add("ifSessionVersion", "Only supported for session-targeted commands")
	}
}

// The fields of single commands; table.go says whose.

// required wants a string that is not empty.
func required(name string) field { return requiredUpTo(name, 0) }

// requiredUpTo wants a string of at most most code units; zero sets no limit.
func requiredUpTo(name string, most int) field {
	return field{name: name, check: func(p *problems, c command) {
		switch raw, _ := c.fields.get(name); {
		case !wire.IsString(raw) || len(raw) == len(`""`):
			p.add(name, requiredString)
		case most > 0 && len(raw) > most: // a unit takes a byte at least
			if s, _ := c.text(name); units(s) > most {
				p.add(name, fmt.Sprintf("Too long (max %d chars)", most))
			}
		}
	}}
}

func optional(name string) field {
	return field{name: name, check: func(p *problems, c command) {
		if _, ok := c.text(name); c.has(name) && !ok {
			p.add(name, ifString)
		}
	}}
}

func optionalID(name string, most int) field {
	return field{name: name, check: func(p *problems, c command) {
		if !c.has(name) {
			return
		}
		s, ok := c.text(name)
		if !ok || blank(s) {
			p.add(name, notBlank)
		}
		if most > 0 && units(s) > most {
			p.add(name, fmt.Sprintf("Too long (max %d chars)", most))
		}
	}}
}

func checkTarget(p *problems, c command) {
	if blank(c.session) {
		p.add("sessionId", "Required non-empty string")
	}
}

func checkPath(p *problems, c command) {
	s, ok := c.text("sessionPath")
	switch {
	case !ok || s == "":
		p.add("sessionPath", requiredString)
	case units(s) > maxPath:
		p.add("sessionPath", fmt.Sprintf("sessionPath too long (max %d chars)", maxPath))
	case strings.Contains(s, "..") || strings.HasPrefix(s, "~") || strings.Contains(s, "\x00"):
		p.add("sessionPath", "sessionPath contains potentially dangerous path components")
	}
}

func oneOf(name, message string, must bool, texts ...string) field {
	return field{name: name, check: func(p *problems, c command) {
		s, ok := c.text(name)
		if (must || c.has(name)) && (!ok || !slices.Contains(texts, s)) {
			p.add(name, message)
		}
	}}
}

func requiredBoolean(name string) field {
	return field{name: name, check: func(p *problems, c command) {
		if !c.is(name, "true", "false") {
			p.add(name, "Required boolean")
		}
	}}
}

func checkName(p *problems, c command) {
	requiredUpTo("name", maxName).check(p, c)
	if name, _ := c.text("name"); strings.ContainsFunc(name, func(r rune) bool { return r <= 31 || r == 127 }) {
		p.add("name", "Must not contain control characters")
	}
}

func checkTree(p *problems, c command) {
	if !c.has("options") {
		return
	}
	o, ok := c.object("options")
	if !ok {
		p.add("options", "Must be an object if provided")
		return
	}
	for _, f := range []string{"summarize", "replaceInstructions"} {
		if o.has(f) && !o.is(f, "true", "false") {
			p.add("options."+f, ifBoolean)
		}
	}
	for _, f := range []string{"customInstructions", "label"} {
		if _, ok := o.text(f); o.has(f) && !ok {
			p.add("options."+f, ifString)
		}
	}
}

var requestIDs = regexp.MustCompile(`^[a-zA-Z0-9:_-]+$`)

func checkRequestID(p *problems, c command) {
	requiredUpTo("requestId", maxID).check(p, c)
	if id, _ := c.text("requestId"); id != "" && !requestIDs.MatchString(id) {
		p.add("requestId", "Must contain only alphanumeric characters, colons, underscores, and dashes")
	}
}

func checkAnswer(p *problems, c command) {
	r, ok := c.object("response")
	if !ok {
		p.add("response", "Required object")
		return
	}
	methods := []string{"select", "confirm", "input", "editor", "interview", "cancelled"}
	if m, ok := r.text("method"); !ok || !slices.Contains(methods, m) {
		p.add("response.method", "Must be one of: "+strings.Join(methods, ", "))
	}
}

func timestamp(name string) field {
	return field{name: name, check: func(p *problems, c command) {
		if n, ok := c.whole(name); c.has(name) && (!ok || n < 0) {
			p.add(name, "Must be a non-negative integer timestamp")
		}
	}}
}

// checkSpan checks the end of a span of time, and that its beginning is not behind it.
func checkSpan(p *problems, c command) {
	timestamp("toTimestamp").check(p, c)
	from, begins := c.whole("fromTimestamp")
	to, ends := c.whole("toTimestamp")
	if begins && ends && from > to && to >= 0 {
		p.add("fromTimestamp", "Must be less than or equal to toTimestamp")
	}
}

func checkLimit(p *problems, c command) {
	if !c.has("limit") {
		return
	}
	switch n, ok := c.whole("limit"); {
	case !ok:
		p.add("limit", "Must be an integer if provided")
	case n < 1 || n > maxHistory:
		p.add("limit", fmt.Sprintf("Must be between 1 and %d", maxHistory))
	}
}
