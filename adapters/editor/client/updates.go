package client

import (
	"path"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// update reports an update of the session. Nothing of it is kept once the hub takes no more.
func (t *turn) update(u *wire.Update) {
	if t.muted != nil {
		t.conn.opts.Count("editor.late_event")
		return
	}
	t.accept()
	switch u.Kind {
	case wire.UpdateAgentMessageChunk:
		t.chunk(u)
	case wire.UpdateAgentThoughtChunk:
		t.thoughtChunk(u)
	case wire.UpdateToolCall, wire.UpdateToolCallUpdate:
		t.toolUpdate(u)
	default:
		t.aside(u)
	}
}

// aside reports an update that is no part of the answer.
func (t *turn) aside(u *wire.Update) {
	switch u.Kind {
	case wire.UpdateNotice:
		t.notice(u)
	case wire.UpdateCompactionUpdate:
		t.compaction(u)
	case wire.UpdateUsageUpdate:
		t.session.cost.tell(u.Whole.Get("cost"))
		t.foreign(u)
	default:
		// A plan, commands, modes, the window of the context, what the user said, and whatever
		// comes to the protocol later.
		t.foreign(u)
	}
}

// foreign reports an update that the hub has no words for.
func (t *turn) foreign(u *wire.Update) {
	t.report(core.ForeignFrame{Dialect: wire.Dialect, Name: u.Kind}, wire.Verbatim(u.Whole))
}

// notice reports a warning or a hint of the agent itself, which is no part of the answer.
func (t *turn) notice(u *wire.Update) {
	n, err := u.Notice()
	if err != nil {
		t.conn.opts.Count("editor.bad_update")
		t.foreign(u)
		return
	}
	t.report(core.Thinking{Text: n.Text() + "\n"}, wire.Verbatim(u.Whole))
}

// compaction reports that the agent makes its context shorter, and how that ends.
func (t *turn) compaction(u *wire.Update) {
	c, err := u.Compaction()
	if err != nil {
		t.conn.opts.Count("editor.bad_update")
		t.foreign(u)
		return
	}
	t.report(core.Thinking{Text: c.Text() + "\n"}, wire.Verbatim(u.Whole))
}

// chunk reports a piece of the answer.
func (t *turn) chunk(u *wire.Update) {
	piece, ok := u.Text()
	switch {
	case !ok:
		t.blockChunk(u)
		return
	case isModeText(u):
		t.foreign(u)
		return
	}
	if spent, is := usageOfChunk(u); is && piece == "" {
		t.report(spent, wire.Verbatim(u.Whole))
		return
	}
	foreign, other := t.messageForeign(u, &t.message)
	if other {
		t.sayRest()
	}
	text := t.halves.Join(piece)
	other = other || t.paragraph
	t.paragraph = other && text == "" // some agents begin a message with an empty chunk
	if other && t.spoken && text != "" {
		// Other dialects know one answer: its messages are paragraphs.
		t.report(core.Text{Text: "\n\n" + text}, wire.Verbatim(u.Whole))
		return
	}
	if text == "" && foreign == nil {
		return
	}
	t.spoken = t.spoken || text != ""
	t.report(core.Text{Text: text}, foreign)
}

func (t *turn) thoughtChunk(u *wire.Update) {
	piece, ok := u.Text()
	if !ok {
		t.foreign(u)
		return
	}
	foreign, _ := t.messageForeign(u, &t.thought)
	text := t.thoughtHalves.Join(piece)
	if text != "" || foreign != nil {
		t.report(core.Thinking{Text: text}, foreign)
	}
}

// sayRest reports what is left of the text when its message ends.
func (t *turn) sayRest() {
	if rest := t.halves.Rest(); rest != "" {
		t.spoken = true
		t.report(core.Text{Text: rest}, nil)
	}
}

// messageForeign returns what a chunk says beside its text, and whether it begins another message
// than the chunk before. The id of a message is only told at its beginning, so that the pieces
// of an answer can be merged.
func (t *turn) messageForeign(u *wire.Update, last *string) (foreign *core.Foreign, other bool) {
	id := u.MessageID()
	if u.Plain() && string(id) == *last {
		return nil, false
	}
	other = *last != "" && string(id) != *last && id != nil
	*last = string(id)
	return u.Rest(), other
}

// blockChunk reports a chunk that is no text: data is a file, a link is text.
func (t *turn) blockChunk(u *wire.Update) {
	b, err := u.Block()
	if err != nil {
		t.conn.opts.Count("editor.bad_update")
		t.foreign(u)
		return
	}
	if b.Type == wire.BlockResourceLink {
		t.spoken = true
		t.report(core.Text{Text: "[" + linkName(b) + "](" + b.URI + ")"}, wire.Verbatim(u.Whole))
		return
	}
	f, ok := fileOf(b)
	switch {
	case !ok:
		t.foreign(u)
	case b.Type == wire.BlockResource:
		t.report(f, wire.Verbatim(u.Whole))
	default:
		t.report(f, u.Rest())
	}
}

func linkName(b wire.Block) string {
	for _, name := range []string{b.Title, b.Name, path.Base(b.URI)} {
		if name != "" {
			return name
		}
	}
	return b.URI
}

// fileOf returns the data of a block as a file.
func fileOf(b wire.Block) (core.File, bool) {
	switch b.Type {
	case wire.BlockImage, wire.BlockAudio:
		return core.File{Name: fileName(b.URI, b.Type, b.MimeType), MediaType: b.MimeType, Data: b.Data}, true
	case wire.BlockResource:
		r := b.Resource
		f := core.File{Name: fileName(r.URI, b.Type, r.MimeType), MediaType: r.MimeType, Data: r.Blob}
		if r.Text != nil {
			f.Data = []byte(*r.Text)
			if f.MediaType == "" {
				f.MediaType = "text/plain"
			}
		}
		return f, true
	}
	return core.File{}, false
}

// fileName returns the last element of a URI, or a name by the type of the content.
func fileName(uri, kind, mediaType string) string {
	uri, _, _ = strings.Cut(uri, "?")
	if name := path.Base(strings.TrimPrefix(uri, "attachment:")); uri != "" && name != "." && name != "/" {
		return name
	}
	if _, sub, ok := strings.Cut(mediaType, "/"); ok && kind != wire.BlockResource {
		sub, _, _ = strings.Cut(sub, ";")
		return kind + "." + sub
	}
	return kind
}
