package command

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// The bounds of a command, in UTF-16 code units.
const (
	MaxID           = 256
	maxDependencies = 32
	MaxPath         = 4096
	MaxMessage      = 200_000
	maxBash         = 20_000
	maxName         = 256
	maxHistory      = 500
)

// What is wrong with a field.
const (
	NotBlank       = "Must be a non-empty string if provided"
	requiredString = "Required string"
	ifString       = "Must be a string if provided"
	ifBoolean      = "Must be a boolean if provided"
)

// Problems are what is wrong with a command, in the order of the specification's
// reference: clients see all of them at once.
type Problems []string

func (p *Problems) add(field, message string) { *p = append(*p, field+": "+message) }

// validate returns the text of the failure, or "" of a command that may be
// admitted (section 4.2).
func validate(c Command) string {
	var p Problems
	CheckKeys(&p, c)
	kind, _ := c.Fields.Get("type")
	if !wire.IsString(kind) {
		p.add("type", "Command must have a string 'type' field")
	}
	if c.Has("id") && checkIdentity(&p, "id", c.id) && strings.HasPrefix(c.id, AnonymousPrefix) {
		p.add("id", "Cannot use reserved prefix '"+AnonymousPrefix+"'")
	}
	if c.Has("idempotencyKey") {
		key, _ := c.Text("idempotencyKey")
		checkIdentity(&p, "idempotencyKey", key)
	}
	checkDependencies(&p, c)
	if c.Has("ifSessionVersion") {
		if n, ok := c.whole("ifSessionVersion"); !ok || n < 0 {
			p.add("ifSessionVersion", "Must be a non-negative integer")
		}
	}
	switch {
	case c.Spec != nil:
		checkSession(&p, c)
		for _, f := range c.Spec.fields {
			if f.check != nil {
				f.check(&p, c)
			}
		}
	case wire.IsString(kind):
		p.add("type", "Unknown command type '"+c.Kind+"'")
	}
	if len(p) == 0 {
		return ""
	}
	return "Validation failed: " + strings.Join(p, "; ")
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// Units counts UTF-16 code units, in which the limits are.
func Units(s string) int {
	n := 0
	for _, r := range s {
		if n++; r > 0xFFFF {
			n++
		}
	}
	return n
}

// checkIdentity checks what a command has there that names it: "" of what is no string.
func checkIdentity(p *Problems, field, s string) bool {
	if blank(s) {
		p.add(field, NotBlank)
		return false
	}
	if Units(s) > MaxID {
		p.add(field, fmt.Sprintf("Too long (max %d chars)", MaxID))
	}
	return true
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
		if s, _ := item.Text(); blank(s) {
			p.add(fmt.Sprintf("dependsOn[%d]", i), "Must be a non-empty command ID string")
		}
	}
	if len(items) > 0 && !c.Has("id") {
		p.add("id", "Required when dependsOn is provided")
	}
}

func checkSession(p *Problems, c Command) {
	if c.Spec.Session && blank(c.Session) {
		p.add("sessionId", "Session commands must have a non-empty string 'sessionId'")
	}
	if c.Has("ifSessionVersion") && !c.Spec.Session && c.Kind != "delete_session" {
		p.add("ifSessionVersion", "Only supported for session-targeted commands")
	}
}

// The fields of single commands; table.go says whose.

// required wants a string that is not empty.
func required(name string) field { return requiredUpTo(name, 0) }

// requiredUpTo wants a string of at most most code units; zero sets no limit.
func requiredUpTo(name string, most int) field {
	return field{name: name, check: func(p *Problems, c Command) {
		switch raw, _ := c.Fields.Get(name); {
		case !wire.IsString(raw) || len(raw) == len(`""`):
			p.add(name, requiredString)
		case most > 0 && len(raw) > most: // a unit takes a byte at least
			if s, _ := c.Text(name); Units(s) > most {
				p.add(name, fmt.Sprintf("Too long (max %d chars)", most))
			}
		}
	}}
}

func optional(name string) field {
	return field{name: name, check: func(p *Problems, c Command) {
		if _, ok := c.Text(name); c.Has(name) && !ok {
			p.add(name, ifString)
		}
	}}
}

func optionalID(name string, most int) field {
	return field{name: name, check: func(p *Problems, c Command) {
		if !c.Has(name) {
			return
		}
		s, ok := c.Text(name)
		if !ok || blank(s) {
			p.add(name, NotBlank)
		}
		if most > 0 && Units(s) > most {
			p.add(name, fmt.Sprintf("Too long (max %d chars)", most))
		}
	}}
}

