package strictjson

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"sync"
	"time"
)

// plan says what a Go type takes from JSON, as far as a scanner can hold a
// text against it. A nil plan takes anything, unseen.
type plan struct {
	kind form
	// typ is the type of a leaf, for trying a value out; nil for the others.
	typ reflect.Type
	// fields are a record's, by their exact JSON name; names has the names in
	// the order of the struct.
	fields map[string]*plan
	names  []string
	// elem is what a list or table holds.
	elem *plan
	// text replaces the general description of a leaf.
	text string
}

// form is what kind of JSON a Go type takes.
type form uint8

const (
	_          form = iota
	anyForm         // anything: an empty interface
	ownForm         // anything: the type decodes itself
	textForm        // a string
	wholeForm       // a number without fraction
	realForm        // a number
	boolForm        // true or false
	listForm        // an array
	structForm      // an object with the fields of a struct
	mapForm         // an object with any keys
)

// formWords describe one value of a kind and several of them.
var formWords = [...]struct{ one, many string }{
	anyForm:    {"a value", ""},
	ownForm:    {"a value", ""},
	textForm:   {"a string", "strings"},
	wholeForm:  {"a whole number", "whole numbers"},
	realForm:   {"a number", "numbers"},
	boolForm:   {"true or false", "booleans"},
	listForm:   {"an array", "arrays"},
	structForm: {"an object", "objects"},
	mapForm:    {"an object", "objects"},
}

// takes tells whether a value of this class can be decoded by the plan.
func (p *plan) takes(c Kind) bool {
	switch p.kind {
	case anyForm, ownForm:
		return true
	case textForm:
		return c == String || c <= Null
	case wholeForm, realForm:
		return c == Number || c <= Null
	case boolForm:
		return c == Bool || c <= Null
	case listForm:
		return c == Array || c <= Null
	default:
		return c == Object || c <= Null
	}
}

// want describes what the plan takes.
func (p *plan) want() string {
	if p.text != "" {
		return p.text
	}
	if p.kind == listForm && p.elem != nil && formWords[p.elem.kind].many != "" {
		return "an array of " + formWords[p.elem.kind].many
	}
	return formWords[p.kind].one
}

// item is the plan of an array's items.
func (p *plan) item() *plan {
	switch p.kind {
	case listForm:
		return p.elem
	case anyForm:
		return p
	}
	return nil
}

// member is the plan of the value under key, or what is wrong with the key.
func (p *plan) member(key []byte, strict bool) (of *plan, problem string) {
	switch p.kind {
	case mapForm:
		return p.elem, ""
	case anyForm:
		return p, ""
	case structForm:
		if of, known := p.fields[string(key)]; known {
			return of, ""
		}
		return nil, unknownKey(key, p.names, strict)
	}
	return nil, ""
}

// tryOut decodes the text of a leaf, which begins at byte start, by itself.
func (p *plan) tryOut(text []byte, start int) *Error {
	if p.typ == nil {
		return nil
	}
	err := json.Unmarshal(text, reflect.New(p.typ).Interface())
	if err == nil {
		return nil
	}
	var own *Error
	if errors.As(err, &own) {
		moved := *own
		moved.Offset += start
		return &moved
	}
	problem := refused(err).Problem
	switch {
	case p.text != "":
		problem = fmt.Sprintf("want %s, got %s", p.text, cut(text))
	case p.kind == wholeForm:
		low, high := rangeOf(p.typ)
		problem = fmt.Sprintf("want a whole number from %s to %s, got %s", low, high, cut(text))
	case p.kind == realForm, p.kind == anyForm:
		problem = fmt.Sprintf("number %s is out of range", cut(text))
	}
	return &Error{Offset: start, Problem: problem}
}

// rangeOf is the range of an integer type.
func rangeOf(t reflect.Type) (low, high string) {
	bits := t.Bits()
	if reflect.Zero(t).CanUint() {
		return "0", strconv.FormatUint(math.MaxUint64>>(64-bits), 10)
	}
	top := int64(math.MaxInt64) >> (64 - bits)
	return strconv.FormatInt(-top-1, 10), strconv.FormatInt(top, 10)
}

// describe words what a type takes, for an error of encoding/json.
func describe(t reflect.Type) string {
	if p := planOf(t); p != nil {
		return p.want()
	}
	return "a value of another kind"
}

var (
	plans               sync.Map // reflect.Type to *plan
	rawType             = reflect.TypeFor[json.RawMessage]()
	numberType          = reflect.TypeFor[json.Number]()
	timeType            = reflect.TypeFor[time.Time]()
	unmarshalerType     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// planOf returns the plan of a type, made once.
func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	p, _ := plans.LoadOrStore(t, planner{}.plan(t))
	return p.(*plan)
}

// planner makes the plans of one type and of all it holds; it remembers
// those under way, since types may contain themselves.
type planner map[reflect.Type]*plan

func (m planner) plan(t reflect.Type) *plan {
	if p, ok := m[t]; ok {
		return p
	}
	p := &plan{}
	m[t] = p
	switch to := reflect.PointerTo(t); {
	case t == rawType:
		m[t] = nil
		return nil
	case t == numberType:
		p.kind = realForm
		return p
	case t == timeType:
		p.kind, p.typ, p.text = textForm, t, "a time such as 2006-01-02T15:04:05Z"
		return p
	case to.Implements(unmarshalerType):
		p.kind, p.typ = ownForm, t
		return p
	case to.Implements(textUnmarshalerType):
		p.kind, p.typ = textForm, t
		return p
	}
	switch t.Kind() {
	case reflect.Pointer:
		m[t] = m.plan(t.Elem())
		return m[t]
	case reflect.Interface:
		if t.NumMethod() > 0 {
			m[t] = nil
			return nil
		}
		p.kind, p.typ = anyForm, t
	case reflect.String:
		p.kind = textForm
	case reflect.Bool:
		p.kind = boolForm
	case reflect.Float32, reflect.Float64:
		p.kind, p.typ = realForm, t
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		p.kind, p.typ = wholeForm, t
	case reflect.Slice, reflect.Array:
		if t.Kind() == reflect.Slice && isByte(t.Elem()) {
			p.kind, p.typ, p.text = textForm, t, "base64 text"
			break
		}
		p.kind, p.elem = listForm, m.plan(t.Elem())
	case reflect.Map:
		p.kind, p.elem = mapForm, m.plan(t.Elem())
	case reflect.Struct:
		p.kind = structForm
		m.fields(p, t)
	default:
		m[t] = nil
		return nil
	}
	return p
}

// isByte tells whether a slice of t is bytes, not a list of named numbers
// that decode themselves.
func isByte(t reflect.Type) bool {
	to := reflect.PointerTo(t)
	return t.Kind() == reflect.Uint8 && !to.Implements(unmarshalerType) && !to.Implements(textUnmarshalerType)
}
