package sessionfile

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Version is the version of the format of new files.
const Version = 3

// Time is the format of times.
const Time = "2006-01-02T15:04:05.000Z"

// Header is the first line of a file.
type Header struct {
	Version   int    `json:"version"`
	ID        string `json:"id"`
	Timestamp string `json:"timestamp"`
	Cwd       string `json:"cwd"`
	// ParentSession is the file that this one continues, or "".
	ParentSession string `json:"parentSession,omitempty"`
	// SessionID is the id of the session in the hub that wrote the file, or "". It is an
	// addition to the format, which other readers ignore.
	SessionID string `json:"sessionId,omitempty"`
}

// Line returns the header as a line without a line break.
func (h Header) Line() []byte {
	return strictjson.Encode(struct {
		Type string `json:"type"`
		Header
	}{"session", h})
}

// Entry is a line after the header. Conversations stay in memory, and the garbage collector
// follows every pointer in them, so an entry holds positions in its line.
type Entry struct {
	// Type is one of the constants of this package, or another.
	Type string
	// Line is the whole entry without a line break. It is read only.
	Line []byte
	// Positions of texts are those between their quotes. If one text is escaped, all are
	// decoded.
	id, parent, at, message span
	escaped                 bool
}

// span is a part of a line.
type span struct{ from, to uint32 }

func spanOf(from, to int) span { return span{uint32(from), uint32(to)} } //nolint:gosec // no line is as long

// NewMessage returns the entry of a message, JSON without line breaks. Its line is allocated
// in the page. parent may be nil.
func NewMessage(in *Page, id string, parent *Entry, at time.Time, message json.RawMessage) Entry {
	const name = `,"message":`
	e := begin(in, TypeMessage, id, parent, at, len(name)+len(message)+1)
	from := len(e.Line) + len(name)
	e.Line = append(append(append(e.Line, name...), message...), '}')
	e.message = spanOf(from, from+len(message))
	return e
}

// New is NewMessage for an entry with a Body.
func New(in *Page, id string, parent *Entry, at time.Time, b Body) Entry {
	body := strictjson.Encode(b)[1:]
	e := begin(in, b.kind(), id, parent, at, 1+len(body))
	e.Line = append(append(e.Line, ','), body...)
	return e
}

// begin returns an entry with the members that all have, and room for more bytes.
func begin(in *Page, kind, id string, parent *Entry, at time.Time, more int) Entry {
	follows, escaped := []byte("null"), false
	if parent != nil {
		follows, escaped = parent.Line[parent.id.from-1:parent.id.to+1], parent.escaped
	}
	const names = len(`{"type":"","id":"","parentId":,"timestamp":""`)
	e := Entry{Type: kind, Line: in.room(names + len(kind) + len(id) + len(follows) + len(Time) + more)}
	e.Line = append(append(append(e.Line, `{"type":"`...), kind...), `","id":`...)
	from := len(e.Line) + 1
	e.Line = strictjson.AppendString(e.Line, id)
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

// appendTime appends a time in the format [Time]. AppendFormat has a fast path for seconds
// only.
func appendTime(dst []byte, at time.Time) []byte {
	dst = at.UTC().AppendFormat(dst, time.RFC3339)
	end := len(dst) - 1
	dst = strconv.AppendInt(dst[:end], int64(1000+at.Nanosecond()/1e6), 10)
	dst[end] = '.'
	return append(dst, 'Z')
}

// text returns a text of the line. It is inlined, so that a text that the caller does not
// keep is not allocated on the heap.
func (e *Entry) text(s span) string {
	if e.escaped {
		return e.decode(s)
	}
	return string(e.Line[s.from:s.to])
}

func (e *Entry) decode(s span) (text string) {
	if s != (span{}) {
		_ = json.Unmarshal(e.Line[s.from-1:s.to+1], &text) // checked when it was parsed
	}
	return text
}

// ID returns the id of the entry.
func (e *Entry) ID() string { return e.text(e.id) }

// ParentID returns the id of the entry that this one follows, or "".
func (e *Entry) ParentID() string { return e.text(e.parent) }

// Timestamp returns the time of the entry as in its line.
func (e *Entry) Timestamp() string { return e.text(e.at) }

// Body decodes the entry into a pointer to one of the bodies. It returns the error of
// [strictjson.Decode].
func (e *Entry) Body(into any) error {
	return strictjson.Decode(e.Line, strictjson.Limits{Bytes: len(e.Line)}, into)
}

// Message returns the message of a message entry, else nil. It shares memory with the line.
func (e *Entry) Message() json.RawMessage {
	if e.message.from == e.message.to {
		return nil
	}
	return e.Line[e.message.from:e.message.to:e.message.to]
}

func pointer(id string) *string {
	if id == "" {
		return nil
	}
	return &id
}
