package core

import (
	"strconv"
	"unicode/utf8"
)

// quote quotes a text of a peer for a message, and truncates a long one between characters.
func quote(text string) string {
	const most, dots = 48, "..."
	if len(text) > most {
		n := most - len(dots)
		for n > 0 && !utf8.RuneStart(text[n]) {
			n--
		}
		text = text[:n] + dots
	}
	return strconv.Quote(text)
}
