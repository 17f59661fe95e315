package agent

import (
	"cmp"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Pieces puts together what an agent says of one task in pieces of text and of thinking, which may cut a
// character into halves. The zero Pieces is that of a task that begins. It is not safe for concurrent use.
type Pieces struct{ text, thinking strictjson.Halves }

// Join returns the body with the text that a piece adds; a body that is neither text nor thinking as it is. half
// says that the piece is half a character alone, so that the body says nothing yet. "" stands for the text of the
// body, which has no halves.
func (p *Pieces) Join(b core.Body, piece strictjson.Piece) (joined core.Body, half bool) {
	switch said := b.(type) {
	case core.Text:
		if text := p.text.Join(cmp.Or(piece, strictjson.Piece(said.Text))); text != said.Text {
			return core.Text{Text: text}, text == ""
		}
	case core.Thinking:
		if text := p.thinking.Join(cmp.Or(piece, strictjson.Piece(said.Text))); text != said.Text {
			return core.Thinking{Text: text}, text == ""
		}
	}
	return b, false
}

// Rest returns what is to be said before the end of the task.
func (p *Pieces) Rest() (bodies []core.Body) {
	if text := p.thinking.Rest(); text != "" {
		bodies = append(bodies, core.Thinking{Text: text})
	}
	if text := p.text.Rest(); text != "" {
		bodies = append(bodies, core.Text{Text: text})
	}
	return bodies
}
