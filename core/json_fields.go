package core

import (
	"reflect"
	"strings"
)

// jsonField is one candidate for a JSON name.
type jsonField struct {
	typ    reflect.Type
	tagged bool
	quoted bool // the tag has the option "string"
}

// fields fills the plan of a struct, by the rules of encoding/json: the least
// nested field has a name, at the same depth the tagged one, and otherwise none.
func (m jsonPlanner) fields(p *jsonPlan, t reflect.Type) {
	p.fields = map[string]*jsonPlan{}
	taken := map[string]bool{}
	visited := map[reflect.Type]bool{}
	level := map[reflect.Type]int{t: 1}
	order := []reflect.Type{t}
	for len(order) > 0 {
		found := map[string][]jsonField{}
		var names []string
		nextLevel, nextOrder := map[reflect.Type]int{}, []reflect.Type(nil)
		for _, t := range order {
			if visited[t] {
				continue
			}
			visited[t] = true
			for i := range t.NumField() {
				f := t.Field(i)
				name, inner, field := jsonTagged(f)
				switch {
				case inner != nil:
					if nextLevel[inner]++; nextLevel[inner] == 1 {
						nextOrder = append(nextOrder, inner)
					}
				case name != "":
					if len(found[name]) == 0 {
						names = append(names, name)
					}
					found[name] = append(found[name], field)
					if level[t] > 1 {
						// The same struct is embedded twice here: its names cancel out.
						found[name] = append(found[name], field)
					}
				}
			}
		}
		for _, name := range names {
			if taken[name] {
				continue
			}
			taken[name] = true
			if f, ok := jsonDominant(found[name]); ok {
				p.names = append(p.names, name)
				p.fields[name] = m.field(f)
			}
		}
		level, order = nextLevel, nextOrder
	}
}

// field is the plan of a field's value.
func (m jsonPlanner) field(f jsonField) *jsonPlan {
	of := m.plan(f.typ)
	if f.quoted && of != nil {
		switch of.kind {
		case jsonWhole, jsonReal, jsonLogic, jsonText:
			return nil // a value within a string: encoding/json judges it alone
		}
	}
	return of
}

// jsonTagged returns the JSON name of a field, or the struct whose fields it
// promotes, or neither if JSON does not see it.
func jsonTagged(f reflect.StructField) (name string, inner reflect.Type, field jsonField) {
	under := f.Type
	if under.Kind() == reflect.Pointer && under.Name() == "" {
		under = under.Elem()
	}
	if f.Anonymous {
		if !f.IsExported() && under.Kind() != reflect.Struct {
			return "", nil, jsonField{}
		}
	} else if !f.IsExported() {
		return "", nil, jsonField{}
	}
	tag := f.Tag.Get("json")
	if tag == "-" {
		return "", nil, jsonField{}
	}
	name, options, _ := strings.Cut(tag, ",")
	field = jsonField{typ: f.Type, tagged: name != ""}
	for option := range strings.SplitSeq(options, ",") {
		field.quoted = field.quoted || option == "string"
	}
	if name == "" && f.Anonymous && under.Kind() == reflect.Struct {
		return "", under, field
	}
	if name == "" {
		name = f.Name
	}
	return name, nil, field
}

// jsonDominant picks the one field of several at the same depth that has the
// name.
func jsonDominant(fields []jsonField) (jsonField, bool) {
	if len(fields) == 1 {
		return fields[0], true
	}
	var tagged []jsonField
	for _, f := range fields {
		if f.tagged {
			tagged = append(tagged, f)
		}
	}
	if len(tagged) == 1 {
		return tagged[0], true
	}
	return jsonField{}, false
}
