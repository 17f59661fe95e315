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
	quoted bool // the tag has the option "string": the value is written within a string
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
	type embedded struct {
		typ   reflect.Type
		index []int
	}
	visited := map[reflect.Type]bool{}
	for level := []embedded{{typ: t}}; len(level) > 0; {
		var next []embedded
		var names []string
		found := map[string][]*field{}
		for _, e := range level {
			if visited[e.typ] {
				continue
			}
			for i := range e.typ.NumField() {
				f := e.typ.Field(i)
				name, inner, as := tagged(f)
				as.index = append(slices.Clone(e.index), i)
				switch {
				case inner != nil:
					next = append(next, embedded{inner, as.index})
				case name != "":
					names = append(names, name)
					found[name] = append(found[name], as)
				}
			}
		}
		for _, e := range level {
			visited[e.typ] = true
		}
		for _, name := range names {
			if _, taken := p.fields[name]; !taken {
				p.fields[name] = dominant(found[name])
			}
		}
		for _, name := range names {
			if f := p.fields[name]; f != nil && f.plan == nil {
				p.names = append(p.names, name)
				f.plan = m.plan(f.typ)
			}
		}
		level = next
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
	name, options, _ := strings.Cut(tag, ",")
	as = &field{typ: f.Type, tagged: name != "", quoted: slices.Contains(strings.Split(options, ","), "string")}
	switch {
	case name != "":
		return name, nil, as
	case embeds:
		return "", under, as
	}
	return f.Name, nil, as
}

// dominant returns the field that gets the name of several at the same depth, or nil.
func dominant(fields []*field) *field {
	if len(fields) == 1 {
		return fields[0]
	}
	fields = slices.DeleteFunc(fields, func(f *field) bool { return !f.tagged })
	if len(fields) == 1 {
		return fields[0]
	}
	return nil
}
