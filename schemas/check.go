package schemas

import (
	"encoding/json"
	"errors"
	"math"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// check checks a value against a node. A nil node allows any value.
func (n *node) check(v strictjson.Value) *Violation {
	if n == nil {
		return nil
	}
	is := typeOf(v)
	switch {
	case n.types&is != 0 || n.types == 0:
	case is == number && n.types&integer != 0:
		// A fraction or exponent may still make a whole number, as in 3e4.
		if f, ok := v.Number(); !ok || f != math.Trunc(f) {
			return n.mismatch(v.Short())
		}
	default:
		return n.mismatch(v.Kind().String())
	}
	switch {
	case is&(object|array) == 0:
		return n.judge(v)
	case n.values != nil: // these are strings, numbers, booleans and null
		return n.mismatch(v.Kind().String())
	case is == object && len(n.members) > 0:
		return n.checkMembers(v)
	case is == array && n.items != nil:
		return n.checkItems(v)
	}
	return nil
}

// checkMembers checks the members of an object.
func (n *node) checkMembers(object strictjson.Value) *Violation {
	var seen uint64
	for key, value := range object.Members() {
		m := n.members[string(key)]
		if m == nil {
			continue
		}
		seen |= m.bit
		if v := m.node.check(value); v != nil {
			return v.UnderKey(key)
		}
	}
	return n.missing(seen)
}

// checkItems checks the items of an array.
func (n *node) checkItems(array strictjson.Value) *Violation {
	i := 0
	for item := range array.Items() {
		if v := n.items.check(item); v != nil {
			return v.UnderIndex(i)
		}
		i++
	}
	return nil
}

// typeOf returns the type of a value. A number that is written as an integer is both.
func typeOf(v strictjson.Value) types {
	switch v.Kind() {
	case strictjson.Null:
		return null
	case strictjson.Bool:
		return boolean
	case strictjson.Number:
		if v.IsIntegerLiteral() {
			return integer | number
		}
		return number
	case strictjson.String:
		return text
	case strictjson.Array:
		return array
	}
	return object
}

// decode decodes data as the JSON Schema library needs it.
func decode(data []byte) (any, error) {
	var value any
	err := json.Unmarshal(data, &value)
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &mismatch):
		return nil, errors.New(mismatch.Value + " is out of range")
	case err != nil:
		return nil, errors.New("not JSON: " + err.Error())
	}
	return value, nil
}
