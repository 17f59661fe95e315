package coven

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/core"
)

// plain reports whether a body is what [spell] makes of it: a short piece of text, or an
// end without a word.
func plain(b core.Body, maxBytes int) bool {
	switch b := b.(type) {
	case core.Text:
		return len(b.Text) <= maxBytes/2
	case core.Done:
		return b.Text == "" && len(b.Data) == 0 && !b.Truncated && b.TokensUsed == 0
	}
	return false
}

// spell turns what a handler says into bodies that Coven has an event for. Text is
// cut to fit into messages, at characters; structured answers become text; what
// Done says of itself becomes a status line; an end always fits. texted says that
// a piece of the answer was told before.
func spell(b core.Body, texted bool, maxBytes int) []core.Body {
	piece := max(maxBytes/2, utf8.UTFMax) // room for the request id and the frame
	switch b := b.(type) {
	case core.Accepted:
		if b.Estimate <= 0 {
			return nil // the first event says it
		}
		return []core.Body{core.Thinking{Text: "estimated time: " + b.Estimate.String()}}
	case core.Text:
		return pieces(b.Text, piece)
	case core.Cancelled:
		return []core.Body{core.Cancelled{Reason: beginning(b.Reason, piece)}}
	case core.Failed:
		text := unexplained
		if b.Fault != nil {
			text = faultText(b.Fault)
		}
		return []core.Body{core.Failed{Fault: core.NewFault(core.CodeInternal, "%s", beginning(text, piece))}}
	case core.Done:
		var out []core.Body
		if note := footnote(b); note != "" {
			out = append(out, core.Thinking{Text: note})
		}
		text := utf8Of(b.Text)
		if len(b.Data) > 0 {
			data := fenced("Data", b.Data)
			switch {
			case texted:
				out = append(out, pieces("\n\n"+data, piece)...)
			case text != "":
				text += "\n\n" + data
			default:
				text = data
			}
		}
		if len(text) > piece {
			if !texted {
				out = append(out, pieces(text, piece)...)
			}
			text = "" // full_response is optional, and the pieces outrank it
		}
		return append(out, core.Done{Text: text})
	}
	return []core.Body{b}
}

// footnote is what Done says beside the answer.
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

// pieces cuts text into events of at most n bytes, at characters.
func pieces(text string, n int) []core.Body {
	text = utf8Of(text)
	var out []core.Body
	for len(text) > n {
		head := beginning(text, n)
		out = append(out, core.Text{Text: head})
		text = text[len(head):]
	}
	return append(out, core.Text{Text: text})
}

// beginning is as much of text as fits into n bytes, whole characters only.
func beginning(text string, n int) string {
	text = utf8Of(text)
	if len(text) <= n {
		return text
	}
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
