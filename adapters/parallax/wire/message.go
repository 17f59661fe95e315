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

// Message is the envelope of every frame (page, "Message Format"). Its payload is
// decoded only by [ReadPayload].
type Message struct {
	Type      string          `json:"type"`
	ID        string          `json:"id,omitempty"`
	Timestamp string          `json:"timestamp,omitempty"`
	Payload   json.RawMessage `json:"payload"`
	Signature string          `json:"signature,omitempty"`

	Frame   []byte           `json:"-"` // as received
	unknown json.RawMessage  // an object of the members that the hub does not know; nil for none
	parsed  strictjson.Value // of Payload
}

// Content returns the parsed payload.
func (m Message) Content() strictjson.Value { return m.parsed.Of(m.Payload) }

// RegisterTimeout is how long the hub waits for register, and the agent for registered.
const RegisterTimeout = 10 * time.Second

// The defaults of both ends.
const (
	DefaultHeartbeatInterval = 10 * time.Second
	DefaultMaxMessageBytes   = 1_000_000
)

// Limits bound the JSON of a frame. The session bounds its size.
var Limits = strictjson.Limits{Depth: 64}

// FromAgent lists the types of message that an agent may send.
var FromAgent = []string{
	TypeRegister, TypeTaskResult, TypeTaskError, TypeHeartbeat, TypeStatusUpdate, TypeDisconnect,
	TypeTaskAccepted, TypeTaskProgress, TypeTaskRequest, TypeTaskCancel,
}

// Decode reads a frame and checks it against the schema of its type. The error is a
// Fault of code invalid or unknown_kind that says what to change; the message then has
// its id, if that could be read, and no payload.
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
	m.Frame, m.Payload, m.parsed, m.unknown = frame, in.Payload.Raw(), in.Payload, envelopeShape.Strip(whole)
	broken := Message{Type: m.Type, ID: m.ID}
	if m.Type == "" {
		return broken, core.NewFault(core.CodeInvalid, "type: missing; send one of %s", strings.Join(FromAgent, ", "))
	}
	schema := schemas.Parallax(m.Type)
	if schema == nil {
		// The text of this error is that of the page.
		return broken, core.NewFault(core.CodeUnknownKind, "Unknown message type: %s", Shorten(m.Type))
	}
	if err := schema.Check(whole); err != nil {
		return broken, core.NewFault(core.CodeInvalid, "%s: %s", m.Type, Explain(err))
	}
	return m, nil
}

// ReadPayload decodes the payload of a message that [Decode] returned. The error is an
// invalid Fault.
func ReadPayload[P any](m Message) (P, error) {
	var p P
	var err error
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

// payloadReader is a payload with its own way to decode itself.
type payloadReader interface {
	readPayload(payload strictjson.Value) error
}

// Encode returns a frame. It fails only if a RawMessage is no JSON.
func Encode(kind, id string, now time.Time, payload any) ([]byte, error) {
	frame, err := strictjson.Marshal(struct {
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

// Timestamp returns a time as on the page: ISO 8601 in UTC with milliseconds.
func Timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// Unquoted returns the text of a JSON string, and reports whether raw is one.
func Unquoted(raw json.RawMessage) (string, bool) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	var s string
	return s, json.Unmarshal(raw, &s) == nil
}

// idOf returns the id of an invalid frame, so that its sender knows which frame the
// error is about, or "": the members before the error are read, and two ids are none.
func idOf(frame []byte) (id string) {
	d := json.NewDecoder(bytes.NewReader(frame))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return ""
	}
	for found := false; d.More(); {
		key, err := d.Token()
		if err != nil {
			break
		}
		if key == "id" && found {
			return ""
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			break
		}
		if key == "id" {
			found = true
			if id, _ = Unquoted(value); len(id) > core.MaxIDBytes {
				id = ""
			}
		}
	}
	return id
}

// Explain returns the text that a peer gets for an error in its JSON.
func Explain(err error) string {
	var f *core.Fault
	if errors.As(err, &f) {
		return f.Message
	}
	return err.Error()
}

// Shorten cuts text of a peer that an error message quotes.
func Shorten(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}
