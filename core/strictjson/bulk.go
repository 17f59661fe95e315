package strictjson

import (
	"bytes"
	"encoding/json"
	"reflect"
	"sync"
)

// bulkBytes is from how many bytes on a value is set by itself that a field keeps as it
// is: encoding/json reads such a value twice more, to come to the same.
const bulkBytes = 1 << 10

var keepers sync.Map // reflect.Type to map[string]int

// keptIn are the fields of a struct that keep JSON as it is, by their names, which
// none of its other fields has.
func keptIn(t reflect.Type) map[string]int {
	if kept, ok := keepers.Load(t); ok {
		return kept.(map[string]int)
	}
	kept := map[string]int{}
	if t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(unmarshalerType) {
		times := map[string]int{}
		for i := range t.NumField() {
			f := t.Field(i)
			if name, inner, _ := tagged(f); inner == nil && name != "" {
				times[name]++
				if f.Type == rawType {
					kept[name] = i
				}
			}
		}
		for name, n := range times {
			if n > 1 {
				delete(kept, name)
			}
		}
	}
	keepers.Store(t, kept)
	return kept
}

// unmarshal decodes a text that was read into v, a pointer to a struct of those fields.
func (s *scanner) unmarshal(v any, kept map[string]int) error {
	var bulk []Member
	var rest []byte // the text with null in place of each
	done := 0
	for i, m := range s.members {
		if _, keeps := kept[string(m.Key)]; keeps && len(m.Value) >= bulkBytes && len(s.wholes) == 0 {
			bulk = append(bulk, m)
			rest, done = append(append(rest, s.data[done:s.begins[i]]...), "null"...), s.begins[i]+len(m.Value)
		}
	}
	if len(bulk) == 0 {
		return json.Unmarshal(s.inDigits(), v)
	}
	if err := json.Unmarshal(append(rest, s.data[done:]...), v); err != nil {
		return err
	}
	into := reflect.ValueOf(v).Elem()
	for _, m := range bulk {
		into.Field(kept[string(m.Key)]).SetBytes(bytes.Clone(m.Value))
	}
	return nil
}
