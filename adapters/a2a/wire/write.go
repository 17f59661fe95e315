package wire

import (
	"bytes"
	"encoding/json"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// TimeFormat is the form of timestamps (section 5.6.1): UTC with milliseconds.
const TimeFormat = "2006-01-02T15:04:05.000Z"

// Marshal returns v as JSON without the escapes that only HTML needs. It fails only if a
// RawMessage is no JSON.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// writer appends the members of objects.
type writer struct{ b []byte }

// key begins a member.
func (w *writer) key(key string) {
	if w.b[len(w.b)-1] != '{' {
		w.b = append(w.b, ',')
	}
	w.b = append(append(append(w.b, '"'), key...), '"', ':')
}

func (w *writer) string(s string) { w.b = strictjson.AppendString(w.b, s) }

// raw writes a member whose value is JSON already, if there is one.
func (w *writer) raw(key string, v json.RawMessage) {
	if len(v) > 0 {
		w.key(key)
		w.b = append(w.b, v...)
	}
}

// list writes a list.
func list[T any](w *writer, key string, all []T, write func(*writer, *T)) {
	w.key(key)
	w.b = append(w.b, '[')
	for i := range all {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		write(w, &all[i])
	}
	w.b = append(w.b, ']')
}
