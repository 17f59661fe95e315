package client

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// prompt returns the params of session/prompt. What the agent takes no block for becomes text, which
// is counted; a file that cannot become text is refused, and so is a request of which the agent
// would see nothing.
func (t *turn) prompt(r core.Request, history []core.Turn) (json.RawMessage, error) {
	p := composer{can: t.conn.hi.AgentCapabilities.PromptCapabilities}
	if len(history) > 0 {
		p.fold(core.Earlier(history))
	}
	meta, err := p.request(r)
	if err != nil {
		t.conn.opts.Count("editor.refused.opened")
		return nil, err
	}
	if info := t.conn.hi.AgentInfo; info != nil && info.Name == wire.HubName {
		meta = wire.WithHops(meta, t.Hops()+1)
	}
	meta = wire.WithTrace(meta, t.Trace())
	if p.folded {
		t.conn.opts.Count("editor.folded.opened")
	}
	params := strictjson.AppendString([]byte(`{"sessionId":`), t.session.id)
	params = append(append(params, `,"prompt":[`...), bytes.Join(p.blocks, []byte(","))...)
	params = append(params, ']')
	if len(meta) > 0 {
		params = append(append(params, `,"_meta":`...), meta...)
	}
	return append(params, '}'), nil
}

// composer makes the blocks of a prompt.
type composer struct {
	can    wire.PromptCapabilities
	blocks [][]byte
	folded bool // something that is no text of the request became text
}

func (p *composer) text(text string) { p.block(wire.Text(text)) }

// fold adds text that stands for something else.
func (p *composer) fold(text string) {
	p.folded = true
	p.text(text)
}

func (p *composer) block(b wire.Block) { p.blocks = append(p.blocks, strictjson.Encode(b)) }

// request adds what is asked. What an editor wrote stays as it is; see [composer.foreign].
func (p *composer) request(r core.Request) (meta json.RawMessage, err error) {
	own := r.Attachments[:len(r.Attachments)-len(r.Handed)]
	defer p.handed(r.Attachments[len(own):])
	if meta, ok := p.foreign(r); ok {
		return meta, nil
	}
	switch text := r.Prompt(); {
	case text != r.Content:
		p.fold(text)
	case text != "":
		p.text(text)
	case len(own) == 0: // such as a frame that only another dialect knows
		return nil, core.NewFault(core.CodeUnknownKind, "an agent of the editor's protocol takes text, data and files, and the request has none")
	}
	for _, f := range own {
		if err := p.file(f); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// handed adds files of earlier turns. What the agent does not take is named.
func (p *composer) handed(files []core.File) {
	for _, f := range files {
		if p.file(f) != nil {
			p.fold(f.LeftOut())
		}
	}
}

// foreign adds the blocks of a prompt that came from a peer of the dialect, and reports whether
// the agent takes all of them. Foreign.JSON is the params of session/prompt.
func (p *composer) foreign(r core.Request) (meta json.RawMessage, ok bool) {
	if r.Foreign == nil || r.Foreign.Dialect != wire.Dialect || len(r.Data) > 0 || len(r.Context) > 0 || r.MaxTokens > 0 {
		return nil, false
	}
	whole := strictjson.ParseValid(r.Foreign.JSON)
	var blocks [][]byte
	for b := range whole.Get("prompt").Items() {
		kind, _ := b.Get("type").Text()
		switch {
		case kind == wire.BlockImage && !p.can.Image, kind == wire.BlockAudio && !p.can.Audio, kind == wire.BlockResource && !p.can.EmbeddedContext:
			return nil, false
		}
		blocks = append(blocks, b.Raw())
	}
	if len(blocks) == 0 {
		return nil, false
	}
	p.blocks = append(p.blocks, blocks...)
	return whole.Get("_meta").Raw(), true
}

// file adds an attachment as the block that the agent takes.
func (p *composer) file(f core.File) error {
	text := isText(f)
	uri := "attachment:" + url.PathEscape(f.Name)
	switch {
	case strings.HasPrefix(f.MediaType, "image/") && p.can.Image:
		p.block(wire.Block{Type: wire.BlockImage, Data: f.Data, MimeType: f.MediaType})
	case strings.HasPrefix(f.MediaType, "audio/") && p.can.Audio:
		p.block(wire.Block{Type: wire.BlockAudio, Data: f.Data, MimeType: f.MediaType})
	case p.can.EmbeddedContext && text:
		s := string(f.Data)
		p.block(wire.Block{Type: wire.BlockResource, Resource: &wire.Resource{URI: uri, MimeType: f.MediaType, Text: &s}})
	case p.can.EmbeddedContext:
		p.blocks = append(p.blocks, fmt.Appendf(nil, `{"type":"resource","resource":{"uri":%s,"mimeType":%s,"blob":"%s"}}`,
			strictjson.AppendString(nil, uri), strictjson.AppendString(nil, f.MediaType), base64.StdEncoding.EncodeToString(f.Data)))
	case text:
		p.fold(core.Fenced("File "+f.Name, "", f.Data))
	default:
		return core.NewFault(core.CodeUnsupported, "the agent takes no file such as %.80q (%.80s): it declared neither embedded resources nor its kind of media; send it as text, or where the agent can read it", f.Name, f.MediaType)
	}
	return nil
}

// isText reports whether a file can be read as text.
func isText(f core.File) bool { return utf8.Valid(f.Data) && !bytes.ContainsRune(f.Data, 0) }
