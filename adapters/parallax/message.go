package parallax

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

// message is the envelope of every frame (page, "Message Format"). Its payload
// stays as it came until somebody needs its inside.
type message struct {
	Type      string          `json:"type"`
	ID        string          `json:"id,omitempty"`
	Timestamp string          `json:"timestamp,omitempty"`
	Payload   json.RawMessage `json:"payload"`
	Signature string          `json:"signature,omitempty"`

	frame []byte          // as it came
	more  json.RawMessage // an object of the members that have no meaning; nil for none
}

// limits bound a frame beyond its size, which is the session's to judge.
var limits = strictjson.Limits{Depth: 64}

// fromAgent are the types of message that an agent may send.
var fromAgent = []string{
	typeRegister, typeTaskResult, typeTaskError, typeHeartbeat, typeStatusUpdate, typeDisconnect,
	typeTaskAccepted, typeTaskProgress, typeTaskRequest, typeTaskCancel,
}

// decode reads a frame and checks it against the schema of its type. The error
// is a Fault of code invalid or unknown_kind that says what to change; the
// message then holds the id, as far as one could be read, and no payload.
func decode(frame []byte) (message, error) {
	var m message
	// Almost no message has members of its own: they are looked for only where a
	// strict reader stumbles.
	if strictjson.DecodeKnown(frame, limits, &m) != nil {
		m = message{}
		if err := strictjson.Decode(frame, limits, &m); err != nil {
			return message{ID: idOf(frame)}, core.NewFault(core.CodeInvalid, "%s", wording(err))
		}
		m.more = envelopeShape.strip(frame)
	}
	m.frame = frame
	broken := message{Type: m.Type, ID: m.ID}
	if m.Type == "" {
		return broken, core.NewFault(core.CodeInvalid, "type: missing; send one of %s", strings.Join(fromAgent, ", "))
	}
	schema := schemas.Parallax(m.Type)
	if schema == nil {
		// The page words this error itself.
		return broken, core.NewFault(core.CodeUnknownKind, "Unknown message type: %s", cut(m.Type))
	}
	if err := schema.Validate(frame); err != nil {
		return broken, core.NewFault(core.CodeInvalid, "%s: %s", m.Type, wording(err))
	}
	return m, nil
}

// payloadOf reads the payload of a message that decode let pass. The error is an
// invalid Fault.
func payloadOf[P any](m message) (P, error) {
	var p P
	if len(m.Payload) == 0 {
		return p, nil
	}
	err := error(nil)
	if own, ok := any(&p).(payloadReader); ok {
		err = own.readPayload(m.Payload)
	} else {
		err = strictjson.Decode(m.Payload, limits, &p)
	}
	if err != nil {
		return p, core.NewFault(core.CodeInvalid, "%s: payload: %s", m.Type, wording(err))
	}
	return p, nil
}

// payloadReader is a payload that reads itself.
type payloadReader interface{ readPayload(json.RawMessage) error }

// encode writes a frame. It fails only on a RawMessage that is no JSON.
func encode(kind, id string, now time.Time, payload any) ([]byte, error) {
	frame, err := marshal(struct {
		Type      string `json:"type"`
		ID        string `json:"id"`
		Timestamp string `json:"timestamp"`
		Payload   any    `json:"payload"`
	}{kind, id, timestamp(now), payload})
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", kind, err)
	}
	return frame, nil
}

// timestamp writes a time as the page does: ISO 8601 in UTC with milliseconds.
func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// marshal writes JSON without escaping what only HTML needs escaped: code in an
// answer would grow by half.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
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

// wording is what a peer is told of an error in its JSON.
func wording(err error) string {
	var f *core.Fault
	if errors.As(err, &f) {
		return f.Message
	}
	return err.Error()
}

// cut shortens what a message repeats of what a peer sent.
func cut(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}
