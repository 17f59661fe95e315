package wire

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Limits bound a body. Callers bound its size before.
var Limits = strictjson.Limits{Depth: 64}

// Parse reads a JSON text strictly. Its error is a *strictjson.Error.
func Parse(body []byte) (strictjson.Value, error) { return strictjson.Parse(body, Limits) }

// wrong returns the error of a value; the caller says which with [under].
func wrong(format string, args ...any) error {
	return &strictjson.Error{Problem: fmt.Sprintf(format, args...)}
}

// under puts the name of a member, or an index, before the path of an error.
func under(step string, err error) error {
	if err == nil {
		return nil
	}
	e, ok := err.(*strictjson.Error) //nolint:errorlint // errors of this package are not wrapped
	switch {
	case !ok:
		return err
	case e.Path == "" || e.Path[0] == '[':
		e.Path = step + e.Path
	default:
		e.Path = step + "." + e.Path
	}
	return e
}

// missing is the error of a required member that is absent or empty.
func missing(member, what string) error {
	return &strictjson.Error{Path: member, Problem: "missing; " + what}
}

func wantObject(v strictjson.Value) error {
	if v.Kind() != strictjson.Object {
		return wrong("want an object, got %s", v.Kind())
	}
	return nil
}

// textIn reads a string; null leaves it empty.
func textIn(v strictjson.Value, into *string) error {
	if v.Absent() {
		return nil
	}
	s, ok := v.Text()
	if !ok {
		return wrong("want a string, got %s", v.Kind())
	}
	*into = s
	return nil
}

func flagIn(v strictjson.Value, into *bool) error {
	if v.Absent() {
		return nil
	}
	if v.Kind() != strictjson.Bool {
		return wrong("want true or false, got %s", v.Kind())
	}
	*into = v.Raw()[0] == 't'
	return nil
}

// objectIn keeps the text of an object; null and {}, which some peers write everywhere, leave
// nil.
func objectIn(v strictjson.Value, into *json.RawMessage) error {
	if v.Absent() {
		return nil
	}
	if err := wantObject(v); err != nil || v.Len() == 0 {
		return err
	}
	*into = v.Clone()
	return nil
}

// bytesIn reads base64, with the standard or the URL alphabet, padded or not, as ProtoJSON
// does.
func bytesIn(v strictjson.Value, into *[]byte) error {
	if v.Absent() {
		return nil
	}
	s, ok := v.Text()
	if !ok {
		return wrong("want base64 text, got %s", v.Kind())
	}
	s = strings.TrimRight(s, "=")
	of := base64.RawStdEncoding
	if strings.ContainsAny(s, "-_") {
		of = base64.RawURLEncoding
	}
	b, err := of.DecodeString(s)
	if err != nil {
		return wrong("want base64 text, got text that is none")
	}
	*into = b
	return nil
}

func timeIn(v strictjson.Value, into *time.Time) error {
	var s string
	if err := textIn(v, &s); err != nil || s == "" {
		return err
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return wrong("want a time such as 2026-11-22T03:07:17.640Z, got %.40q", s)
	}
	*into = t
	return nil
}

// itemIn reads a string of a list.
func itemIn(into *string, v strictjson.Value) error {
	if v.Kind() != strictjson.String {
		return wrong("want a string, got %s", v.Kind())
	}
	return textIn(v, into)
}

// listIn reads a list; null leaves it nil.
func listIn[T any](v strictjson.Value, into *[]T, read func(*T, strictjson.Value) error) error {
	if v.Absent() {
		return nil
	}
	if v.Kind() != strictjson.Array {
		return wrong("want a list, got %s", v.Kind())
	}
	all := slices.Grow((*into)[:0], v.Len())[:v.Len()]
	clear(all)
	n := 0
	for item := range v.Items() {
		if err := read(&all[n], item); err != nil {
			return under("["+strconv.Itoa(n)+"]", err)
		}
		n++
	}
	*into = all
	return nil
}
