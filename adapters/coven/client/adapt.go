package client

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// native reports whether [adapt] returns the body unchanged: it is a short piece of text,
// or an end without text.
func native(b core.Body, maxBytes int) bool {
	switch b := b.(type) {
	case core.Text:
		return len(b.Text) <= maxBytes/2
	case core.Done:
		return b.Text == "" && len(b.Data) == 0 && !b.Truncated && b.TokensUsed == 0
	}
	return false
}

// adapt turns what a handler says into bodies for which Coven has an event. Text is cut
// between characters to fit into messages, structured answers become text, and the
// numbers of Done become a status line; an end always fits. texted says that text of
// the answer was sent before.
func adapt(b core.Body, texted bool, maxBytes int) []core.Body {
	piece := max(maxBytes/2, utf8.UTFMax) // room for the request id and the frame
	switch b := b.(type) {
	case core.Accepted:
		if b.Estimate <= 0 {
			return nil // the first event says it
		}
		return []core.Body{core.Thinking{Text: "estimated time: " + b.Estimate.String()}}
	case core.Text:
		return wire.Pieces(b.Text, piece)
	case core.Cancelled:
		return []core.Body{core.Cancelled{Reason: wire.CutText(b.Reason, piece)}}
	case core.Failed:
		text := wire.Unexplained
		if b.Fault != nil {
			text = wire.FaultText(b.Fault)
		}
		return []core.Body{core.Failed{Fault: core.NewFault(core.CodeInternal, "%s", wire.CutText(text, piece))}}
	case core.Done:
		var out []core.Body
		if note := footnote(b); note != "" {
			out = append(out, core.Thinking{Text: note})
		}
		text := wire.ValidUTF8(b.Text)
		if len(b.Data) > 0 {
			data := wire.Fenced("Data", b.Data)
			switch {
			case texted:
				out = append(out, wire.Pieces("\n\n"+data, piece)...)
			case text != "":
				text += "\n\n" + data
			default:
				text = data
			}
		}
		if len(text) > piece {
			if !texted {
				out = append(out, wire.Pieces(text, piece)...)
			}
			text = "" // full_response is optional, and the pieces outrank it
		}
		return append(out, core.Done{Text: text})
	}
	return []core.Body{b}
}

// footnote returns what Done says beyond the answer.
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
