package schemas

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Violation says which field of a message violates its schema, and what is wanted there. Its
// message is one line that may be sent to the peer; it repeats only short values of the
// message, truncated.
type Violation struct {
	// Path is the path of the field, as in payload.items[3].id; it is empty for the whole
	// message.
	Path string
	// Problem is what is wrong with the field and what is wanted.
	Problem string
}

// Error implements error.
func (v *Violation) Error() string {
	if v.Path == "" {
		return v.Problem
	}
	return v.Path + ": " + v.Problem
}

// under puts a step before the path.
func (v *Violation) under(step string) *Violation {
	if v.Path == "" || v.Path[0] == '[' {
		v.Path = step + v.Path
	} else {
		v.Path = step + "." + v.Path
	}
	return v
}

// judge checks a string, number, boolean or null against a node.
func (n *node) judge(is types, v strictjson.Value) *Violation {
	raw := v.Raw()
	if n.values != nil && !n.has(is, v) {
		return n.mismatch(cut(raw))
	}
	if n.nonEmpty && is == text && len(raw) == len(`""`) {
		return &Violation{Problem: "empty; send " + n.wanted()}
	}
	if n.least != nil && is&number != 0 {
		if f, ok := float(raw); !ok || f < *n.least {
			return &Violation{Problem: "want at least " + strconv.FormatFloat(*n.least, 'f', -1, 64) + ", got " + cut(raw)}
		}
	}
	return nil
}

// has reports whether a string, number, boolean or null is one of the allowed values.
func (n *node) has(is types, v strictjson.Value) bool {
	raw := v.Raw()
	return slices.ContainsFunc(n.values, func(allowed json.RawMessage) bool {
		switch {
		case bytes.Equal(allowed, raw):
			return true
		case is == text && v.Escaped():
			said, _ := v.Text()
			written, err := json.Marshal(said)
			return err == nil && bytes.Equal(allowed, written)
		case is&number != 0:
			a, isNumber := float(allowed)
			b, inRange := float(raw)
			return isNumber && inRange && a == b
		}
		return false
	})
}

// float reads a number, and reports whether it is one and within range. Short integers, the
// usual case, cost no allocation.
func float(raw []byte) (f float64, ok bool) {
	const exact = 15 // digits
	for i, c := range raw {
		if i == exact || c < '0' || c > '9' {
			f, err := strconv.ParseFloat(string(raw), 64)
			return f, err == nil
		}
		f = 10*f + float64(c-'0')
	}
	return f, true
}

// missing names the first required member that was not seen.
func (n *node) missing(seen uint64) *Violation {
	for _, name := range n.required {
		if m := n.members[name]; seen&m.bit == 0 {
			return (&Violation{Problem: "missing; send " + m.node.wanted()}).under(name)
		}
	}
	for _, name := range n.oneOf {
		if seen&n.members[name].bit != 0 {
			return nil
		}
	}
	if len(n.oneOf) > 0 {
		name := n.oneOf[0]
		return (&Violation{Problem: "missing; send " + n.members[name].node.wanted()}).under(name)
	}
	return nil
}

// mismatch returns the violation of a value that is not allowed.
func (n *node) mismatch(got string) *Violation {
	return &Violation{Problem: "want " + n.want() + ", got " + got}
}

// wanted describes what to send.
func (n *node) wanted() string {
	switch {
	case n == nil:
		return "it"
	case len(n.values) == 1:
		return string(n.values[0])
	case n.what == "":
		return n.want()
	case n.values != nil:
		return n.what + ": " + n.want()
	}
	return n.what
}

// want describes the values that the node allows.
func (n *node) want() string {
	var all []string
	if n.values != nil {
		for _, v := range n.values {
			if string(v) != "null" {
				all = append(all, string(v))
			}
		}
		return either(all)
	}
	for _, t := range typeNames {
		switch {
		case n.types&t.is == 0 || t.is == null && n.types != null:
		case t.is == array && n.items != nil:
			all = append(all, "an array"+n.items.several())
		default:
			all = append(all, t.one)
		}
	}
	if n.what == "" {
		return either(all)
	}
	return either(all) + " (" + n.what + ")"
}

// several describes the values of the node in the plural, or is "".
func (n *node) several() string {
	for _, t := range typeNames {
		if n.types == t.is {
			return " of " + t.many
		}
	}
	return ""
}

// got names the type of a value that is not wanted.
func (t types) got() string {
	switch {
	case t&number != 0:
		return "a number"
	case t == boolean:
		return "a boolean"
	}
	for _, name := range typeNames {
		if t == name.is {
			return name.one
		}
	}
	return "nothing"
}

// either lists alternatives.
func either(all []string) string {
	if len(all) == 0 {
		return "something else"
	}
	last := len(all) - 1
	if last == 0 {
		return all[0]
	}
	return strings.Join(all[:last], ", ") + " or " + all[last]
}

// cut truncates a text for a message, between characters.
func cut(raw []byte) string {
	const most = 48
	if len(raw) <= most {
		return string(raw)
	}
	n := most - 3
	for n > 0 && !utf8.RuneStart(raw[n]) {
		n--
	}
	return string(raw[:n]) + "..."
}
