package command

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Command is one decoded frame of a client (section 4). It keeps every field, used or not.
type Command struct {
	object  strictjson.Value
	size    int    // in memory, of the decoded frame
	Kind    string // the type, "" if it is no string
	id      string // "" if it is no string
	Session string // the sessionId, "" if it is no string
	Spec    *spec  // nil of an unknown type
}

// Decode decodes a frame. The error, for text that is not strict JSON or longer than limit
// bytes, says what to change. A value that is no object yields a command without fields.
func Decode(frame []byte, limit int) (Command, error) {
	v, err := strictjson.Parse(frame, strictjson.Limits{Bytes: limit})
	if err != nil {
		return Command{}, err
	}
	c := Command{object: v, size: v.Memory()}
	c.Kind, _ = c.Text("type")
	c.id, _ = c.Text("id")
	c.Session, _ = c.Text("sessionId")
	c.Spec = Table[c.Kind]
	return c, nil
}

// Text returns a field, and whether it is a string.
func (c Command) Text(name string) (string, bool) { return c.object.Get(name).Text() }

// Has reports whether the frame has the field, whatever its value.
func (c Command) Has(name string) bool { return c.object.Get(name).Exists() }

// whole returns a field, and whether it is an integer.
func (c Command) whole(name string) (int64, bool) { return whole(c.object.Get(name)) }

// whole returns a number in any notation, and whether it is an integer.
func whole(v strictjson.Value) (int64, bool) {
	var f float64
	if v.Kind() != strictjson.Number || v.Decode(&f) != nil {
		return 0, false
	}
	const exact = 1 << 53
	if f != math.Trunc(f) || math.Abs(f) > exact {
		return 0, false
	}
	return int64(f), true
}

// List returns the items of a field, and whether it is an array.
func (c Command) List(name string) ([]strictjson.Value, bool) {
	v := c.object.Get(name)
	return slices.Collect(v.Items()), v.Kind() == strictjson.Array
}

// Object returns a field as a command, for reading its members, and whether it is an
// object.
func (c Command) Object(name string) (Command, bool) { return objectOf(c.object.Get(name)) }

func objectOf(v strictjson.Value) (Command, bool) {
	return Command{object: v}, v.Kind() == strictjson.Object
}

// Is reports whether the field has one of the JSON texts.
func (c Command) Is(name string, texts ...string) bool {
	return slices.Contains(texts, string(c.object.Get(name).Raw()))
}

// response is the outcome of a command in its response (section 5).
type response struct {
	data       json.RawMessage
	err        string // "" of a success
	version    int
	hasVersion bool
	timedOut   bool
	replayed   bool
}

// appendResponse appends the response to c. The id and the type are echoed
// unchanged, valid or not.
func appendResponse(dst []byte, c Command, r response) []byte {
	id := c.object.Get("id").Raw()
	w := strictjson.Writer{B: append(slices.Grow(dst, 112+len(id)+len(r.data)+len(r.err)), '{')}
	w.Raw("id", id)
	w.Text("type", "response")
	if kind := c.object.Get("type"); kind.Exists() {
		w.Raw("command", kind.Raw())
	} else {
		w.Text("command", "unknown")
	}
	return append(appendOutcome(w.B, r, true), '}')
}

// Refusal returns the response to a frame that could not be decoded.
func Refusal(text string) []byte { return appendResponse(nil, Command{}, response{err: text}) }

// Refused returns the response to a command of somebody who may give none.
func (c Command) Refused(text string) []byte { return appendResponse(nil, c, response{err: text}) }

// CreatesSession reports whether the command creates a session.
func (c Command) CreatesSession() bool { return c.Kind == "create_session" || c.Kind == "load_session" }

// lane returns the id of the lane of a command: its session, or serverLane for a type that
// has no use for a sessionId.
func (c Command) lane() string {
	switch c.Kind {
	case "create_session", "load_session", "delete_session", "switch_session":
		return c.Session
	}
	if c.Spec != nil && c.Spec.Session {
		return c.Session
	}
	return serverLane
}

// serverLane is the lane of commands without a session. No session can have this id.
const serverLane = ""

// appendOutcome appends the outcome of a command: full for a response, else for
// command_finished.
func appendOutcome(dst []byte, r response, full bool) []byte {
	w := strictjson.Writer{B: dst}
	w.Bool("success", r.err == "")
	w.Some("error", r.err)
	if full {
		w.Raw("data", r.data)
	}
	if r.hasVersion {
		w.Number("sessionVersion", int64(r.version))
	}
	w.Flag("replayed", r.replayed)
	w.Flag("timedOut", full && r.timedOut)
	return w.B
}

// appendIdentity appends the members that all lifecycle events of a command share (facts,
// section 2.1). name is its id, or the synthetic one.
func appendIdentity(dst []byte, c Command, name string) []byte {
	session, depends := c.object.Get("sessionId").Raw(), c.object.Get("dependsOn").Raw()
	dst = slices.Grow(dst, 64+len(name)+len(c.Kind)+len(session)+len(depends))
	dst = strictjson.AppendString(append(dst, `"commandId":`...), name)
	dst = strictjson.AppendString(append(dst, `,"commandType":`...), c.Kind)
	if session != nil {
		dst = append(append(dst, `,"sessionId":`...), session...)
	}
	dst = append(dst, `,"dependsOn":`...)
	if depends != nil {
		dst = append(dst, depends...)
	} else {
		dst = append(dst, '[', ']')
	}
	for _, name := range []string{"ifSessionVersion", "idempotencyKey"} {
		if v := c.object.Get(name); v.Exists() {
			dst = append(append(append(dst, ',', '"'), name...), '"', ':')
			dst = append(dst, v.Raw()...)
		}
	}
	return dst
}
