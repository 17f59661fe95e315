package client

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// told is what of an answer the hub has been told, artifact by artifact, so that a task that
// is shown again as a whole, after a cut or by a poll, tells only what is new.
type told struct {
	report    func(core.Body, *core.Foreign) error
	count     func(string)
	artifacts map[string]*artifact
	order     []*artifact
	// last is the artifact that was told last, and lastText the one whose text was.
	last, lastText *artifact
	// answered says that something of an answer was told, other than thinking.
	answered bool
	// exact says that the remote is a hub: see text.
	exact bool
	data  int // the bytes of structured data that are kept until the end
}

// seen says how much of an artifact is known to the hub.
type seen struct {
	Text   int    `json:"text,omitempty"`   // the bytes of its text
	Hash   uint64 `json:"hash,omitempty"`   // of that text
	Others int    `json:"others,omitempty"` // its parts that are no text
}

// add adds text. The hash is a polynomial of its bytes, however it is cut; four of them at once
// do not wait for each other.
func (s *seen) add(text string) {
	const x uint64 = 65521
	h := s.Hash
	s.Text += len(text)
	for ; len(text) >= 4; text = text[4:] {
		h = h*(x*x*x*x) + uint64(text[0])*(x*x*x) + uint64(text[1])*(x*x) + uint64(text[2])*x + uint64(text[3])
	}
	for i := range len(text) {
		h = h*x + uint64(text[i])
	}
	s.Hash = h
}

// artifact is what was told of an artifact.
type artifact struct {
	id string
	seen
	data     []json.RawMessage
	replaced bool // its next text replaces what was told
	halves   strictjson.Halves
}

// joined returns parts whose texts are pieces of that of the artifact: of all of it if they are whole.
func (a *artifact) joined(parts []wire.Part, whole bool) []wire.Part {
	if whole {
		a.halves = strictjson.Halves{}
	}
	parts = slices.Clone(parts)
	for i := range parts {
		if p := &parts[i]; p.Kind == wire.PartText {
			*p = p.WithText(a.halves.Join(p.Piece()))
		}
	}
	return parts
}

