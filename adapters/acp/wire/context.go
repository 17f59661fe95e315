package wire

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// The members of a context that have a place of their own in a request.
const (
	memberContext = "context"
	memberHistory = "history"
	memberData    = "data"
	memberFiles   = "files"
)

// historyTurn is one thing said earlier, in context.history.
type historyTurn struct {
	Role  core.Role    `json:"role"`
	Text  string       `json:"text"`
	Agent core.AgentID `json:"agent,omitempty"`
}

func writeTurns(b []byte, history []core.Turn) []byte {
	return core.WriteTurns(b, history, Dialect, func(t core.Turn) []byte { return Marshal(historyTurn{t.Role, t.Text, t.Agent}) })
}

// WithHistory writes the earlier turns into an envelope that has an empty history. They
// are most of a long conversation, and none is encoded or read again for it.
func WithHistory(raw []byte, history []core.Turn) []byte {
	place := strictjson.ParseValid(raw).Get("payload", memberContext, memberHistory)
	if !place.Exists() {
		return raw
	}
	from := place.Offset()
	to := from + len(place.Raw())
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
func splitContext(context strictjson.Value, r *core.Request) {
	if context.Kind() != strictjson.Object {
		if !context.Absent() {
			r.Context = SetMembers([]byte("{}"), Field{memberValue, context.Raw()})
		}
		return
	}
	var taken []string
	for key, value := range context.Members() {
		switch string(key) {
		case memberHistory:
			var turns []historyTurn
			if value.Decode(&turns) != nil || turns == nil {
				continue
			}
			r.History = slices.Grow(r.History, len(turns))
			for _, t := range turns {
				r.History = append(r.History, core.Turn{Role: t.Role, Text: t.Text, Agent: t.Agent})
			}
		case memberData:
			if !value.Absent() {
				r.Data = value.Clone()
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
		taken = append(taken, string(key))
	}
	if rest, left := context.Without(taken...); left > 0 {
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
func readFiles(value strictjson.Value) ([]core.File, bool) {
	var raw []struct {
		Name      *string `json:"name"`
		MediaType string  `json:"media_type"`
		Data      *[]byte `json:"data"`
	}
	if value.Decode(&raw) != nil || len(raw) == 0 {
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
	object := strictjson.ParseValid(data)
	switch {
	case !object.Exists():
		return SetMembers([]byte("{}"), list)
	case takesFiles(object):
		return SetMembers(data, list)
	}
	return SetMembers([]byte("{}"), Field{memberValue, data}, list)
}

const memberValue = "value"

// takesFiles reports whether a value is an object that can take a files member
// and still be told from one that was wrapped.
func takesFiles(v strictjson.Value) bool {
	if v.Kind() != strictjson.Object || v.Get(memberFiles).Exists() {
		return false
	}
	return v.Len() > 1 || v.Len() == 1 && !v.Get(memberValue).Exists()
}

// splitFiles takes apart what joinFiles joined.
func splitFiles(data strictjson.Value) (json.RawMessage, []core.File) {
	if data.Absent() {
		return nil, nil
	}
	files, ok := readFiles(data.Get(memberFiles))
	if !ok {
		return data.Clone(), nil
	}
	rest, left := data.Without(memberFiles)
	value := data.Get(memberValue)
	switch {
	case left == 0:
		return nil, files
	case left == 1 && value.Exists():
		return value.Clone(), files
	}
	return rest, files
}
