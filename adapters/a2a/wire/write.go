package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"time"

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

func (w *writer) begin() { w.b = append(w.b, '{') }

// end ends an object, after the members of unknown, which is an object or nil.
func (w *writer) end(unknown json.RawMessage) {
	if inner := bytes.TrimSpace(unknown); len(inner) > 2 && inner[0] == '{' {
		if inner = bytes.TrimSpace(inner[1 : len(inner)-1]); len(inner) > 0 {
			if w.b[len(w.b)-1] != '{' {
				w.b = append(w.b, ',')
			}
			w.b = append(w.b, inner...)
		}
	}
	w.b = append(w.b, '}')
}

func (w *writer) text(key, s string) {
	w.key(key)
	w.b = strictjson.AppendString(w.b, s)
}

// some writes a string unless it is empty.
func (w *writer) some(key, s string) {
	if s != "" {
		w.text(key, s)
	}
}

// flag writes true, or nothing.
func (w *writer) flag(key string, on bool) {
	if on {
		w.key(key)
		w.b = append(w.b, "true"...)
	}
}

// raw writes a value that is JSON already, if there is one.
func (w *writer) raw(key string, v json.RawMessage) {
	if len(v) > 0 {
		w.key(key)
		w.b = append(w.b, v...)
	}
}

func (w *writer) bytes(key string, v []byte) {
	w.key(key)
	w.b = append(w.b, '"')
	w.b = append(base64.StdEncoding.AppendEncode(w.b, v), '"')
}

func (w *writer) time(key string, t time.Time) {
	if !t.IsZero() {
		w.key(key)
		w.b = append(t.UTC().AppendFormat(append(w.b, '"'), TimeFormat), '"')
	}
}

// texts writes a list of strings unless it is empty.
func (w *writer) texts(key string, all []string) {
	if len(all) > 0 {
		list(w, key, all, func(w *writer, s string) { w.b = strictjson.AppendString(w.b, s) })
	}
}

// list writes a list.
func list[T any](w *writer, key string, all []T, write func(*writer, T)) {
	w.key(key)
	w.b = append(w.b, '[')
	for i, v := range all {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		write(w, v)
	}
	w.b = append(w.b, ']')
}
