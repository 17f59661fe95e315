package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text shows a text with its lines and tabs.
func Text(text string) string { return show(text, "\n\t") }

// Line shows the whole of a text on one line, with its line ends as \n.
func Line(text string) string { return show(text, "") }

// JSON shows a JSON text, which may hold such characters in its strings alone: there the escape
// means the same.
func JSON(text string) string {
	return escape(text, "\n\t", func(b *strings.Builder, r rune) {
		if r >= 0x10000 {
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(b, `\u%04x\u%04x`, high, low)
			return
		}
		fmt.Fprintf(b, `\u%04x`, r)
	})
}

// show shows a text whose characters in keep are harmless.
func show(text, keep string) string {
	return escape(text, keep, func(b *strings.Builder, r rune) {
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x80:
			fmt.Fprintf(b, `\x%02x`, r)
		case r >= 0x10000:
			fmt.Fprintf(b, `\U%08x`, r)
		default:
			fmt.Fprintf(b, `\u%04x`, r)
		}
	})
}

// escape returns a text in which as writes what cannot be seen, but for the characters in keep.
func escape(text, keep string, as func(*strings.Builder, rune)) string {
	clean := func(r rune) bool { return !Hidden(r) || strings.ContainsRune(keep, r) }
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	if !strings.ContainsFunc(text, func(r rune) bool { return !clean(r) }) {
		return text
	}
	var b strings.Builder
	before := rune(0)
	for _, r := range text {
		if clean(r) || joins(before, r) {
			b.WriteRune(r)
		} else {
			as(&b, r)
		}
		before = r
	}
	return b.String()
}

// Hidden reports whether a character controls a terminal, changes the direction of writing, or
// is not seen.
func Hidden(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f
	}
	const blankBraille = '\u2800' // a letter, and seen by nobody
	return r == blankBraille || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// The characters that join others, or choose how the one before looks.
const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
	textStyle          = '\ufe0e'
	emojiStyle         = '\ufe0f'
)

// joins reports whether a character that is not seen itself belongs to the one before, as in an
// emoji, or between the letters of a script that has such forms.
func joins(before, r rune) bool {
	switch r {
	case textStyle, emojiStyle:
		return !Hidden(before) && (before >= utf8.RuneSelf || before >= '0' && before <= '9' || before == '#' || before == '*')
	case zeroWidthJoiner, zeroWidthNonJoiner:
		return before == emojiStyle || before >= utf8.RuneSelf && !Hidden(before) && !unicode.In(before, unicode.Latin, unicode.Greek, unicode.Cyrillic)
	}
	return false
}