// rest tells what is left of the texts when the task ends.
func (t *told) rest() error {
	for _, a := range t.order {
		if left := a.halves.Rest(); left != "" {
			if err := t.part(a, wire.TextPart(left), nil, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

// The limits of an answer beside its text, which the hub bounds.
const (
	maxArtifacts = 10_000
	maxData      = 16 << 20
)

func (t *told) artifact(id string) (a *artifact, known bool, err error) {
	if a = t.artifacts[id]; a != nil {
		return a, true, nil
	}
	if len(t.order) >= maxArtifacts {
		return nil, false, core.NewFault(core.CodeTooLarge, "the remote agent has made more than %d artifacts in one task", maxArtifacts)
	}
	a = &artifact{id: id}
	if t.artifacts == nil {
		t.artifacts = map[string]*artifact{}
	}
	t.artifacts[id], t.order = a, append(t.order, a)
	return a, false, nil
}

// maxKept is how many artifacts of a task that stays open are remembered.
const maxKept = 100

// kept returns what is known of the artifacts, for the turn that goes on with the task.
func (t *told) kept() map[string]seen {
	kept := map[string]seen{}
	for _, a := range t.order[:min(len(t.order), maxKept)] {
		kept[a.id] = a.seen
	}
	return kept
}

// know sets what an earlier turn has told.
func (t *told) know(kept map[string]seen) error {
	for id, s := range kept {
		a, _, err := t.artifact(id)
		if err != nil {
			return err
		}
		a.seen = s
	}
	return nil
}

// update tells an update of an artifact. With append its parts are new; without it they are
// the whole artifact.
func (t *told) update(u *wire.ArtifactUpdate) error {
	a, known, err := t.artifact(u.Artifact.ID)
	if err != nil {
		return err
	}
	parts := a.joined(u.Artifact.Parts, !u.Append)
	if known && !u.Append {
		var same bool
		if parts, same = a.news(parts); !same {
			t.replace(a)
		}
	}
	return t.parts(a, parts, t.beside(a, u, known), u.Artifact.Name)
}

// snapshot tells what is new in an artifact of a whole task. One that is shorter than what was
// told is older.
func (t *told) snapshot(whole *wire.Artifact) error {
	a, known, err := t.artifact(whole.ID)
	if err != nil {
		return err
	}
	parts := a.joined(whole.Parts, true)
	if known {
		var same bool
		all := parts
		switch parts, same = a.news(parts); {
		case same:
		case len(wire.Text(all)) < a.Text:
			return nil
		default:
			t.replace(a)
		}
	}
	return t.parts(a, parts, t.beside(a, &wire.ArtifactUpdate{Artifact: *whole}, known), whole.Name)
}

// news returns the parts of a whole artifact that were not told. The text that was told is
// expected at its beginning, however it is cut into parts, and known is true; otherwise all of
// it is new.
func (a *artifact) news(parts []wire.Part) (fresh []wire.Part, known bool) {
	var same seen
	text, others := a.Text, a.Others
	for _, p := range parts {
		switch {
		case p.Kind != wire.PartText && others > 0:
			others--
		case p.Kind == wire.PartText && text > 0:
			n := min(text, len(p.Text))
			same.add(p.Text[:n])
			if text -= n; n < len(p.Text) {
				p.Text = p.Text[n:]
				fresh = append(fresh, p)
			}
		default:
			fresh = append(fresh, p)
		}
	}
	if text == 0 && others == 0 && same.Hash == a.Hash {
		return fresh, true
	}
	return parts, false
}

// replace forgets what was told of an artifact, whose new content follows.
func (t *told) replace(a *artifact) {
	t.count("a2a.agent.replaced")
	for _, d := range a.data {
		t.data -= len(d)
	}
	a.seen, a.data, a.replaced = seen{}, nil, true
}

// parts tells parts of an artifact.
func (t *told) parts(a *artifact, parts []wire.Part, beside *wire.ArtifactUpdate, name string) error {
	if len(parts) == 0 && beside != nil {
		return t.report(core.Text{}, wire.Beside(wire.StreamResponse{ArtifactUpdate: beside}))
	}
	for _, p := range parts {
		if err := t.part(a, p, besidePart(a.id, p, beside), name); err != nil {
			return err
		}
		beside = nil
	}
	return nil
}

func (t *told) part(a *artifact, p wire.Part, beside *core.Foreign, name string) error {
	switch p.Kind {
	case wire.PartText:
		if p.Text == "" && beside == nil {
			return nil
		}
		a.add(p.Text)
		if a.id == thinkingID {
			return t.report(core.Thinking{Text: p.Text}, beside)
		}
		return t.text(a, p.Text, beside)
	case wire.PartURL:
		a.Others++
		return t.text(a, link(p), beside)
	case wire.PartRaw:
		a.Others++
		t.last, t.answered = a, true
		return t.report(core.File{Name: cmp.Or(p.Filename, name, "file"), MediaType: p.MediaType, Data: p.Raw}, beside)
	case wire.PartData:
		a.Others++
		if t.data += len(p.Data); t.data > maxData {
			return core.NewFault(core.CodeTooLarge, "the remote agent answered with more than %d bytes of data", maxData)
		}
		a.data, t.answered = append(a.data, p.Data), true
		if beside != nil {
			return t.report(core.Text{}, beside)
		}
	}
	return nil
}

// text tells text. That of another artifact begins a paragraph, unless the remote is a hub,
// which knows what it cuts.
func (t *told) text(a *artifact, text string, beside *core.Foreign) error {
	if t.lastText != nil && (t.lastText != a || a.replaced) && !t.exact && text != "" {
		text = "\n\n" + text
	}
	t.last, t.lastText, a.replaced, t.answered = a, a, false, true
	return t.report(core.Text{Text: text}, beside)
}

// link returns a part with a URL as text. The hub does not fetch it: a remote must not choose
// what the hub asks for.
func link(p wire.Part) string {
	if p.Filename == "" {
		return p.Text + "\n"
	}
	return "[" + p.Filename + "](" + p.Text + ")\n"
}

// structured returns the data of all artifacts: a single value as it is, several as a list.
func (t *told) structured() json.RawMessage {
	var all []json.RawMessage
	for _, a := range t.order {
		all = append(all, a.data...)
	}
	if len(all) < 2 {
		return slices.Concat(all...)
	}
	raw, _ := json.Marshal(all) // they were read as JSON
	return raw
}

// The artifacts that have a meaning of their own: what our server calls the text of an answer
// and its data, and what it and others call thinking.
const (
	answerID   = "answer"
	dataID     = "data"
	thinkingID = "thinking"
)

// beside returns what an update says beside its parts; nil for nothing. Its name is told once,
// its id wherever it does not follow from what came before.
func (t *told) beside(a *artifact, u *wire.ArtifactUpdate, known bool) *wire.ArtifactUpdate {
	own := &u.Artifact
	said := own.Metadata != nil || own.Extensions != nil || own.Unknown != nil || u.Metadata != nil || u.Unknown != nil
	switch {
	case said:
	case known:
		said = t.last != nil && t.last != a && a.id != thinkingID && a.id != dataID
	case a.id == answerID, a.id == thinkingID, a.id == dataID:
		said = !t.exact && (own.Name != "" || own.Description != "")
	default:
		said = true
	}
	if !said {
		return nil
	}
	b := &wire.ArtifactUpdate{Artifact: *own, Append: known, Metadata: u.Metadata, Unknown: u.Unknown}
	if b.Artifact.Parts = nil; known {
		b.Artifact.Name, b.Artifact.Description = "", ""
	}
	return b
}

// besidePart returns what a part says beside its content, with what is beside its artifact.
func besidePart(id string, p wire.Part, beside *wire.ArtifactUpdate) *core.Foreign {
	left := wire.Part{Metadata: p.Metadata, Unknown: p.Unknown}
	if p.Kind != wire.PartRaw {
		left.Filename, left.MediaType = p.Filename, p.MediaType
	}
	if p.Kind == wire.PartText && left.MediaType == "text/plain" || p.Kind == wire.PartData && left.MediaType == wire.MediaJSON {
		left.MediaType = ""
	}
	some := left.Metadata != nil || left.Unknown != nil || left.Filename != "" || left.MediaType != ""
	if beside == nil && !some {
		return nil
	}
	whole := wire.ArtifactUpdate{Append: true, Artifact: wire.Artifact{ID: id}}
	if beside != nil {
		whole = *beside
	}
	whole.Artifact.Parts = []wire.Part{left}
	return wire.Beside(wire.StreamResponse{ArtifactUpdate: &whole})
}
