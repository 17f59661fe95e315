package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Dialect is the name of the dialect in cards, principals and foreign frames.
const Dialect = "acp"

// Version is the version of the envelope, its member v.
const Version = 1

// DefaultMaxEnvelopeBytes is the default limit of an envelope.
const DefaultMaxEnvelopeBytes = 1_000_000

// envelopeDepth bounds the nesting of an envelope.
const envelopeDepth = 64

// Kind is the kind of an envelope. A kind that is not among the constants is unknown; it
// passes between two ACP peers.
type Kind string

// The kinds (ACP message types, "Core Types" and "Response/Async Types"), hello
// of its successor, and our extensions: progress, and subscribe with unsubscribe.
const (
	KindPing         Kind = "ping"
	KindPong         Kind = "pong"
	KindQuery        Kind = "query"
	KindResponse     Kind = "response"
	KindDelegate     Kind = "delegate"
	KindAck          Kind = "ack"
	KindResult       Kind = "result"
	KindNotify       Kind = "notify"
	KindCancel       Kind = "cancel"
	KindDiscover     Kind = "discover"
	KindCapabilities Kind = "capabilities"
	KindError        Kind = "error"
	KindHello        Kind = "hello"
	KindProgress     Kind = "progress"
	KindSubscribe    Kind = "subscribe"
	KindUnsubscribe  Kind = "unsubscribe"
)

var kinds = []Kind{
	KindPing, KindPong, KindQuery, KindResponse, KindDelegate, KindAck, KindResult, KindNotify,
	KindCancel, KindDiscover, KindCapabilities, KindError, KindHello, KindProgress, KindSubscribe, KindUnsubscribe,
}

// Kinds returns every kind that the hub knows.
func Kinds() []Kind { return slices.Clone(kinds) }

// Known reports whether the hub knows the kind.
func (k Kind) Known() bool { return slices.Contains(kinds, k) }

// Passes reports whether an envelope of the kind passes through the hub to an ACP agent and
// waits, beside the tasks, for its first answer: unknown kinds, and ping.
func (k Kind) Passes() bool { return !k.Known() || k == KindPing }

// Asks reports whether an envelope of the kind expects an answer.
func (k Kind) Asks() bool {
	switch k {
	case KindPing, KindQuery, KindDelegate, KindCancel, KindDiscover, KindHello, KindSubscribe, KindUnsubscribe:
		return true
	}
	return false
}

// HubID is the id of the hub in from and to.
const HubID = "hub"

// Envelope is one message.
type Envelope struct {
	// ID is unique among the envelopes of its sender: for the hub a UUID of version 4.
	ID   string
	From string
	To   string
	// TS is when it was sent, in milliseconds since 1970; zero if it does not say.
	TS   int64
	Kind Kind
	// Ref is the id of the envelope that this one answers, or "".
	Ref string
	// Payload is a JSON object, or nothing.
	Payload json.RawMessage
	// Raw is the envelope as it was received; nil for one that was not.
	Raw []byte
	// Carrier is the trace context of what carried the envelope, such as an HTTP request.
	Carrier core.Trace

	whole, payload strictjson.Value // Raw and Payload, parsed by [Decode]
}

// New returns an envelope with a fresh id and the present time.
func New(kind Kind, from, to, ref string, payload any) Envelope {
	return Envelope{ID: NewID(), From: from, To: to, TS: time.Now().UnixMilli(), Kind: kind, Ref: ref, Payload: Marshal(payload)}
}

// decoded is the JSON form of an envelope.
type decoded struct {
	V       *int64           `json:"v"`
	ID      string           `json:"id"`
	From    string           `json:"from"`
	To      string           `json:"to"`
	TS      float64          `json:"ts"`
	Kind    string           `json:"kind"`
	Ref     string           `json:"ref"`
	ReplyTo string           `json:"reply_to"` // the former name of ref
	Payload strictjson.Value `json:"payload"`
}

