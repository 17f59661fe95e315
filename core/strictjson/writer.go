package strictjson

import (
	"encoding/json"
	"strconv"
	"time"
)

// Writer appends the members of objects to B, which begins with a brace or with members. It
// writes text as [AppendString] does, and other values as [Marshal] does.
type Writer struct {
	B []byte
	// Standard is for what is stored or hashed as encoding/json writes it, byte for byte.
	Standard bool
	// Err is the error of the first value that could not be encoded.
	Err error
}

// Key begins a member whose value the caller appends to B.
func (w *Writer) Key(key string) { w.B = w.key(key) }

// key returns B with the beginning of a member. A key has nothing to escape.
func (w *Writer) key(key string) []byte {
	b := w.B
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return append(append(append(b, '"'), key...), '"', ':')
}

// Begin begins an object as a member.
func (w *Writer) Begin(key string) { w.B = append(w.key(key), '{') }

// End ends an object.
func (w *Writer) End() { w.B = append(w.B, '}') }

// Text writes a string.
func (w *Writer) Text(key, s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			w.escaped(key, s)
			return
		}
	}
	w.B = append(append(append(w.key(key), '"'), s...), '"')
}

// escaped writes a string that may have escapes.
func (w *Writer) escaped(key, s string) {
	if w.Standard {
		w.Value(key, s)
	} else {
		w.B = AppendString(w.key(key), s)
	}
}

// Some writes a string unless it is empty.
func (w *Writer) Some(key, s string) {
	if s != "" {
		w.Text(key, s)
	}
}

// Number writes a whole number.
func (w *Writer) Number(key string, n int64) { w.B = strconv.AppendInt(w.key(key), n, 10) }

// Count writes a whole number that is not negative.
func (w *Writer) Count(key string, n uint64) { w.B = strconv.AppendUint(w.key(key), n, 10) }

// Bool writes true or false.
func (w *Writer) Bool(key string, on bool) { w.B = strconv.AppendBool(w.key(key), on) }

// Flag writes true, or nothing.
func (w *Writer) Flag(key string, on bool) {
	if on {
		w.Bool(key, true)
	}
}

// Time writes a time as encoding/json does.
func (w *Writer) Time(key string, at time.Time) {
	text, err := at.AppendText(append(w.key(key), '"'))
	if err != nil && w.Err == nil {
		w.Err = err
	}
	text = append(text, '"')
	w.B = text
}

// Raw writes a value that is JSON already, if there is one: as it is, or compact as
// encoding/json writes it.
func (w *Writer) Raw(key string, v json.RawMessage) {
	switch {
	case len(v) == 0:
	case w.Standard:
		w.Value(key, v)
	default:
		w.B = append(w.key(key), v...)
	}
}

// Value writes any value by encoding/json.
func (w *Writer) Value(key string, v any) {
	var text []byte
	var err error
	if w.Standard {
		text, err = json.Marshal(v)
	} else {
		text, err = Marshal(v)
	}
	if err != nil && w.Err == nil {
		w.Err = err
	}
	w.B = append(w.key(key), text...)
}
