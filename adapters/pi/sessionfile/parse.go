package sessionfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unique"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// File is a decoded session file.
type File struct {
	Header  Header
	Entries []Entry
	// Skipped is the number of lines that are no entries: torn, not JSON, or with the id of
	// another. They stay in the file.
	Skipped int
}

// ErrNoSession is the error for a text that is no session file.
var ErrNoSession = errors.New("the first line is no header of a session: want an object with type \"session\", a numeric version and a cwd")

// ParseHeader reads the first line of a file. data is the beginning of the file with at least
// that line. It returns [ErrNoSession] if the line is no header.
func ParseHeader(data []byte) (Header, error) {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	return readHeader(line)
}

func readHeader(line []byte) (Header, error) {
	var head struct {
		Type          string   `json:"type"`
		Version       *float64 `json:"version"`
		ID            string   `json:"id"`
		Timestamp     string   `json:"timestamp"`
		Cwd           *string  `json:"cwd"`
		ParentSession string   `json:"parentSession"`
		SessionID     string   `json:"sessionId"`
	}
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] != '{' || strictjson.Decode(line, limits(line), &head) != nil ||
		head.Type != "session" || head.Version == nil || head.Cwd == nil {
		return Header{}, ErrNoSession
	}
	return Header{
		Version: int(*head.Version), ID: head.ID, Timestamp: head.Timestamp, Cwd: *head.Cwd,
		ParentSession: head.ParentSession, SessionID: head.SessionID,
	}, nil
}

func limits(line []byte) strictjson.Limits { return strictjson.Limits{Bytes: len(line)} }

// Parse reads a file. It fills in what older versions of the format leave out: entries of
// version 1 have no ids and follow one another. It skips lines that are no entries, and
// returns [ErrNoSession] for a text that does not begin with a header. The entries share
// memory with data.
func Parse(data []byte) (File, error) {
	head, rest, _ := bytes.Cut(data, []byte("\n"))
	var f File
	var err error
	if f.Header, err = readHeader(head); err != nil {
		return f, err
	}
	seen := map[string]bool{}
	last := ""
	for n := 1; len(rest) > 0; n++ {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		e, ok := readEntry(line, n, last, f.Entries)
		if !ok || seen[e.ID()] {
			f.Skipped++
			continue
		}
		last = e.ID()
		seen[last] = true
		f.Entries = append(f.Entries, e)
	}
	return f, nil
}

// readEntry reads line n after the header. last is the id of the entry before it, which an
// entry without an id follows.
func readEntry(line []byte, n int, last string, before []Entry) (Entry, bool) {
	var shape struct {
		Type      string          `json:"type"`
		ID        json.RawMessage `json:"id"`
		ParentID  json.RawMessage `json:"parentId"`
		Timestamp json.RawMessage `json:"timestamp"`
	}
	if line[0] != '{' || strictjson.Decode(line, limits(line), &shape) != nil || shape.Type == "" || shape.Type == "session" {
		return Entry{}, false
	}
	e := Entry{Type: unique.Make(shape.Type).Value(), Line: line} // one string for all entries of a type
	if !e.place(&e.id, shape.ID) || !e.place(&e.parent, shape.ParentID) || !e.place(&e.at, shape.Timestamp) {
		return Entry{}, false
	}
	var content struct {
		Message json.RawMessage `json:"message"`
	}
	if e.Type == TypeMessage && e.Body(&content) == nil {
		e.message = e.find(content.Message)
	}
	switch role := e.renamed(); {
	case e.ID() == "": // the id is the same at each reading, since appended entries refer to it
		line = e.completed(fmt.Sprintf("%08x", n), last, before)
	case role != nil:
		line = role
	default:
		return e, true
	}
	return readEntry(line, n, last, before)
}

// place sets the position of a text. It reports false for a value that is neither a text nor
// null.
func (e *Entry) place(s *span, raw json.RawMessage) bool {
	if len(raw) == 0 || string(raw) == "null" {
		return true
	}
	if raw[0] != '"' {
		return false
	}
	at := e.find(raw)
	*s = span{at.from + 1, at.to - 1}
	e.escaped = e.escaped || bytes.IndexByte(raw, '\\') >= 0
	return true
}

// find returns the position of a value in the line, or of another with the same bytes.
func (e *Entry) find(value []byte) span {
	at := bytes.Index(e.Line, value)
	return spanOf(at, at+len(value))
}

// completed returns the line of an entry of version 1 with an id and a parent.
func (e *Entry) completed(id, parent string, before []Entry) []byte {
	fields := e.fields()
	fields["id"], fields["parentId"] = strictjson.Encode(id), strictjson.Encode(pointer(parent))
	var first int
	if raw, ok := fields["firstKeptEntryIndex"]; ok && e.Type == TypeCompaction && json.Unmarshal(raw, &first) == nil {
		delete(fields, "firstKeptEntryIndex")
		if first--; first >= 0 && first < len(before) { // the index counts the header
			fields["firstKeptEntryId"] = strictjson.Encode(before[first].ID())
		}
	}
	return strictjson.Encode(fields)
}

// renamed returns the line of a message with the name that its role has since version 3, or
// nil if it has that name.
func (e *Entry) renamed() []byte {
	var message map[string]json.RawMessage
	if !bytes.Contains(e.Message(), []byte(`"hookMessage"`)) || json.Unmarshal(e.Message(), &message) != nil || string(message["role"]) != `"hookMessage"` {
		return nil
	}
	message["role"] = json.RawMessage(`"custom"`)
	fields := e.fields()
	fields["message"] = strictjson.Encode(message)
	return strictjson.Encode(fields)
}

func (e *Entry) fields() map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(e.Line, &fields) // it was checked
	return fields
}
