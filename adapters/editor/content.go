package editor

import (
	"fmt"
	"mime"
	"net/url"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// requestOf returns the content of a prompt in neutral words. Text stays as it is. A link, and
// a resource that is embedded, becomes a link in the text, so that its place is kept; what is
// embedded is an attachment. It returns an invalid Fault for a block of an unknown type,
// or if nothing is said.
func requestOf(blocks []wire.Block) (core.Request, error) {
	var text strings.Builder
	var files attachments
	for i, b := range blocks {
		switch b.Type {
		case wire.BlockText:
			text.WriteString(b.Text)
		case wire.BlockResourceLink:
			text.WriteString(linkText(nameOr(b.Name, b.URI), b.URI))
		case wire.BlockImage, wire.BlockAudio:
			files.add(b.URI, fmt.Sprintf("%s-%d%s", b.Type, i+1, extensionOf(b.MimeType)), b.MimeType, b.Data)
		case wire.BlockResource:
			r := b.Resource
			name := files.add(r.URI, fmt.Sprintf("resource-%d%s", i+1, extensionOf(r.MimeType)), r.MimeType, r.Blob)
			if r.Text != nil {
				files[len(files)-1].Data = []byte(*r.Text)
			}
			text.WriteString(linkText(name, r.URI))
		default:
			return core.Request{}, core.NewFault(core.CodeInvalid, "prompt[%d].type: want text, image, resource_link or resource, got %.40q", i, b.Type)
		}
	}
	if text.Len() == 0 && len(files) == 0 {
		return core.Request{}, core.NewFault(core.CodeInvalid, "prompt: the content is empty; say what is wanted")
	}
	return core.Request{Content: text.String(), Attachments: files}, nil
}

// linkText returns a link in Markdown, as agents of editors write them for their models.
func linkText(name, uri string) string {
	if uri == "" {
		return "[@" + name + "]"
	}
	return "[@" + name + "](" + uri + ")"
}

// attachments are files with different names.
type attachments []core.File

// add adds a file, and returns its name: the last part of its URI, else the given one.
func (a *attachments) add(uri, otherwise, mediaType string, data []byte) string {
	name := nameOr("", uri)
	if name == "" {
		name = otherwise
	}
	for n := 2; a.has(name); n++ {
		extension := path.Ext(name)
		base := strings.TrimSuffix(strings.TrimSuffix(name, extension), "-"+strconv.Itoa(n-1))
		name = base + "-" + strconv.Itoa(n) + extension
	}
	*a = append(*a, core.File{Name: name, MediaType: mediaType, Data: data})
	return name
}

func (a attachments) has(name string) bool {
	for _, f := range a {
		if f.Name == name {
			return true
		}
	}
	return false
}

// nameOr returns a name, or the last part of a URI.
func nameOr(name, uri string) string {
	if name != "" {
		return name
	}
	at := uri
	if u, err := url.Parse(uri); err == nil && u.Path != "" {
		at = u.Path
	}
	if name = path.Base(at); name == "." || name == "/" {
		return ""
	}
	return name
}

// extensionOf returns the usual extension of a media type, such as ".png"; "" if unknown.
func extensionOf(mediaType string) string {
	_, sub, _ := strings.Cut(mediaType, "/")
	sub, _, _ = strings.Cut(sub, ";")
	switch sub {
	case "png", "gif", "webp", "svg", "wav", "json", "pdf":
		return "." + sub
	case "jpeg":
		return ".jpg"
	case "mpeg":
		return ".mp3"
	case "plain":
		return ".txt"
	}
	if all, err := mime.ExtensionsByType(mediaType); err == nil && len(all) > 0 {
		return all[0]
	}
	return ""
}

// fileBlock returns a file as content: an image as an image, anything else as a resource.
func fileBlock(task core.TaskID, f core.File) wire.Block {
	if strings.HasPrefix(f.MediaType, "image/") {
		return wire.Block{Type: wire.BlockImage, Data: f.Data, MimeType: f.MediaType}
	}
	r := &wire.Resource{URI: "dragoman:///" + url.PathEscape(string(task)) + "/" + url.PathEscape(f.Name), MimeType: f.MediaType}
	if utf8.Valid(f.Data) && !strings.ContainsRune(string(f.Data), 0) {
		text := string(f.Data)
		r.Text = &text
	} else {
		r.Blob = f.Data
	}
	return wire.Block{Type: wire.BlockResource, Resource: r}
}

// tooLargeText says that something does not fit into a message, and where all of it is.
func tooLargeText(kind core.Kind, bytes int, task core.TaskID) string {
	return fmt.Sprintf("[%s of %d bytes does not fit into a message of the editor: 'dragoman tail %s --json' shows all of it]", kind, bytes, task)
}
