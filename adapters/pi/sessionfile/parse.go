package sessionfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dragoman-hub/dragoman/core"
)

// File is what a session file says.
type File struct {
	Header  Header
	Entries []Entry
	// Skipped is how many lines are no entries: torn, or not JSON, or of an id that
	// another has. They stay in the file.
	Skipped int
}

// ErrNoSession says that a text is no session file.
var ErrNoSession = errors.New("the first line is no header of a session: want an object with type \"session\", a numeric version and a cwd")

// ParseHeader reads the first line of a file, of which data is a beginning that holds
// it. It returns [ErrNoSession] when there is none.
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
	if len(line) == 0 || line[0] != '{' || core.DecodeJSON(line, limits(line), &head) != nil ||
		head.Type != "session" || head.Version == nil || head.Cwd == nil {
		return Header{}, ErrNoSession
	}
	return Header{
		Version: int(*head.Version), ID: head.ID, Timestamp: head.Timestamp, Cwd: *head.Cwd,
		ParentSession: head.ParentSession, SessionID: head.SessionID,
	}, nil
}

func limits(line []byte) core.JSONLimits { return core.JSONLimits{Bytes: len(line)} }

// Parse reads a file. What older versions of the format leave out is filled in:
// entries of version 1 have no ids and follow one another. Lines that are no entries
// are passed over. It returns [ErrNoSession] for a text that does not begin with a
// header. The entries share memory with data.
func Parse(data []byte) (File, error) {
	head, rest, _ := bytes.Cut(data, []byte("\n"))
	var f File
	var err error
	if f.Header, err = readHeader(head); err != nil {
		return f, err
	}
	known := map[string]bool{}
	last := ""
	for n := 1; len(rest) > 0; n++ {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		e, ok := readEntry(line, n, last, f.Entries)
		if !ok || known[e.ID] {
			f.Skipped++
			continue
		}
		known[e.ID], last = true, e.ID
		f.Entries = append(f.Entries, e)
	}
	return f, nil
}

// readEntry reads line n behind the header. last is the entry before it, which one
// without an id follows.
func readEntry(line []byte, n int, last string, before []Entry) (Entry, bool) {
	var shape struct {
		Type      string  `json:"type"`
		ID        string  `json:"id"`
		ParentID  *string `json:"parentId"`
		Timestamp string  `json:"timestamp"`
	}
	if line[0] != '{' || core.DecodeJSON(line, limits(line), &shape) != nil || shape.Type == "" || shape.Type == "session" {
		return Entry{}, false
	}
	e := Entry{Type: shape.Type, ID: shape.ID, Timestamp: shape.Timestamp, Line: line}
	if shape.ParentID != nil {
		e.ParentID = *shape.ParentID
	}
	if e.ID != "" {
		return e.renamed(), true
	}
	// The same id each time that the file is read: what is appended refers to it.
	e.ID, e.ParentID = fmt.Sprintf("%08x", n), last
	return e.completed(before).renamed(), true
}

// completed writes the id and the parent of an entry of version 1 into its line.
func (e Entry) completed(before []Entry) Entry {
	fields := e.fields()
	fields["id"], fields["parentId"] = encode(e.ID), encode(pointer(e.ParentID))
	var first int
	if raw, ok := fields["firstKeptEntryIndex"]; ok && e.Type == TypeCompaction && json.Unmarshal(raw, &first) == nil {
		delete(fields, "firstKeptEntryIndex")
		if first--; first >= 0 && first < len(before) { // it counted the header
			fields["firstKeptEntryId"] = encode(before[first].ID)
		}
	}
	e.Line = encode(fields)
	return e
}

// renamed gives a message the role that it has since version 3.
func (e Entry) renamed() Entry {
	if e.Type != TypeMessage || !bytes.Contains(e.Line, []byte(`"hookMessage"`)) {
		return e
	}
	var message map[string]json.RawMessage
	if json.Unmarshal(e.Message(), &message) != nil || string(message["role"]) != `"hookMessage"` {
		return e
	}
	message["role"] = json.RawMessage(`"custom"`)
	fields := e.fields()
	fields["message"] = encode(message)
	e.Line = encode(fields)
	return e
}

func (e Entry) fields() map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(e.Line, &fields) // it was checked
	return fields
}
