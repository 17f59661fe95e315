package wire

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// The members of a context that are fields of a request.
const (
	memberContext = "context"
	memberHistory = "history"
	memberData    = "data"
	memberFiles   = "files"
)

// historyTurn is one turn in context.history.
type historyTurn struct {
	Role  core.Role    `json:"role"`
	Text  string       `json:"text"`
	Agent core.AgentID `json:"agent,omitempty"`
}

func writeTurns(b []byte, history []core.Turn) []byte {
	return core.WriteTurns(b, history, Dialect, func(t core.Turn) []byte { return Marshal(historyTurn{t.Role, t.Text, t.Agent}) })
}

// WithHistory writes earlier turns into an envelope with an empty history. In a long
// conversation they are most of the envelope, and are not encoded twice.
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

// joinContext returns the context of a request as one object with its history, if that is
// not nil, its data and its files. It returns nil if there are none.
func joinContext(r core.Request) json.RawMessage {
	object := []byte(r.Context)
	if len(object) > 0 && !IsObject(object) {
		object = SetMembers([]byte("{}"), Field{Key: memberValue, Value: object})
	}
	var add []Field
	if r.History != nil {
		add = append(add, Field{Key: memberHistory, Value: append(writeTurns([]byte("["), r.History), ']')})
	}
	if len(r.Data) > 0 {
		add = append(add, Field{Key: memberData, Value: r.Data})
	}
	if len(r.Attachments) > 0 {
		add = append(add, Field{Key: memberFiles, Value: Marshal(filesOf(r.Attachments))})
	}
	if len(add) == 0 {
		return object
	}
	if len(object) == 0 {
		object = []byte("{}")
	}
	return SetMembers(object, add...)
}

// splitContext undoes joinContext. A member of another form is the sender's own and stays in
// the context.
func splitContext(context strictjson.Value, r *core.Request) {
	if context.Kind() != strictjson.Object {
		if !context.Absent() {
			r.Context = SetMembers([]byte("{}"), Field{Key: memberValue, Value: context.Raw()})
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

// readFiles reads a files member; false if it has another form.
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

// joinFiles returns the data of an answer with files as its member files. Data that is not an
// object, or an ambiguous one, becomes the member value.
func joinFiles(data json.RawMessage, files []core.File) json.RawMessage {
	if len(files) == 0 {
		return data
	}
	list := Field{Key: memberFiles, Value: Marshal(filesOf(files))}
	object := strictjson.ParseValid(data)
	switch {
	case !object.Exists():
		return SetMembers([]byte("{}"), list)
	case takesFiles(object):
		return SetMembers(data, list)
	}
	return SetMembers([]byte("{}"), Field{Key: memberValue, Value: data}, list)
}

const memberValue = "value"

// takesFiles reports whether a value is an object that can have a files member without
// looking like data in the member value.
func takesFiles(v strictjson.Value) bool {
	if v.Kind() != strictjson.Object || v.Get(memberFiles).Exists() {
		return false
	}
	return v.Len() > 1 || v.Len() == 1 && !v.Get(memberValue).Exists()
}

// splitFiles undoes joinFiles.
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
