package wire

import (
	"strings"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/core"
)

// MaxPieceBytes bounds the text of one progress envelope.
const MaxPieceBytes = 64 << 10

// PieceBytes returns how much text a progress envelope of a given size holds, however its
// characters are escaped.
func PieceBytes(envelope int) int { return max(utf8.UTFMax, min(MaxPieceBytes, envelope/8)) }

// CutText splits text after at most n bytes, between characters.
func CutText(text string, n int) (part, rest string) {
	if len(text) <= n {
		return text, ""
	}
	for n > 1 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n], text[n:]
}

// SummaryBytes bounds the summary of an answer whose text was sent as progress: the draft
// calls it a one-liner.
const SummaryBytes = 200

// Brief returns a request on one line, as the name of a task in its result.
func Brief(r core.Request) string { return Summary(questionText(r)) }

// Summary returns the beginning of a text on one line.
func Summary(text string) string {
	line, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	if len(line) <= SummaryBytes {
		if more {
			line += " ..."
		}
		return line
	}
	n := SummaryBytes
	for n > 0 && !utf8.RuneStart(line[n]) {
		n--
	}
	return line[:n] + " ..."
}