// Decode reads an envelope of at most limit bytes, strictly: exact-case keys, none twice,
// bounded depth. Unknown members are ignored and stay in Raw, which shares memory with b, as
// Payload does. The error is an *[Error] that says what to change, of code invalid_envelope,
// too_large or incompatible_version. With an error the Envelope has the id if that could be
// read.
func Decode(b []byte, limit int) (Envelope, error) {
	if len(b) > limit {
		return Peek(b), Refusef(CodeTooLarge, "the envelope has %d bytes, the limit is %d: send less, or a reference to it", len(b), limit)
	}
	whole, err := strictjson.Parse(b, strictjson.Limits{Bytes: limit, Depth: envelopeDepth})
	var w decoded
	if err == nil {
		err = whole.Decode(&w)
	}
	if err != nil {
		return Peek(b), invalid(err)
	}
	e := Envelope{ID: w.ID, From: w.From, To: w.To, TS: int64(w.TS), Kind: Kind(w.Kind), Ref: cmp.Or(w.Ref, w.ReplyTo), Raw: b, whole: whole}
	if !w.Payload.Absent() {
		e.Payload, e.payload = w.Payload.Raw(), w.Payload
	}
	switch {
	case whole.Kind() != strictjson.Object:
		return Envelope{}, Refusef(CodeInvalidEnvelope, "an envelope is a JSON object: send {\"v\":1,\"id\":\"...\",\"from\":\"...\",\"kind\":\"query\",\"payload\":{...}}")
	case w.V != nil && *w.V != Version:
		return e, Refusef(CodeIncompatibleVersion, "version %d of the envelope is not spoken here: send \"v\":%d", *w.V, Version)
	case e.ID == "":
		return e, Refusef(CodeInvalidEnvelope, "the envelope has no id: give each its own, such as a UUID of version 4")
	case len(e.ID) > core.MaxIDBytes:
		return Envelope{}, Refusef(CodeInvalidEnvelope, "the id has %d bytes: use at most %d, such as a UUID of version 4", len(e.ID), core.MaxIDBytes)
	case len(e.Ref) > core.MaxIDBytes:
		return e, Refusef(CodeInvalidEnvelope, "ref has %d bytes: it is the id of an envelope and has at most %d", len(e.Ref), core.MaxIDBytes)
	case e.Kind == "":
		return e, Refusef(CodeInvalidEnvelope, "the envelope has no kind: send one of %s", KindList())
	case len(e.Kind) > core.MaxIDBytes:
		return e, Refusef(CodeInvalidEnvelope, "the kind has %d bytes: send one of %s", len(e.Kind), KindList())
	case e.Payload != nil && e.payload.Kind() != strictjson.Object:
		return e, Refusef(CodeInvalidEnvelope, "payload is no JSON object: send {} where there is nothing to say")
	}
	return e, nil
}

// Encode returns the envelope as JSON on one line. It ignores Raw, see [Readdress].
func (e Envelope) Encode() []byte {
	payload := []byte("{}")
	if e.Payload != nil {
		payload = onOneLine(e.Payload)
	}
	out := make([]byte, 0, 160+len(e.ID)+len(e.From)+len(e.To)+len(e.Ref)+len(payload))
	out = append(out, `{"v":1,"id":`...)
	out = appendText(out, e.ID)
	out = appendText(append(out, `,"from":`...), e.From)
	out = appendText(append(out, `,"to":`...), e.To)
	out = strconv.AppendInt(append(out, `,"ts":`...), e.TS, 10)
	out = appendText(append(out, `,"kind":`...), string(e.Kind))
	out = append(out, `,"ref":`...)
	if e.Ref == "" {
		out = append(out, "null"...)
	} else {
		out = appendText(out, e.Ref)
	}
	out = append(append(out, `,"payload":`...), payload...)
	return append(out, '}')
}

// appendText appends a text as JSON. Ids, kinds and most pieces of text need no escapes.
func appendText(b []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			return append(b, Marshal(text)...)
		}
	}
	b = append(b, '"')
	b = append(b, text...)
	return append(b, '"')
}

// Marshal returns v as JSON without HTML escapes. v consists of strings, numbers and checked
// JSON, so encoding it cannot fail; if it did, Marshal would return null.
func Marshal(v any) []byte {
	text, err := strictjson.Marshal(v)
	if err != nil {
		return []byte("null")
	}
	return text
}

// Peek reads what it can of an invalid envelope: the id, so that the error can have it as
// its ref, and the kind and the ref, so that the task that waits for the envelope ends.
func Peek(b []byte) (e Envelope) {
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return e
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return e
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return e
		}
		var text string
		if json.Unmarshal(value, &text) != nil || len(text) > core.MaxIDBytes {
			continue
		}
		name, _ := key.(string)
		switch strings.ToLower(name) { // a key in another case may be the mistake
		case "id":
			e.ID = text
		case "kind":
			e.Kind = Kind(text)
		case "ref", "reply_to":
			e.Ref = cmp.Or(e.Ref, text)
		}
	}
	return e
}

// invalid returns an error of the JSON reader as an Error.
func invalid(err error) *Error {
	var j *strictjson.Error
	if errors.As(err, &j) {
		return Refusef(CodeInvalidEnvelope, "%s", j.Error())
	}
	return Refusef(CodeInvalidEnvelope, "not an envelope: %s", err)
}

// IsObject reports whether JSON text is an object.
func IsObject(b []byte) bool {
	b = bytes.TrimLeft(b, " \t\r\n")
	return len(b) > 0 && b[0] == '{'
}

// KindList returns the known kinds as text, for messages.
func KindList() string {
	var names []string
	for _, k := range kinds {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}
