package schemas

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Violation says which field of a message violates its schema, and what is wanted there. It has
// no Advice.
type Violation = strictjson.Error

// judge checks a string, number, boolean or null against a node.
func (n *node) judge(v strictjson.Value) *Violation {
	if n.values != nil && !slices.ContainsFunc(n.values, func(allowed json.RawMessage) bool { return same(allowed, v) }) {
		return n.mismatch(v.Short())
	}
	if n.nonEmpty && v.Kind() == strictjson.String && len(v.Raw()) == len(`""`) {
		return &Violation{Problem: "empty; send " + n.wanted()}
	}
	if n.least != nil && v.Kind() == strictjson.Number {
		if f, ok := v.Number(); !ok || f < *n.least {
			return &Violation{Problem: "want at least " + strconv.FormatFloat(*n.least, 'f', -1, 64) + ", got " + v.Short()}
		}
	}
	return nil
}

// same reports whether two strings, numbers, booleans or nulls are the same value.
func same(allowed json.RawMessage, v strictjson.Value) bool {
	switch {
	case bytes.Equal(allowed, v.Raw()):
		return true
	case v.Kind() == strictjson.Number:
		a, err := strconv.ParseFloat(string(allowed), 64)
		b, inRange := v.Number()
		return err == nil && inRange && a == b
	case v.Escaped():
		text, _ := v.Text()
		return bytes.Equal(allowed, strictjson.AppendString(nil, text))
	}
	return false
}

// missing names the first required member that was not seen.
func (n *node) missing(seen uint64) *Violation {
	for _, name := range n.required {
		if m := n.members[name]; seen&m.bit == 0 {
			return (&Violation{Problem: "missing; send " + m.node.wanted()}).UnderKey([]byte(name))
		}
	}
	for _, name := range n.oneOf {
		if seen&n.members[name].bit != 0 {
			return nil
		}
	}
	if len(n.oneOf) > 0 {
		name := n.oneOf[0]
		return (&Violation{Problem: "missing; send " + n.members[name].node.wanted()}).UnderKey([]byte(name))
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
