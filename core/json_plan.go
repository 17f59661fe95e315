package core

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

// jsonPlan says what a Go type takes from JSON, as far as a scanner can hold a
// text against it. A nil plan takes anything, unseen.
type jsonPlan struct {
	kind jsonKind
	// typ is the type of a leaf, for trying a value out; nil for the others.
	typ reflect.Type
	// fields are a record's, by their exact JSON name; names has the names in
	// the order of the struct.
	fields map[string]*jsonPlan
	names  []string
	// elem is what a list or table holds.
	elem *jsonPlan
	// text replaces the general description of a leaf.
	text string
}

// jsonKind is what kind of JSON a Go type takes.
type jsonKind uint8

const (
	_          jsonKind = iota
	jsonFree            // anything: an empty interface
	jsonOwn             // anything: the type decodes itself
	jsonText            // a string
	jsonWhole           // a number without fraction
	jsonReal            // a number
	jsonLogic           // true or false
	jsonList            // an array
	jsonRecord          // an object with the fields of a struct
	jsonTable           // an object with any keys
)

// jsonKindWords describe one value of a kind and several of them.
var jsonKindWords = [...]struct{ one, many string }{
	jsonFree:   {"a value", ""},
	jsonOwn:    {"a value", ""},
	jsonText:   {"a string", "strings"},
	jsonWhole:  {"a whole number", "whole numbers"},
	jsonReal:   {"a number", "numbers"},
	jsonLogic:  {"true or false", "booleans"},
	jsonList:   {"an array", "arrays"},
	jsonRecord: {"an object", "objects"},
	jsonTable:  {"an object", "objects"},
}

// takes tells whether a value of this class can be decoded by the plan.
func (p *jsonPlan) takes(c jsonClass) bool {
	switch p.kind {
	case jsonFree, jsonOwn:
		return true
	case jsonText:
		return c == jsonString || c <= jsonNull
	case jsonWhole, jsonReal:
		return c == jsonNumeral || c <= jsonNull
	case jsonLogic:
		return c == jsonBoolean || c <= jsonNull
	case jsonList:
		return c == jsonArray || c <= jsonNull
	default:
		return c == jsonObject || c <= jsonNull
	}
}

// want describes what the plan takes.
func (p *jsonPlan) want() string {
	if p.text != "" {
		return p.text
	}
	if p.kind == jsonList && p.elem != nil && jsonKindWords[p.elem.kind].many != "" {
		return "an array of " + jsonKindWords[p.elem.kind].many
	}
	return jsonKindWords[p.kind].one
}

// item is the plan of an array's items.
func (p *jsonPlan) item() *jsonPlan {
	switch p.kind {
	case jsonList:
		return p.elem
	case jsonFree:
		return p
	}
	return nil
}

// member is the plan of the value under key, or what is wrong with the key.
func (p *jsonPlan) member(key []byte, strict bool) (of *jsonPlan, problem string) {
	switch p.kind {
	case jsonTable:
		return p.elem, ""
	case jsonFree:
		return p, ""
	case jsonRecord:
		if of, known := p.fields[string(key)]; known {
			return of, ""
		}
		return nil, jsonUnknownKey(key, p.names, strict)
	}
	return nil, ""
}

// tryOut decodes the text of a leaf, which begins at byte start, by itself.
func (p *jsonPlan) tryOut(text []byte, start int) *JSONError {
	if p.typ == nil {
		return nil
	}
	err := json.Unmarshal(text, reflect.New(p.typ).Interface())
	if err == nil {
		return nil
	}
	var own *JSONError
	if errors.As(err, &own) {
		moved := *own
		moved.Offset += start
		return &moved
	}
	problem := jsonRefused(err).Problem
	switch {
	case p.text != "":
		problem = fmt.Sprintf("want %s, got %s", p.text, jsonCut(text))
	case p.kind == jsonWhole:
		low, high := jsonRange(p.typ)
		problem = fmt.Sprintf("want a whole number from %s to %s, got %s", low, high, jsonCut(text))
	case p.kind == jsonReal, p.kind == jsonFree:
		problem = fmt.Sprintf("number %s is out of range", jsonCut(text))
	}
	return &JSONError{Offset: start, Problem: problem}
}

// jsonRange is the range of an integer type.
func jsonRange(t reflect.Type) (low, high string) {
	bits := t.Bits()
	if reflect.Zero(t).CanUint() {
		return "0", strconv.FormatUint(math.MaxUint64>>(64-bits), 10)
	}
	top := int64(math.MaxInt64) >> (64 - bits)
	return strconv.FormatInt(-top-1, 10), strconv.FormatInt(top, 10)
}

// jsonDescribe words what a type takes, for an error of encoding/json.
func jsonDescribe(t reflect.Type) string {
	if p := jsonPlanOf(t); p != nil {
		return p.want()
	}
	return "a value of another kind"
}

var (
	jsonPlans           sync.Map // reflect.Type to *jsonPlan
	jsonRawType         = reflect.TypeFor[json.RawMessage]()
	jsonNumberType      = reflect.TypeFor[json.Number]()
	jsonTimeType        = reflect.TypeFor[time.Time]()
	jsonUnmarshalerType = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// jsonPlanOf returns the plan of a type, made once.
func jsonPlanOf(t reflect.Type) *jsonPlan {
	if p, ok := jsonPlans.Load(t); ok {
		return p.(*jsonPlan)
	}
	p, _ := jsonPlans.LoadOrStore(t, jsonPlanner{}.plan(t))
	return p.(*jsonPlan)
}

// jsonPlanner makes the plans of one type and of all it holds; it remembers
// those under way, since types may contain themselves.
type jsonPlanner map[reflect.Type]*jsonPlan

func (m jsonPlanner) plan(t reflect.Type) *jsonPlan {
	if p, ok := m[t]; ok {
		return p
	}
	p := &jsonPlan{}
	m[t] = p
	switch to := reflect.PointerTo(t); {
	case t == jsonRawType:
		m[t] = nil
		return nil
	case t == jsonNumberType:
		p.kind = jsonReal
		return p
	case t == jsonTimeType:
		p.kind, p.typ, p.text = jsonText, t, "a time such as 2006-01-02T15:04:05Z"
		return p
	case to.Implements(jsonUnmarshalerType):
		p.kind, p.typ = jsonOwn, t
		return p
	case to.Implements(textUnmarshalerType):
		p.kind, p.typ = jsonText, t
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
		p.kind, p.typ = jsonFree, t
	case reflect.String:
		p.kind = jsonText
	case reflect.Bool:
		p.kind = jsonLogic
	case reflect.Float32, reflect.Float64:
		p.kind, p.typ = jsonReal, t
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		p.kind, p.typ = jsonWhole, t
	case reflect.Slice, reflect.Array:
		if t.Kind() == reflect.Slice && jsonIsByte(t.Elem()) {
			p.kind, p.typ, p.text = jsonText, t, "base64 text"
			break
		}
		p.kind, p.elem = jsonList, m.plan(t.Elem())
	case reflect.Map:
		p.kind, p.elem = jsonTable, m.plan(t.Elem())
	case reflect.Struct:
		p.kind = jsonRecord
		m.fields(p, t)
	default:
		m[t] = nil
		return nil
	}
	return p
}

// jsonIsByte tells whether a slice of t is bytes, not a list of named numbers
// that decode themselves.
func jsonIsByte(t reflect.Type) bool {
	to := reflect.PointerTo(t)
	return t.Kind() == reflect.Uint8 && !to.Implements(jsonUnmarshalerType) && !to.Implements(textUnmarshalerType)
}
