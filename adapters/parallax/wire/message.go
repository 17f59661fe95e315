package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/schemas"
)

// Message is the envelope of every frame (page, "Message Format"). Its payload
// stays as it came until somebody needs its inside.
type Message struct {
	Type      string          `json:"type"`
	ID        string          `json:"id,omitempty"`
	Timestamp string          `json:"timestamp,omitempty"`
	Payload   json.RawMessage `json:"payload"`
	Signature string          `json:"signature,omitempty"`

	Frame []byte           `json:"-"` // as it came
	more  json.RawMessage  // an object of the members that have no meaning; nil for none
	read  strictjson.Value // what Decode read of the payload
}

// Content returns the payload for reading its inside.
func (m Message) Content() strictjson.Value { return m.read.Of(m.Payload) }

// What both ends take by default: of the page, how long an agent may take to register,
// and how long a message may be.
const (
	DefaultRegisterTimeout = 10 * time.Second
	DefaultMaxMessageBytes = 1_000_000
)

// Limits bound a frame beyond its size, which is the session's to judge.
var Limits = strictjson.Limits{Depth: 64}

// FromAgent are the types of message that an agent may send.
var FromAgent = []string{
	TypeRegister, TypeTaskResult, TypeTaskError, TypeHeartbeat, TypeStatusUpdate, TypeDisconnect,
	TypeTaskAccepted, TypeTaskProgress, TypeTaskRequest, TypeTaskCancel,
}

// Decode reads a frame and checks it against the schema of its type. The error
// is a Fault of code invalid or unknown_kind that says what to change; the
// message then holds the id, as far as one could be read, and no payload.
func Decode(frame []byte) (Message, error) {
	var in struct {
		Message
		Payload strictjson.Value `json:"payload"`
	}
	whole, err := strictjson.Parse(frame, Limits)
	if err == nil {
		err = whole.Decode(&in)
	}
	if err != nil {
		return Message{ID: idOf(frame)}, core.NewFault(core.CodeInvalid, "%s", Explain(err))
	}
	m := in.Message
	m.Frame, m.Payload, m.read, m.more = frame, in.Payload.Raw(), in.Payload, envelopeShape.Strip(whole)
	broken := Message{Type: m.Type, ID: m.ID}
	if m.Type == "" {
		return broken, core.NewFault(core.CodeInvalid, "type: missing; send one of %s", strings.Join(FromAgent, ", "))
	}
	schema := schemas.Parallax(m.Type)
	if schema == nil {
		// The page words this error itself.
		return broken, core.NewFault(core.CodeUnknownKind, "Unknown message type: %s", Shorten(m.Type))
	}
	if err := schema.Check(whole); err != nil {
		return broken, core.NewFault(core.CodeInvalid, "%s: %s", m.Type, Explain(err))
	}
	return m, nil
}

// ReadPayload reads the payload of a message that decode let pass. The error is an
// invalid Fault.
func ReadPayload[P any](m Message) (P, error) {
	var p P
	err := error(nil)
	if own, ok := any(&p).(payloadReader); ok {
		err = own.readPayload(m.Content())
	} else {
		err = m.Content().Decode(&p)
	}
	if err != nil {
		return p, core.NewFault(core.CodeInvalid, "%s: payload: %s", m.Type, Explain(err))
	}
	return p, nil
}

// payloadReader is a payload that reads itself.
type payloadReader interface {
	readPayload(payload strictjson.Value) error
}

// Encode writes a frame. It fails only on a RawMessage that is no JSON.
func Encode(kind, id string, now time.Time, payload any) ([]byte, error) {
	frame, err := Marshal(struct {
		Type      string `json:"type"`
		ID        string `json:"id"`
		Timestamp string `json:"timestamp"`
		Payload   any    `json:"payload"`
	}{kind, id, Timestamp(now), payload})
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", kind, err)
	}
	return frame, nil
}

// Timestamp writes a time as the page does: ISO 8601 in UTC with milliseconds.
func Timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// Marshal writes JSON without escaping what only HTML needs escaped: code in an
// answer would grow by half.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// Quoted is a text in JSON.
func Quoted(text string) json.RawMessage {
	b, _ := Marshal(text) // a text always encodes
	return b
}

// idOf finds the id of a frame that is broken further in, so that its sender
// knows which one it was: the only string "id" of the outermost object before the
// break, or "".
func idOf(frame []byte) string {
	d := json.NewDecoder(bytes.NewReader(frame))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return ""
	}
	id, found := "", false
	for depth, key := 1, true; ; {
		t, err := d.Token()
		if err != nil {
			return id
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
			continue
		case json.Delim('}'), json.Delim(']'):
			if depth--; depth == 0 {
				return id
			}
		default:
			if depth != 1 {
				continue
			}
			if name, _ := t.(string); key && name == "id" {
				if found {
					return "" // two ids: neither is to be believed
				}
				found = true
				if t, err = d.Token(); err != nil {
					return ""
				}
				if _, opens := t.(json.Delim); opens {
					return ""
				}
				if id, _ = t.(string); len(id) > core.MaxIDBytes {
					id = ""
				}
				continue
			}
			if key {
				key = false
				continue
			}
		}
		if depth == 1 {
			key = true
		}
	}
}

// Explain is what a peer is told of an error in its JSON.
func Explain(err error) string {
	var f *core.Fault
	if errors.As(err, &f) {
		return f.Message
	}
	return err.Error()
}

// Shorten shortens what a message repeats of what a peer sent.
func Shorten(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}
