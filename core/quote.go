package core

import (
	"strconv"
	"unicode/utf8"
)

// quote quotes what a peer wrote, for a message, and cuts a long text between
// characters.
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
