package strictjson

import (
	"reflect"
	"strings"
)

// field is one candidate for a JSON name.
type field struct {
	typ    reflect.Type
	tagged bool
	quoted bool // the tag has the option "string"
}

// fields fills the plan of a struct, by the rules of encoding/json: the least
// nested field has a name, at the same depth the tagged one, and otherwise none.
func (m planner) fields(p *plan, t reflect.Type) {
	p.fields = map[string]*plan{}
	taken := map[string]bool{}
	visited := map[reflect.Type]bool{}
	level := map[reflect.Type]int{t: 1}
	order := []reflect.Type{t}
	for len(order) > 0 {
		found := map[string][]field{}
		var names []string
		nextLevel, nextOrder := map[reflect.Type]int{}, []reflect.Type(nil)
		for _, t := range order {
			if visited[t] {
				continue
			}
			visited[t] = true
			for i := range t.NumField() {
				f := t.Field(i)
				name, inner, as := tagged(f)
				switch {
				case inner != nil:
					if nextLevel[inner]++; nextLevel[inner] == 1 {
						nextOrder = append(nextOrder, inner)
					}
				case name != "":
					if len(found[name]) == 0 {
						names = append(names, name)
					}
					found[name] = append(found[name], as)
					if level[t] > 1 {
						// The same struct is embedded twice here: its names cancel out.
						found[name] = append(found[name], as)
					}
				}
			}
		}
		for _, name := range names {
			if taken[name] {
				continue
			}
			taken[name] = true
			if f, ok := dominant(found[name]); ok {
				p.names = append(p.names, name)
				p.fields[name] = m.field(f)
			}
		}
		level, order = nextLevel, nextOrder
	}
}

// field is the plan of a field's value.
func (m planner) field(f field) *plan {
	of := m.plan(f.typ)
	if f.quoted && of != nil {
		switch of.kind {
		case wholeForm, realForm, boolForm, textForm:
			return nil // a value within a string: encoding/json judges it alone
		}
	}
	return of
}

// tagged returns the JSON name of a field, or the struct whose fields it
// promotes, or neither if JSON does not see it.
func tagged(f reflect.StructField) (name string, inner reflect.Type, as field) {
	under := f.Type
	if under.Kind() == reflect.Pointer && under.Name() == "" {
		under = under.Elem()
	}
	if f.Anonymous {
		if !f.IsExported() && under.Kind() != reflect.Struct {
			return "", nil, field{}
		}
	} else if !f.IsExported() {
		return "", nil, field{}
	}
	tag := f.Tag.Get("json")
	if tag == "-" {
		return "", nil, field{}
	}
	name, options, _ := strings.Cut(tag, ",")
	as = field{typ: f.Type, tagged: name != ""}
	for option := range strings.SplitSeq(options, ",") {
		as.quoted = as.quoted || option == "string"
	}
	if name == "" && f.Anonymous && under.Kind() == reflect.Struct {
		return "", under, as
	}
	if name == "" {
		name = f.Name
	}
	return name, nil, as
}

// dominant picks the one field of several at the same depth that has the
// name.
func dominant(fields []field) (field, bool) {
	if len(fields) == 1 {
		return fields[0], true
	}
	var tagged []field
	for _, f := range fields {
		if f.tagged {
			tagged = append(tagged, f)
		}
	}
	if len(tagged) == 1 {
		return tagged[0], true
	}
	return field{}, false
}
