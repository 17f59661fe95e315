package wire

import (
	"encoding/base64"
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

// contentAt is one of the contents of a part. Null is none, but for data.
func contentAt(name string, kind PartKind, read func(*Part, strictjson.Value) error, write func(*strictjson.Writer, *Part)) member[Part] {
	return member[Part]{name, func(p *Part, v strictjson.Value) error {
		err := read(p, v)
		switch {
		case err != nil || v.Absent() && kind != PartData:
			return err
		case p.Kind != 0:
			return wrong("a part with two contents: send exactly one of text, raw, url and data")
		}
		p.Kind = kind
		return nil
	}, func(w *strictjson.Writer, p *Part) {
		if p.Kind == kind {
			w.Key(name)
			write(w, p)
		}
	}}
}

func readText(p *Part, v strictjson.Value) error {
	p.piece, _ = v.Piece()
	return textIn(v, &p.Text)
}

func readData(p *Part, v strictjson.Value) error {
	p.Data = v.Clone()
	return nil
}

func writeText(w *strictjson.Writer, p *Part) { w.B = strictjson.AppendString(w.B, p.Text) }

func writeRaw(w *strictjson.Writer, p *Part) {
	w.B = append(base64.StdEncoding.AppendEncode(append(w.B, '"'), p.Raw), '"')
}

var partObject = &object[Part]{func(p *Part) *json.RawMessage { return &p.Unknown }, []member[Part]{
	contentAt("text", PartText, readText, writeText),
	contentAt("url", PartURL, func(p *Part, v strictjson.Value) error { return textIn(v, &p.Text) }, writeText),
	contentAt("raw", PartRaw, func(p *Part, v strictjson.Value) error { return bytesIn(v, &p.Raw) }, writeRaw),
	contentAt("data", PartData, readData, func(w *strictjson.Writer, p *Part) { w.B = append(w.B, p.Data...) }),
	textAt("mediaType", func(p *Part) *string { return &p.MediaType }),
	textAt("filename", func(p *Part) *string { return &p.Filename }),
	objectAt("metadata", func(p *Part) *json.RawMessage { return &p.Metadata }),
}}

// MarshalJSON implements json.Marshaler.
func (p Part) MarshalJSON() ([]byte, error) { return partObject.append(nil, &p), nil }
