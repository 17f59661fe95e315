package wire

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/suggest"
)

// members are the names that the hub knows in an object.
type members map[string]struct{}

// membersOf returns the names of the members of a struct.
func membersOf(v any, more ...string) members {
	all := members{}
	of := reflect.TypeOf(v)
	for i := range of.NumField() {
		if name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ","); name != "" && name != "-" {
			all[name] = struct{}{}
		}
	}
	for _, name := range more {
		all[name] = struct{}{}
	}
	return all
}

func (m members) has(key []byte) bool {
	_, known := m[string(key)]
	return known
}

var (
	requestMembers = membersOf(core.Request{})
	// eventMembers are those of an event in either direction.
	eventMembers = membersOf(struct{}{}, "id", "task", "role", "call", "position", "cursor", "seq", "merged", "epoch", "at", "kind", "body", "foreign")
)

// unknown returns the members of an object whose names are not known; nil for none.
func unknown(object strictjson.Value, known members) (all []strictjson.Field) {
	for key, v := range object.Members() {
		if !known.has(key) {
			all = append(all, strictjson.Field{Key: string(key), Value: v.Clone()})
		}
	}
	return all
}

// nearest adds unknown members to all, each with the known name that is nearest, if one is near.
func nearest(all map[string]string, unknown []strictjson.Field, known members) map[string]string {
	for _, f := range unknown {
		if all == nil {
			all = map[string]string{}
		}
		all[f.Key] = suggest.Nearest(f.Key, slices.Sorted(maps.Keys(known)))
	}
	return all
}

// keep returns the unknown members of an object, and of the object inner of it, as foreign
// members of the dialect. own is what the peer itself sent as foreign; it is returned if there
// are no unknown members, and else becomes one of them.
func keep(own *core.Foreign, outside []strictjson.Field, inner string, inside []strictjson.Field) *core.Foreign {
	if len(outside) == 0 && len(inside) == 0 {
		return own
	}
	if own != nil {
		text, _ := json.Marshal(own) // was decoded from JSON
		outside = append(outside, strictjson.Field{Key: "foreign", Value: text})
	}
	if len(inside) > 0 {
		outside = append(outside, strictjson.Field{Key: inner, Value: appendMembers([]byte("{"), inside)})
	}
	return &core.Foreign{Dialect: Dialect, JSON: appendMembers([]byte("{"), outside)}
}

// appendMembers appends members to the open object that b ends with, and closes the object.
func appendMembers(b []byte, all []strictjson.Field) []byte {
	for _, f := range all {
		if last := b[len(b)-1]; last != '{' && last != ',' {
			b = append(b, ',')
		}
		b = append(append(appendText(b, f.Key), ':'), f.Value...)
	}
	return append(b, '}')
}

// restored returns the unknown members that keep made, those of the object inner apart. It
// reports false for anything else, such as members whose names are known: that stays foreign.
func restored(f *core.Foreign, known members, inner string, knownInside members) (outside, inside []strictjson.Field, ok bool) {
	object, ok := keptIn(f)
	if !ok {
		return nil, nil, false
	}
	for key, v := range object.Members() {
		switch name := string(key); {
		case name == inner && inner != "":
			if v.Kind() != strictjson.Object || v.Len() == 0 {
				return nil, nil, false
			}
			if inside = unknown(v, knownInside); len(inside) != v.Len() {
				return nil, nil, false
			}
		case name == "foreign" && object.Len() > 1 && v.Kind() == strictjson.Object,
			!known.has(key):
			outside = append(outside, strictjson.Field{Key: name, Value: v.Raw()})
		default:
			return nil, nil, false
		}
	}
	return outside, inside, true
}

// keptIn returns the object of members that foreign is, if it is one of this dialect and not empty.
func keptIn(f *core.Foreign) (strictjson.Value, bool) {
	if f == nil || f.Dialect != Dialect || len(f.JSON) == 0 || len(f.Wire) > 0 {
		return strictjson.Value{}, false
	}
	object, err := strictjson.Parse(f.JSON, strictjson.Limits{})
	return object, err == nil && object.Kind() == strictjson.Object && object.Len() > 0
}
