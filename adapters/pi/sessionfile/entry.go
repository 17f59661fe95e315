package sessionfile

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core/strictjson"
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

// Entry is a line behind the header. Conversations stay in memory, and collections of
// garbage follow every pointer in them: an entry knows what stands where in its line.
type Entry struct {
	// Type is one of those that this package names, or another.
	Type string
	// Line is the whole entry, without the end of the line. It is read only.
	Line []byte
	// Texts are between their quotes. They have to be decoded where one is escaped.
	id, parent, at, message span
	escaped                 bool
}

// span is a part of a line.
type span struct{ from, to uint32 }

func spanOf(from, to int) span { return span{uint32(from), uint32(to)} } //nolint:gosec // no line is as long

// NewMessage makes the entry of a message, JSON without line breaks, whose line is to
// stand in the page. It follows the parent, or none.
func NewMessage(in *Page, id string, parent *Entry, at time.Time, message json.RawMessage) Entry {
	const name = `,"message":`
	e := begin(in, TypeMessage, id, parent, at, len(name)+len(message)+1)
	from := len(e.Line) + len(name)
	e.Line = append(append(append(e.Line, name...), message...), '}')
	e.message = spanOf(from, from+len(message))
	return e
}

// New is NewMessage for an entry that says something else.
func New(in *Page, id string, parent *Entry, at time.Time, b Body) Entry {
	body := encode(b)[1:]
	e := begin(in, b.kind(), id, parent, at, 1+len(body))
	e.Line = append(append(e.Line, ','), body...)
	return e
}

// begin makes an entry with what all have, before as many bytes as it goes on for.
func begin(in *Page, kind, id string, parent *Entry, at time.Time, more int) Entry {
	follows, escaped := []byte("null"), false
	if parent != nil {
		follows, escaped = parent.Line[parent.id.from-1:parent.id.to+1], parent.escaped
	}
	const names = len(`{"type":"","id":"","parentId":,"timestamp":""`)
	e := Entry{Type: kind, Line: in.room(names + len(kind) + len(id) + len(follows) + len(Time) + more)}
	e.Line = append(append(append(e.Line, `{"type":"`...), kind...), `","id":`...)
	from := len(e.Line) + 1
	e.Line = appendText(e.Line, id)
	e.id = spanOf(from, len(e.Line)-1)
	e.escaped = escaped || len(e.Line)-1-from != len(id)
	e.Line = append(e.Line, `,"parentId":`...)
	from = len(e.Line) + 1
	e.Line = append(e.Line, follows...)
	if parent != nil {
		e.parent = spanOf(from, len(e.Line)-1)
	}
	e.Line = append(e.Line, `,"timestamp":"`...)
	from = len(e.Line)
	e.Line = appendTime(e.Line, at)
	e.at = spanOf(from, len(e.Line))
	e.Line = append(e.Line, '"')
	return e
}

// appendTime appends a point in time in the form of [Time], of which only the seconds
// have a quick way.
func appendTime(dst []byte, at time.Time) []byte {
	dst = at.UTC().AppendFormat(dst, time.RFC3339)
	end := len(dst) - 1
	dst = strconv.AppendInt(dst[:end], int64(1000+at.Nanosecond()/1e6), 10)
	dst[end] = '.'
	return append(dst, 'Z')
}

// text is what stands there: on no heap where the caller keeps it nowhere, since all of
// this is inlined.
func (e *Entry) text(s span) string {
	if e.escaped {
		return e.decode(s)
	}
	return string(e.Line[s.from:s.to])
}

func (e *Entry) decode(s span) (text string) {
	if s != (span{}) {
		_ = json.Unmarshal(e.Line[s.from-1:s.to+1], &text) // it was checked
	}
	return text
}

// ID is the id of the entry.
func (e *Entry) ID() string { return e.text(e.id) }

// ParentID is the id of the entry that this one follows, or "" of one that follows none.
func (e *Entry) ParentID() string { return e.text(e.parent) }

// Timestamp is when the entry was made, as its line has it.
func (e *Entry) Timestamp() string { return e.text(e.at) }

// Body decodes what the entry says into a pointer to one of the bodies. It returns
// the error of [strictjson.Decode].
func (e *Entry) Body(into any) error {
	return strictjson.Decode(e.Line, strictjson.Limits{Bytes: len(e.Line)}, into)
}

// Message returns the message of an entry that is one, else nil. It shares memory
// with the line.
func (e *Entry) Message() json.RawMessage {
	if e.message.from == e.message.to {
		return nil
	}
	return e.Line[e.message.from:e.message.to:e.message.to]
}

// appendText appends a JSON string. Most stand as they are.
func appendText(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return append(dst, encode(strings.Clone(s))...) // no other has to be on the heap
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
