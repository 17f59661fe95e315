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

	piece strictjson.Piece // of Text, as it was read
}

// Piece returns the text of the part as a piece of a longer one.
func (p Part) Piece() strictjson.Piece {
	if p.piece != "" {
		return p.piece
	}
	return strictjson.Piece(p.Text)
}

// TextPart returns a part of text.
func TextPart(text string) Part { return Part{Kind: PartText, Text: text} }

// WithText returns the part with another text.
func (p Part) WithText(text string) Part {
	p.Text, p.piece = text, ""
	return p
}

// DataPart returns a part of JSON.
func DataPart(data json.RawMessage) Part { return Part{Kind: PartData, Data: data} }

// FilePart returns a part with the bytes of a file.
func FilePart(name, mediaType string, data []byte) Part {
	return Part{Kind: PartRaw, Raw: data, Filename: name, MediaType: mediaType}
}

// content notes that the part has a content of the kind, unless that is null.
func (p *Part) content(v strictjson.Value, kind PartKind, err error) error {
	switch {
	case err != nil || v.Absent() && kind != PartData:
		return err
	case p.Kind != 0:
		return wrong("a part with two contents: send exactly one of text, raw, url and data")
	}
	p.Kind = kind
	return nil
}

func (p Part) check() error {
	if p.Kind == 0 {
		return wrong("a part without content: send exactly one of text, raw, url and data")
	}
	return nil
}

var partMembers = members[Part]{
	{"text", func(p *Part, v strictjson.Value) error {
		p.piece, _ = v.Piece()
		return p.content(v, PartText, textIn(v, &p.Text))
	}},
	{"url", func(p *Part, v strictjson.Value) error { return p.content(v, PartURL, textIn(v, &p.Text)) }},
	{"raw", func(p *Part, v strictjson.Value) error { return p.content(v, PartRaw, bytesIn(v, &p.Raw)) }},
	{"data", func(p *Part, v strictjson.Value) error { p.Data = v.Clone(); return p.content(v, PartData, nil) }},
	{"mediaType", func(p *Part, v strictjson.Value) error { return textIn(v, &p.MediaType) }},
	{"filename", func(p *Part, v strictjson.Value) error { return textIn(v, &p.Filename) }},
	{"metadata", func(p *Part, v strictjson.Value) error { return objectIn(v, &p.Metadata) }},
}

func (p *Part) read(v strictjson.Value) (err error) {
	p.Unknown, err = partMembers.read(v, p)
	return err
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
