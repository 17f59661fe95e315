package wire

import (
	"strings"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/core"
)

// Pieces splits text into events of at most n bytes, between characters.
func Pieces(text string, n int) []core.Body {
	text = ValidUTF8(text)
	var out []core.Body
	for len(text) > n {
		head := CutText(text, n)
		out = append(out, core.Text{Text: head})
		text = text[len(head):]
	}
	return append(out, core.Text{Text: text})
}

// CutText returns the longest prefix of text in n bytes that ends between characters.
func CutText(text string, n int) string {
	text = ValidUTF8(text)
	if len(text) <= n {
		return text
	}
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// ValidUTF8 replaces invalid UTF-8, which protobuf refuses: it would end the stream.
// Checking first is several times faster than replacing, and nearly all text is valid.
func ValidUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
