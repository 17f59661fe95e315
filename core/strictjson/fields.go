package strictjson

import (
	"reflect"
	"slices"
	"strings"
)

// field is a field of a struct, or a candidate for its JSON name.
type field struct {
	plan   *plan
	typ    reflect.Type
	index  []int // its index, after those of the structs that it is embedded in
	tagged bool
}

// in returns the field of a struct, and allocates the embedded structs above it.
func (f *field) in(of reflect.Value) reflect.Value {
	for i, n := range f.index {
		if i > 0 && of.Kind() == reflect.Pointer {
			if of.IsNil() {
				of.Set(reflect.New(of.Type().Elem()))
			}
			of = of.Elem()
		}
		of = of.Field(n)
	}
	return of
}

// fields fills the plan of a struct by the rules of encoding/json: a name belongs to the
// least nested field, at the same depth to the tagged one, else to none.
func (m planner) fields(p *plan, t reflect.Type) {
	p.fields = map[string]*field{}
	depths := map[reflect.Type]int{}
	var names []string
	type embedded struct {
		typ   reflect.Type
		index []int
	}
	for queue := []embedded{{typ: t}}; len(queue) > 0; queue = queue[1:] {
		e := queue[0]
		if depth, seen := depths[e.typ]; seen && depth < len(e.index) {
			continue
		}
		depths[e.typ] = len(e.index)
		for i := range e.typ.NumField() {
			name, inner, as := tagged(e.typ.Field(i))
			as.index = append(slices.Clone(e.index), i)
			switch old := p.fields[name]; {
			case inner != nil:
				queue = append(queue, embedded{inner, as.index})
			case name == "":
			case old == nil:
				names = append(names, name)
				p.fields[name] = as
			case len(old.index) < len(as.index) || old.tagged && !as.tagged:
			case as.tagged && !old.tagged:
				p.fields[name] = as
			default:
				old.typ = nil // two have the same right to the name
			}
		}
	}
	for _, name := range names {
		if f := p.fields[name]; f.typ == nil {
			delete(p.fields, name)
		} else {
			p.names = append(p.names, name)
			f.plan = m.plan(f.typ)
		}
	}
}

// tagged returns the JSON name of a field, or the struct whose fields it promotes, or
// neither if the field is not decoded.
func tagged(f reflect.StructField) (name string, inner reflect.Type, as *field) {
	under := f.Type
	if under.Kind() == reflect.Pointer && under.Name() == "" {
		under = under.Elem()
	}
	embeds := f.Anonymous && under.Kind() == reflect.Struct
	tag := f.Tag.Get("json")
	if tag == "-" || !f.IsExported() && !embeds {
		return "", nil, &field{}
	}
	name, _, _ = strings.Cut(tag, ",")
	as = &field{typ: f.Type, tagged: name != ""}
	switch {
	case name != "":
		return name, nil, as
	case embeds:
		return "", under, as
	}
	return f.Name, nil, as
}
