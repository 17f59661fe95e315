package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"mime"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Text is a content block of a result (2026-07-28, server/tools, "Tool Result"). Its type is
// text.
type Text struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// Media is a content block with bytes. Its type is image or audio.
type Media struct {
	Type     string `json:"type"`
	Data     []byte `json:"data"`
	MIMEType string `json:"mimeType"`
}

// Embedded is a content block with another file. Its type is resource.
type Embedded struct {
	Type     string   `json:"type"`
	Resource Resource `json:"resource"`
}

// Resource is the inside of Embedded: it has either Text or Blob.
type Resource struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType,omitempty"`
	Text     *string `json:"text,omitempty"`
	Blob     []byte  `json:"blob,omitzero"`
}

// NewText returns a text as a block.
func NewText(text string) Text { return Text{"text", text} }

// ContentOf returns a file as a block. Before its escaped name stands uri.
func ContentOf(uri string, f core.File) any {
	media, _, err := mime.ParseMediaType(f.MediaType)
	kind, _, _ := strings.Cut(media, "/")
	if f.Data == nil {
		f.Data = []byte{}
	}
	if err == nil && (kind == "image" || kind == "audio") {
		return Media{kind, f.Data, f.MediaType}
	}
	r := Resource{URI: uri + url.PathEscape(cmp.Or(f.Name, "file")), MIMEType: f.MediaType}
	if textual := kind == "text" || media == "application/json" || strings.HasSuffix(media, "+json") || strings.HasSuffix(media, "+xml"); textual && utf8.Valid(f.Data) && !bytes.ContainsRune(f.Data, 0) {
		text := string(f.Data)
		r.Text = &text
	} else {
		r.Blob = f.Data
	}
	return Embedded{"resource", r}
}

// File is a [core.File] whose bytes are base64 already.
type File struct {
	Name      string          `json:"name"`
	MediaType string          `json:"media_type,omitempty"`
	Data      json.RawMessage `json:"data"`
}

// TextOf returns the text of a block of text, and false for other blocks.
func TextOf(block strictjson.Value) (string, bool) {
	text, ok := block.Get("text").Text()
	return text, ok && kindOf(block) == "text"
}

func kindOf(block strictjson.Value) string {
	kind, _ := block.Get("type").Text()
	return kind
}

// FileOf returns the bytes of an image, of audio or of an embedded resource as a file, and false
// for other blocks. The name of a file without one has the number n.
func FileOf(block strictjson.Value, n int) (File, bool) {
	kind, in, data := kindOf(block), block, "data"
	switch kind {
	case "image", "audio":
	case "resource":
		in, data = block.Get("resource"), "blob"
	default:
		return File{}, false
	}
	encoded := in.Get(data)
	if encoded.Kind() != strictjson.String {
		return File{}, false // a text resource, or a block that is not as it should be
	}
	media, _ := in.Get("mimeType").Text()
	f := File{Name: fmt.Sprintf("%s-%d%s", kind, n, extension(media)), MediaType: media, Data: encoded.Raw()}
	if uri, ok := in.Get("uri").Text(); ok {
		if u, err := url.Parse(uri); err == nil {
			if base := path.Base(cmp.Or(u.Path, u.Opaque)); base != "." && base != "/" {
				f.Name = base
			}
		}
	}
	return f, true
}

// extension returns the usual extension of a media type, the same on every machine.
func extension(media string) string {
	kind, _, err := mime.ParseMediaType(media)
	if err != nil {
		return ""
	}
	switch kind {
	case "image/jpeg":
		return ".jpg"
	case "image/svg+xml":
		return ".svg"
	case "audio/mpeg":
		return ".mp3"
	}
	_, sub, _ := strings.Cut(kind, "/")
	if sub == "" || len(sub) > 8 || strings.ContainsFunc(sub, func(r rune) bool { return NotOfNames(r) || r == '.' }) {
		return ""
	}
	return "." + sub
}