func checkTarget(p *Problems, c Command) {
	if blank(c.Session) {
		p.add("sessionId", "Required non-empty string")
	}
}

func checkPath(p *Problems, c Command) {
	s, ok := c.Text("sessionPath")
	switch {
	case !ok || s == "":
		p.add("sessionPath", requiredString)
	case Units(s) > MaxPath:
		p.add("sessionPath", fmt.Sprintf("sessionPath too long (max %d chars)", MaxPath))
	case strings.Contains(s, "..") || strings.HasPrefix(s, "~") || strings.Contains(s, "\x00"):
		p.add("sessionPath", "sessionPath contains potentially dangerous path components")
	}
}

func oneOf(name, message string, must bool, texts ...string) field {
	return field{name: name, check: func(p *Problems, c Command) {
		s, ok := c.Text(name)
		if (must || c.Has(name)) && (!ok || !slices.Contains(texts, s)) {
			p.add(name, message)
		}
	}}
}

func requiredBoolean(name string) field {
	return field{name: name, check: func(p *Problems, c Command) {
		if !c.Is(name, "true", "false") {
			p.add(name, "Required boolean")
		}
	}}
}

func checkName(p *Problems, c Command) {
	requiredUpTo("name", maxName).check(p, c)
	if name, _ := c.Text("name"); strings.ContainsFunc(name, func(r rune) bool { return r <= 31 || r == 127 }) {
		p.add("name", "Must not contain control characters")
	}
}

func checkTree(p *Problems, c Command) {
	if !c.Has("options") {
		return
	}
	o, ok := c.Object("options")
	if !ok {
		p.add("options", "Must be an object if provided")
		return
	}
	for _, f := range []string{"summarize", "replaceInstructions"} {
		if o.Has(f) && !o.Is(f, "true", "false") {
			p.add("options."+f, ifBoolean)
		}
	}
	for _, f := range []string{"customInstructions", "label"} {
		if _, ok := o.Text(f); o.Has(f) && !ok {
			p.add("options."+f, ifString)
		}
	}
}

var requestIDs = regexp.MustCompile(`^[a-zA-Z0-9:_-]+$`)

func checkRequestID(p *Problems, c Command) {
	requiredUpTo("requestId", MaxID).check(p, c)
	if id, _ := c.Text("requestId"); id != "" && !requestIDs.MatchString(id) {
		p.add("requestId", "Must contain only alphanumeric characters, colons, underscores, and dashes")
	}
}

func checkAnswer(p *Problems, c Command) {
	r, ok := c.Object("response")
	if !ok {
		p.add("response", "Required object")
		return
	}
	methods := []string{"select", "confirm", "input", "editor", "interview", "cancelled"}
	if m, ok := r.Text("method"); !ok || !slices.Contains(methods, m) {
		p.add("response.method", "Must be one of: "+strings.Join(methods, ", "))
	}
}

func timestamp(name string) field {
	return field{name: name, check: func(p *Problems, c Command) {
		if n, ok := c.whole(name); c.Has(name) && (!ok || n < 0) {
			p.add(name, "Must be a non-negative integer timestamp")
		}
	}}
}

// checkSpan checks the end of a span of time, and that its beginning is not behind it.
func checkSpan(p *Problems, c Command) {
	timestamp("toTimestamp").check(p, c)
	from, begins := c.whole("fromTimestamp")
	to, ends := c.whole("toTimestamp")
	if begins && ends && from > to && to >= 0 {
		p.add("fromTimestamp", "Must be less than or equal to toTimestamp")
	}
}

func checkLimit(p *Problems, c Command) {
	if !c.Has("limit") {
		return
	}
	switch n, ok := c.whole("limit"); {
	case !ok:
		p.add("limit", "Must be an integer if provided")
	case n < 1 || n > maxHistory:
		p.add("limit", fmt.Sprintf("Must be between 1 and %d", maxHistory))
	}
}

func checkThread(p *Problems, c Command) {
	if !c.Has("thread") {
		return
	}
	if id, ok := c.Text("thread"); !ok || blank(id) {
		p.add("thread", NotBlank)
	} else if len(id) > core.MaxIDBytes {
		p.add("thread", fmt.Sprintf("Too long (max %d bytes)", core.MaxIDBytes))
	}
}

// AnonymousPrefix begins the ids that the server gives to commands without one.
const AnonymousPrefix = "anon:"
