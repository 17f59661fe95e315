package wire

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Head is what an event of the hub has beside itself: its task, why the peer gets it, and the
// call that asked for it; "" for none.
type Head struct {
	Task core.TaskID
	Role string
	Call string
	// Position is the place after it among the events of all tasks.
	Position string
}

// AppendEvent appends the frame of an event of the hub.
func AppendEvent(b []byte, h Head, e core.Event) ([]byte, error) {
	b = appendText(append(b, `{"event":{"task":`...), string(h.Task))
	b = appendText(append(b, `,"role":`...), h.Role)
	if h.Call != "" {
		b = appendText(append(b, `,"call":`...), h.Call)
	}
	if h.Position != "" {
		b = appendText(append(b, `,"position":`...), h.Position)
	}
	b = append(b, `,"cursor":"`...)
	c := e.Cursor()
	b = append(strconv.AppendUint(b, uint64(c.Epoch), 10), '.')
	b = append(strconv.AppendUint(b, c.Seq, 10), '"')
	b, err := appendMembersOf(b, e)
	return append(b, "}}"...), err
}

// AppendReport appends the frame of an event of an agent.
func AppendReport(b []byte, r Event) ([]byte, error) {
	b = appendText(append(b, `{"event":{"task":`...), string(r.Task))
	if r.ID != "" {
		b = appendText(append(b, `,"id":`...), r.ID)
	}
	start := len(b)
	b, err := appendMembersOf(b, core.Event{Body: r.Body, Foreign: r.Foreign})
	if bytes.HasPrefix(b[start:], []byte(hubsOwn)) {
		b = append(b[:start], b[start+len(hubsOwn):]...)
	}
	return append(b, "}}"...), err
}

// hubsOwn has the members of an event that only the hub gives, when they are not set.
const hubsOwn = `,"seq":0,"at":"0001-01-01T00:00:00Z"`

// appendMembersOf appends a comma and the members of an event, with its unknown members where
// they were.
func appendMembersOf(b []byte, e core.Event) ([]byte, error) {
	start := len(b)
	if e.Foreign == nil || e.Foreign.Dialect != Dialect {
		b, err := appendPlain(b, e)
		if err != nil {
			return b, err
		}
		b[start] = ','
		return b[:len(b)-1], nil
	}
	if f, ok := e.Body.(core.ForeignFrame); ok {
		if outside, ok := unknownKind(f, e.Foreign); ok {
			return appendUnknownKind(b, e, f.Name, outside), nil
		}
	}
	outside, inside, ok := restored(e.Foreign, eventMembers, "body", bodies[e.Body.Kind()].known)
	if ok {
		e.Foreign = nil
	}
	b, err := appendPlain(b, e)
	if err != nil {
		return b, err
	}
	b[start] = ','
	b = b[:len(b)-1] // without the brace of the event: with no foreign, the body is last
	if len(inside) > 0 {
		b = appendMembers(b[:len(b)-1], inside)
	}
	if len(outside) > 0 {
		b = appendMembers(append(b, ','), outside)
		b = b[:len(b)-1]
	}
	return b, nil
}

// appendPlain appends the JSON form of an event. The unknown members of a request stand in it.
func appendPlain(b []byte, e core.Event) ([]byte, error) {
	o, ok := e.Body.(core.Opened)
	if !ok || o.Request.Foreign == nil || o.Request.Foreign.Dialect != Dialect {
		return e.AppendJSON(b)
	}
	outside, _, ok := restored(o.Request.Foreign, requestMembers, "", nil)
	if !ok {
		return e.AppendJSON(b)
	}
	o.Request.Foreign = nil
	e.Body = o
	text, err := e.AppendJSON(nil)
	if err != nil {
		return b, err
	}
	event := strictjson.ParseValid(text)
	body := event.Get("body")
	request := body.Get("request").Set(outside...)
	return append(b, event.Set(strictjson.Field{Key: "body", Value: body.Set(strictjson.Field{Key: "request", Value: request})})...), nil
}

// unknownKind returns the members of an event whose kind the hub does not know, if that is what
// the frame is.
func unknownKind(f core.ForeignFrame, kept *core.Foreign) (all []strictjson.Field, ok bool) {
	if _, known := core.ParseKind(f.Name); known || f.Dialect != Dialect || f.Name == "" || len(kept.Wire) > 0 {
		return nil, false
	}
	object, err := strictjson.Parse(kept.JSON, strictjson.Limits{})
	if err != nil || object.Kind() != strictjson.Object {
		return nil, false
	}
	for key, v := range object.Members() {
		if name := string(key); eventMembers.has(key) && name != "body" && (name != "foreign" || v.Kind() != strictjson.Object) {
			return nil, false
		}
		all = append(all, strictjson.Field{Key: string(key), Value: v.Raw()})
	}
	return all, true
}

// appendUnknownKind appends a comma and the members of an event of an unknown kind.
func appendUnknownKind(b []byte, e core.Event, kind string, all []strictjson.Field) []byte {
	if e.Seq != 0 {
		b = strconv.AppendUint(append(b, `,"seq":`...), e.Seq, 10)
		b = strconv.AppendUint(append(b, `,"epoch":`...), uint64(e.Epoch), 10)
		at, _ := json.Marshal(e.At) // the time of a hub has a form
		b = append(append(b, `,"at":`...), at...)
	}
	b = appendText(append(b, `,"kind":`...), kind)
	if len(all) > 0 {
		b = appendMembers(append(b, ','), all)
		b = b[:len(b)-1]
	}
	return b
}

// appendText appends a string as JSON.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			text, _ := json.Marshal(s) // a string always encodes
			return append(b, text...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// Encode returns the frame with one member: the name of its kind, and its value.
func Encode(kind string, value any) ([]byte, error) {
	w := strictjson.Writer{B: []byte{'{'}}
	w.Value(kind, value)
	w.End()
	return w.B, w.Err
}

// EncodeCall returns the frame of a call.
func EncodeCall(c Call) ([]byte, error) {
	return strictjson.Marshal(struct {
		Call callJSON `json:"call"`
		With With     `json:"with,omitzero"`
	}{callJSON{c.ID, c.Trace, c.Command.Act().String(), c.Command}, c.With})
}

type callJSON struct {
	ID      string       `json:"id"`
	Trace   core.Trace   `json:"trace,omitzero"`
	Act     string       `json:"act"`
	Command core.Command `json:"command"`
}
