package wire

import (
	"encoding/json"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// PartKind says which of the four contents a Part has. The zero PartKind is none, which only
// the parts in a [Beside] have.
type PartKind uint8

// The contents of parts.
const (
	_        PartKind = iota
	PartText          // Text is the text
	PartRaw           // Raw is the file
	PartURL           // Text is the URL of the file
	PartData          // Data is any JSON value
)

// Part is a piece of a message or an artifact (section 4.1.6): exactly one content.
type Part struct {
	Kind      PartKind
	Text      string
	Raw       []byte
	Data      json.RawMessage
	MediaType string
	Filename  string
	Metadata  json.RawMessage // an object, or nil
	Unknown   json.RawMessage // an object of the other members, or nil
}

// TextPart returns a part of text.
func TextPart(text string) Part { return Part{Kind: PartText, Text: text} }

// DataPart returns a part of JSON.
func DataPart(data json.RawMessage) Part { return Part{Kind: PartData, Data: data} }

// FilePart returns a part with the bytes of a file.
func FilePart(name, mediaType string, data []byte) Part {
	return Part{Kind: PartRaw, Raw: data, Filename: name, MediaType: mediaType}
}

func (p Part) check() error {
	if p.Kind == 0 {
		return wrong("a part without content: send exactly one of text, raw, url and data")
	}
	return nil
}

func (p *Part) read(v strictjson.Value) error {
	if err := wantObject(v); err != nil {
		return err
	}
	var unknown rest
	for key, value := range v.Members() {
		kind := PartKind(0)
		var err error
		switch string(key) {
		case "text":
			kind, err = PartText, textIn(value, &p.Text)
		case "url":
			kind, err = PartURL, textIn(value, &p.Text)
		case "raw":
			if kind = PartRaw; !value.Absent() {
				err = bytesIn(value, &p.Raw)
			}
		case "data":
			kind, p.Data = PartData, value.Clone()
		case "mediaType":
			err = textIn(value, &p.MediaType)
		case "filename":
			err = textIn(value, &p.Filename)
		case "metadata":
			err = objectIn(value, &p.Metadata)
		default:
			if err := unknown.add(key, value, "text", "url", "raw", "data", "mediaType", "filename", "metadata"); err != nil {
				return err
			}
		}
		if err != nil {
			return under(string(key), err)
		}
		if kind == 0 || value.Absent() && kind != PartData {
			continue
		}
		if p.Kind != 0 {
			return wrong("a part with two contents: send exactly one of text, raw, url and data")
		}
		p.Kind = kind
	}
	p.Unknown = unknown.object()
	return nil
}

func (w *writer) part(p Part) {
	w.begin()
	switch p.Kind {
	case PartText:
		w.text("text", p.Text)
	case PartURL:
		w.text("url", p.Text)
	case PartRaw:
		w.bytes("raw", p.Raw)
	case PartData:
		w.raw("data", p.Data)
	}
	w.some("mediaType", p.MediaType)
	w.some("filename", p.Filename)
	w.raw("metadata", p.Metadata)
	w.end(p.Unknown)
}

// MarshalJSON implements json.Marshaler.
func (p Part) MarshalJSON() ([]byte, error) { return marshal(func(w *writer) { w.part(p) }) }

// marshal returns what write wrote.
func marshal(write func(*writer)) ([]byte, error) {
	var w writer
	write(&w)
	return w.b, nil
}
