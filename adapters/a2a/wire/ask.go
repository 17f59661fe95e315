package wire

import (
	"bytes"
	"encoding/json"
	"mime"
	"strconv"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// RequestOf returns the neutral request of a message. Its text is all parts of text, and the
// addresses of all parts with a URL, a line each. A single part of data is its data, several
// are a list. The metadata of the message is its context. Receiver, thread and intent are for
// the caller.
//
// What else the message says is kept for an agent of this dialect, and read by
// [SendRequestOf]: all of its parts where the neutral request does not say how to put them
// together again.
func RequestOf(r SendRequest) core.Request {
	q := core.Request{Context: r.Message.Metadata}
	var texts []string
	var data []json.RawMessage
	for i, p := range r.Message.Parts {
		switch p.Kind {
		case PartText, PartURL:
			texts = append(texts, p.Text)
		case PartRaw:
			name := p.Filename
			if name == "" {
				name = unnamed(i, p.MediaType)
			}
			q.Attachments = append(q.Attachments, core.File{Name: name, MediaType: p.MediaType, Data: p.Raw})
		case PartData:
			data = append(data, p.Data)
		}
	}
	q.Content = strings.Join(texts, "\n")
	switch len(data) {
	case 0:
	case 1:
		q.Data = data[0]
	default:
		q.Data = append(append(json.RawMessage{'['}, bytes.Join(rawBytes(data), []byte(","))...), ']')
	}
	q.Foreign = requestBeside(r, q)
	return q
}

func rawBytes(all []json.RawMessage) [][]byte {
	bs := make([][]byte, len(all))
	for i, b := range all {
		bs[i] = b
	}
	return bs
}

// unnamed names a file that has no name.
func unnamed(i int, mediaType string) string {
	ext := ""
	if all, err := mime.ExtensionsByType(mediaType); err == nil && len(all) > 0 {
		ext = all[0]
	}
	return "file-" + strconv.Itoa(i+1) + ext
}

// requestBeside returns what r says beside q; nil for nothing.
func requestBeside(r SendRequest, q core.Request) *core.Foreign {
	left := SendRequest{
		Metadata: r.Metadata, Unknown: r.Unknown,
		Message:       Message{ID: r.Message.ID, Extensions: r.Message.Extensions, References: r.Message.References, Unknown: r.Message.Unknown},
		Configuration: Configuration{AcceptedOutputModes: r.Configuration.AcceptedOutputModes},
	}
	again, err := strictjson.Marshal(partsOf(q))
	if parts, err2 := strictjson.Marshal(r.Message.Parts); err != nil || err2 != nil || !bytes.Equal(again, parts) {
		left.Message.Parts = r.Message.Parts
	}
	raw, err := strictjson.Marshal(left)
	if empty, _ := strictjson.Marshal(SendRequest{}); err != nil || bytes.Equal(raw, empty) {
		return nil
	}
	return &core.Foreign{Dialect: Dialect, JSON: raw}
}

// partsOf returns the parts of a neutral request: its text, its data, its files.
func partsOf(q core.Request) []Part {
	var parts []Part
	if q.Content != "" {
		parts = append(parts, TextPart(q.Content))
	}
	if len(q.Data) > 0 {
		parts = append(parts, DataPart(q.Data))
	}
	for _, f := range q.Attachments {
		parts = append(parts, FilePart(f.Name, f.MediaType, f.Data))
	}
	return parts
}

// SendRequestOf returns the message for a neutral request, with what a requester of this
// dialect said beside it, such as the id of the message. A request without content has one
// empty part of text. The message needs an id where it has none, and its task and context.
func SendRequestOf(q core.Request) SendRequest {
	var r SendRequest
	if f := q.Foreign; f != nil && f.Dialect == Dialect {
		if v, err := Parse(f.JSON); err == nil {
			r, _ = ReadSendRequest(v) // it lacks required members, which are added here
		}
	}
	r.Message.Role, r.Message.Metadata = RoleUser, q.Context
	if r.Message.Parts == nil {
		r.Message.Parts = partsOf(q)
	} else { // those of the requester, who had no files of earlier turns
		for _, f := range q.Attachments[len(q.Attachments)-len(q.Handed):] {
			r.Message.Parts = append(r.Message.Parts, FilePart(f.Name, f.MediaType, f.Data))
		}
	}
	if len(r.Message.Parts) == 0 {
		r.Message.Parts = []Part{TextPart("")}
	}
	return r
}
