package wire

import (
	"cmp"
	"encoding/json"

	"github.com/dragoman-hub/dragoman/core"
)

// The members of a context that have a place of their own in a request.
const (
	memberContext = "context"
	memberHistory = "history"
	memberData    = "data"
	memberFiles   = "files"
)

// turn is one thing said earlier, in context.history.
type turn struct {
	Role  core.Role    `json:"role"`
	Text  string       `json:"text"`
	Agent core.AgentID `json:"agent,omitempty"`
}

func writeTurns(b []byte, history []core.Turn) []byte {
	return core.WriteTurns(b, history, Dialect, func(t core.Turn) []byte { return Marshal(turn{t.Role, t.Text, t.Agent}) })
}

// WithHistory writes the earlier turns into an envelope that has an empty history. They
// are most of a long conversation, and none is encoded or read again for it.
func WithHistory(raw []byte, history []core.Turn) []byte {
	from, to := placeOf(raw, "payload", memberContext, memberHistory)
	if from == to {
		return raw
	}
	size := len(raw)
	for _, t := range history {
		size += t.Size() + len(t.Text)/16
	}
	out := append(make([]byte, 0, size), raw[:from]...)
	out = writeTurns(append(out, '['), history)
	return append(append(out, ']'), raw[to:]...)
}

// joinContext puts what a request has beside its words into one context object:
// history, where it is not nil, data and files. It returns nil when there is nothing.
func joinContext(r core.Request) json.RawMessage {
	object := []byte(r.Context)
	if len(object) > 0 && !IsObject(object) {
		object = SetMembers([]byte("{}"), Field{memberValue, object})
	}
	var add []Field
	if r.History != nil {
		add = append(add, Field{memberHistory, append(writeTurns([]byte("["), r.History), ']')})
	}
	if len(r.Data) > 0 {
		add = append(add, Field{memberData, r.Data})
	}
	if len(r.Attachments) > 0 {
		add = append(add, Field{memberFiles, Marshal(filesOf(r.Attachments))})
	}
	if len(add) == 0 {
		return object
	}
	if len(object) == 0 {
		object = []byte("{}")
	}
	return SetMembers(object, add...)
}

// splitContext takes apart what joinContext joined. A member that has another form
// than ours is the sender's own and stays in the context.
func splitContext(object json.RawMessage, r *core.Request) {
	if !IsObject(object) {
		if len(object) > 0 && string(object) != "null" {
			r.Context = SetMembers([]byte("{}"), Field{memberValue, object})
		}
		return
	}
	rest := []byte(object)
	for _, m := range members(object) {
		value := object[m.from:m.to]
		switch m.key {
		case memberHistory:
			var turns []turn
			if ReadValue(value, &turns) != nil || turns == nil {
				continue
			}
			for _, t := range turns {
				r.History = append(r.History, core.Turn{Role: t.Role, Text: t.Text, Agent: t.Agent})
			}
		case memberData:
			if string(value) != "null" {
				r.Data = value
			}
		case memberFiles:
			files, ok := readFiles(value)
			if !ok {
				continue
			}
			r.Attachments = files
		default:
			continue
		}
		rest = dropMember(rest, m.key)
	}
	if len(members(rest)) > 0 {
		r.Context = rest
	}
}

// file is a file in context.files and data.files.
type file struct {
	Name      string `json:"name"`
	MediaType string `json:"media_type,omitempty"`
	// Data is base64.
	Data []byte `json:"data"`
}

func filesOf(fs []core.File) []file {
	out := make([]file, len(fs))
	for i, f := range fs {
		out[i] = file(f)
		out[i].Name = cmp.Or(f.Name, "file")
		if out[i].Data == nil {
			out[i].Data = []byte{}
		}
	}
	return out
}

// readFiles reads a files member; false when it has another form than ours.
func readFiles(value json.RawMessage) ([]core.File, bool) {
	var raw []struct {
		Name      *string `json:"name"`
		MediaType string  `json:"media_type"`
		Data      *[]byte `json:"data"`
	}
	if ReadValue(value, &raw) != nil || len(raw) == 0 {
		return nil, false
	}
	out := make([]core.File, len(raw))
	for i, f := range raw {
		if f.Name == nil || f.Data == nil {
			return nil, false
		}
		out[i] = core.File{Name: *f.Name, MediaType: f.MediaType, Data: *f.Data}
	}
	return out, true
}

// joinFiles puts files into the data of an answer, as its member files. Data that
// is no object, or could be mistaken, goes into the member value beside them.
func joinFiles(data json.RawMessage, files []core.File) json.RawMessage {
	if len(files) == 0 {
		return data
	}
	list := Field{memberFiles, Marshal(filesOf(files))}
	switch {
	case len(data) == 0:
		return SetMembers([]byte("{}"), list)
	case IsObject(data) && plainBesideFiles(members(data)):
		return SetMembers(data, list)
	}
	return SetMembers([]byte("{}"), Field{memberValue, data}, list)
}

const memberValue = "value"

// plainBesideFiles reports whether an object can take a files member and still be
// told from one that was wrapped.
func plainBesideFiles(all []member) bool {
	for _, m := range all {
		if m.key == memberFiles || m.key == memberValue && len(all) == 1 {
			return false
		}
	}
	return len(all) > 0
}

// splitFiles takes apart what joinFiles joined.
func splitFiles(data json.RawMessage) (json.RawMessage, []core.File) {
	if string(data) == "null" {
		return nil, nil
	}
	if !IsObject(data) {
		return data, nil
	}
	for _, m := range members(data) {
		if m.key != memberFiles {
			continue
		}
		files, ok := readFiles(data[m.from:m.to])
		if !ok {
			return data, nil
		}
		rest := dropMember(data, memberFiles)
		left := members(rest)
		switch {
		case len(left) == 0:
			return nil, files
		case len(left) == 1 && left[0].key == memberValue:
			return rest[left[0].from:left[0].to], files
		}
		return rest, files
	}
	return data, nil
}
