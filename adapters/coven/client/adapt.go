package client

import (
	"fmt"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// maxPiece is the most text of one message: it leaves room for the request id.
const maxPiece = maxMessageBytes / 2

// native reports whether [adapt] returns the body unchanged: short text, or an end without
// text.
func native(b core.Body) bool {
	switch b := b.(type) {
	case core.Text:
		return len(b.Text) <= maxPiece
	case core.Done:
		return b.Text == "" && len(b.Data) == 0 && !b.Truncated && b.TokensUsed == 0
	}
	return false
}

// adapt turns a body into bodies for which Coven has an event. Text is split between
// characters to fit into messages, structured answers become text, and the numbers of Done
// become a status line; an end always fits. hasText reports that text of the answer was
// sent before.
func adapt(b core.Body, hasText bool) []core.Body {
	switch b := b.(type) {
	case core.Accepted:
		if b.Estimate <= 0 {
			return nil // the first event implies it
		}
		return []core.Body{core.Thinking{Text: "estimated time: " + b.Estimate.String()}}
	case core.Text:
		return wire.Pieces(b.Text, maxPiece)
	case core.Cancelled:
		return []core.Body{core.Cancelled{Reason: wire.CutText(b.Reason, maxPiece)}}
	case core.Failed:
		text := wire.Unexplained
		if b.Fault != nil {
			text = wire.FaultText(b.Fault)
		}
		return []core.Body{core.Failed{Fault: core.NewFault(core.CodeInternal, "%s", wire.CutText(text, maxPiece))}}
	case core.Done:
		var out []core.Body
		if note := footnote(b); note != "" {
			out = append(out, core.Thinking{Text: note})
		}
		text := wire.ValidUTF8(b.Text)
		if len(b.Data) > 0 {
			data := wire.Fenced("Data", b.Data)
			switch {
			case hasText:
				out = append(out, wire.Pieces("\n\n"+data, maxPiece)...)
			case text != "":
				text += "\n\n" + data
			default:
				text = data
			}
		}
		if len(text) > maxPiece {
			if !hasText {
				out = append(out, wire.Pieces(text, maxPiece)...)
			}
			text = "" // full_response is optional: the pieces are the answer
		}
		return append(out, core.Done{Text: text})
	}
	return []core.Body{b}
}

// footnote returns the parts of Done beyond the answer as a status line.
func footnote(b core.Done) string {
	var notes []string
	if b.Truncated {
		notes = append(notes, "the answer was cut to stay within the token limit")
	}
	if b.TokensUsed > 0 {
		notes = append(notes, fmt.Sprintf("tokens used: %d", b.TokensUsed))
	}
	return strings.Join(notes, "; ")
}
