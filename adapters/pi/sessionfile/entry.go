package sessionfile

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// Version is the version of the format that is written.
const Version = 3

// Time is the form of points in time.
const Time = "2006-01-02T15:04:05.000Z"

// Header is the first line of a file.
type Header struct {
	Version   int    `json:"version"`
	ID        string `json:"id"`
	Timestamp string `json:"timestamp"`
	Cwd       string `json:"cwd"`
	// ParentSession is the file that this one was begun from, or "".
	ParentSession string `json:"parentSession,omitempty"`
	// SessionID is under which id a hub of this project kept the session, or "". It is
	// an addition to the format, which other readers pass over.
	SessionID string `json:"sessionId,omitempty"`
}

// Line returns the header as a line without its end.
func (h Header) Line() []byte {
	return encode(struct {
		Type string `json:"type"`
		Header
	}{"session", h})
}

// Entry is a line behind the header.
type Entry struct {
	Type string
	ID   string
	// ParentID is the entry that this one follows, or "" of one that follows none.
	ParentID  string
	Timestamp string
	// Line is the whole entry, without the end of the line. It is read only.
	Line []byte
}

// New makes an entry. The message of a [Message] must be JSON without line breaks.
func New(id, parent string, at time.Time, b Body) Entry {
	var few [64]byte
	own := string(at.UTC().AppendFormat(append(few[:0], id...), Time)) // entries stay: one string for both
	e := Entry{Type: b.kind(), ID: own[:len(id)], ParentID: parent, Timestamp: own[len(id):]}
	m, isMessage := b.(Message)
	const names = len(`{"type":"","id":"","parentId":"","timestamp":"","message":}`)
	line := e.appendHead(make([]byte, 0, names+len(e.Type)+len(id)+len(parent)+len(e.Timestamp)+len(m.Message)))
	if isMessage { // which may be long: it is copied once
		e.Line = append(append(append(line, `,"message":`...), m.Message...), '}')
		return e
	}
	e.Line = append(append(line, ','), encode(b)[1:]...)
	return e
}

// Body decodes what the entry says into a pointer to one of the bodies. It returns
// the error of [core.DecodeJSON].
func (e Entry) Body(into any) error {
	return core.DecodeJSON(e.Line, core.JSONLimits{Bytes: len(e.Line)}, into)
}

// Message returns the message of an entry that is one, else nil. It shares memory
// with the line.
func (e Entry) Message() json.RawMessage {
	var m Message
	if e.Type != TypeMessage || e.Body(&m) != nil || len(m.Message) == 0 {
		return nil
	}
	at := bytes.Index(e.Line, m.Message) // the same bytes, wherever they stand first
	return e.Line[at : at+len(m.Message) : at+len(m.Message)]
}

// appendHead appends what all entries have, without the brace behind it.
func (e Entry) appendHead(dst []byte) []byte {
	dst = appendText(append(dst, `{"type":`...), e.Type)
	dst = appendText(append(dst, `,"id":`...), e.ID)
	dst = append(dst, `,"parentId":`...)
	if e.ParentID == "" {
		dst = append(dst, "null"...)
	} else {
		dst = appendText(dst, e.ParentID)
	}
	return appendText(append(dst, `,"timestamp":`...), e.Timestamp)
}

// appendText appends a JSON string. Most stand as they are.
func appendText(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return append(dst, encode(s)...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}

func pointer(id string) *string {
	if id == "" {
		return nil
	}
	return &id
}

// encode returns v as JSON. It is for the values of this package, which always have
// a JSON form, unless a caller has put in what is none.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
