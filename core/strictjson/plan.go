package strictjson

import (
	"encoding"
	"encoding/json"
	"reflect"
	"sync"
	"time"
)

// plan describes how a Go type is decoded.
type plan struct {
	form form
	// fields are the fields of a struct by exact JSON name; names has the names in order.
	fields map[string]*field
	names  []string
	// elem is the plan of the elements of a list or map.
	elem *plan
	// holdsValues says that the type may contain a Value.
	holdsValues bool
}

// form is how a value of a Go type is decoded.
type form uint8

const (
	rawForm    form = iota // unchanged JSON: json.RawMessage
	valueForm              // Value
	anyForm                // an empty interface
	ownForm                // the type has an UnmarshalJSON
	textForm               // the type has an UnmarshalText
	timeForm               // time.Time
	bytesForm              // bytes, in base64
	stringForm             // a string
	numberForm             // json.Number
	wholeForm              // an integer
	realForm               // a float
	boolForm               // a bool
	listForm               // a slice or an array
	structForm             // a struct
	mapForm                // a map whose keys are strings
	elseForm               // anything else is left to encoding/json
)

// formWords describe one value of a form and several, and name the kind that it accepts;
// those without one accept all.
var formWords = [...]struct {
	one, many string
	takes     Kind
}{
	rawForm:    {"a value of another kind", "", 0},
	valueForm:  {"a value", "", 0},
	anyForm:    {"a value", "", 0},
	ownForm:    {"a value", "", 0},
	textForm:   {"a string", "strings", String},
	timeForm:   {"a time such as 2006-01-02T15:04:05Z", "strings", String},
	bytesForm:  {"base64 text", "strings", String},
	stringForm: {"a string", "strings", String},
	numberForm: {"a number", "numbers", Number},
	wholeForm:  {"a whole number", "whole numbers", Number},
	realForm:   {"a number", "numbers", Number},
	boolForm:   {"true or false", "booleans", Bool},
	listForm:   {"an array", "arrays", Array},
	structForm: {"an object", "objects", Object},
	mapForm:    {"an object", "objects", Object},
	elseForm:   {"a value of another kind", "", 0},
}

// takes reports whether a value of this kind can be decoded by the plan.
func (p *plan) takes(k Kind) bool {
	takes := formWords[p.form].takes
	return takes == 0 || k == takes || k == Null
}

// want describes what the plan accepts.
func (p *plan) want() string {
	if p.form == listForm && formWords[p.elem.form].many != "" {
		return "an array of " + formWords[p.elem.form].many
	}
	return formWords[p.form].one
}

var (
	plans               sync.Map // reflect.Type to *plan
	unmarshalerType     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// planOf returns the plan of a type, made once.
func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	m := planner{}
	made := m.plan(t)
	made.holdsValues = m[reflect.TypeFor[Value]()] != nil
	p, _ := plans.LoadOrStore(t, made)
	return p.(*plan)
}

// planner makes the plans of a type and of its parts. It has the unfinished plans, since
// types may contain themselves.
type planner map[reflect.Type]*plan

func (m planner) plan(t reflect.Type) *plan {
	if p, ok := m[t]; ok {
		return p
	}
	if t.Kind() == reflect.Pointer {
		m[t] = &plan{} // the type is only pointers to itself
		m[t] = m.plan(t.Elem())
		return m[t]
	}
	p := &plan{form: formOf(t)}
	m[t] = p
	switch p.form {
	case listForm, mapForm:
		p.elem = m.plan(t.Elem())
	case structForm:
		m.fields(p, t)
	}
	return p
}

func formOf(t reflect.Type) form {
	switch t {
	case reflect.TypeFor[json.RawMessage]():
		return rawForm
	case reflect.TypeFor[Value]():
		return valueForm
	case reflect.TypeFor[json.Number]():
		return numberForm
	case reflect.TypeFor[time.Time]():
		return timeForm
	}
	switch to := reflect.PointerTo(t); {
	case to.Implements(unmarshalerType):
		return ownForm
	case to.Implements(textUnmarshalerType):
		return textForm
	}
	switch t.Kind() {
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return anyForm
		}
	case reflect.String:
		return stringForm
	case reflect.Bool:
		return boolForm
	case reflect.Float32, reflect.Float64:
		return realForm
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return wholeForm
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 && formOf(t.Elem()) == wholeForm {
			return bytesForm
		}
		return listForm
	case reflect.Array:
		return listForm
	case reflect.Map:
		if key := t.Key(); key.Kind() == reflect.String && !reflect.PointerTo(key).Implements(textUnmarshalerType) {
			return mapForm
		}
	case reflect.Struct:
		return structForm
	}
	return elseForm
}
