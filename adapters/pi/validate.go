package pi

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
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
	_, isText := c.text("type")
	if !isText {
		p.add("type", "Command must have a string 'type' field")
	}
	if c.has("id") && checkIdentity(&p, c, "id") && strings.HasPrefix(c.id, anonymous) {
		p.add("id", "Cannot use reserved prefix '"+anonymous+"'")
	}
	if c.has("idempotencyKey") {
		checkIdentity(&p, c, "idempotencyKey")
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
		if c.spec.check != nil {
			c.spec.check(&p, c)
		}
	case isText:
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

func checkIdentity(p *problems, c command, field string) bool {
	s, ok := c.text(field)
	if !ok || blank(s) {
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

// The checks of single commands; table.go says whose.

func check(fs ...func(*problems, command)) func(*problems, command) {
	return func(p *problems, c command) {
		for _, f := range fs {
			f(p, c)
		}
	}
}

// required wants a string that is not empty.
func required(field string) func(*problems, command) { return requiredUpTo(field, 0) }

// requiredUpTo wants a string of at most max code units; zero sets no limit.
func requiredUpTo(field string, most int) func(*problems, command) {
	return func(p *problems, c command) {
		s, ok := c.text(field)
		switch {
		case !ok || s == "":
			p.add(field, requiredString)
		case most > 0 && units(s) > most:
			p.add(field, fmt.Sprintf("Too long (max %d chars)", most))
		}
	}
}

func optional(field string) func(*problems, command) {
	return func(p *problems, c command) {
		if _, ok := c.text(field); c.has(field) && !ok {
			p.add(field, ifString)
		}
	}
}

func optionalID(field string, most int) func(*problems, command) {
	return func(p *problems, c command) {
		if !c.has(field) {
			return
		}
		s, ok := c.text(field)
		if !ok || blank(s) {
			p.add(field, notBlank)
		}
		if most > 0 && units(s) > most {
			p.add(field, fmt.Sprintf("Too long (max %d chars)", most))
		}
	}
}

func target(p *problems, c command) {
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

func oneOf(field, message string, must bool, texts ...string) func(*problems, command) {
	return func(p *problems, c command) {
		s, ok := c.text(field)
		if (must || c.has(field)) && (!ok || !slices.Contains(texts, s)) {
			p.add(field, message)
		}
	}
}

func requiredBoolean(field string) func(*problems, command) {
	return func(p *problems, c command) {
		if !c.is(field, "true", "false") {
			p.add(field, "Required boolean")
		}
	}
}

func checkName(p *problems, c command) {
	requiredUpTo("name", maxName)(p, c)
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

func checkAnswer(p *problems, c command) {
	requiredUpTo("requestId", maxID)(p, c)
	if id, _ := c.text("requestId"); id != "" && !requestIDs.MatchString(id) {
		p.add("requestId", "Must contain only alphanumeric characters, colons, underscores, and dashes")
	}
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

func checkHistory(p *problems, c command) {
	times := map[string]int64{}
	for _, f := range []string{"fromTimestamp", "toTimestamp"} {
		if !c.has(f) {
			continue
		}
		n, ok := c.whole(f)
		if !ok || n < 0 {
			p.add(f, "Must be a non-negative integer timestamp")
			continue
		}
		times[f] = n
	}
	if from, to := times["fromTimestamp"], times["toTimestamp"]; len(times) == 2 && from > to {
		p.add("fromTimestamp", "Must be less than or equal to toTimestamp")
	}
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
