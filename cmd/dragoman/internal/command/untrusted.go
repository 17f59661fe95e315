package command

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What agents, peers and cards say is written through the functions of this file and nothing
// else: control characters, those that change the direction of writing and those that nobody
// sees are shown as \u202e or \x1b, so that a text can neither control the terminal nor look
// like another.

// visibleLines shows a text with its lines and tabs.
func visibleLines(text string) string { return show(text, "\n\t") }

// visible shows the whole of a text on one line, with its line ends as \n.
func visible(text string) string { return show(text, "") }

// oneLine shows a text on one line, with one blank for all white space between words.
func oneLine(text string) string { return visible(strings.Join(strings.Fields(text), " ")) }

// block shows a text with its lines indented but the first, so that none of them looks like one
// of the program's own.
func block(text string) string { return strings.ReplaceAll(visibleLines(text), "\n", "\n  ") }

// summaryLength is the maximum length of brief.
const summaryLength = 120

// brief is oneLine of the beginning of a text.
func brief(text string) string {
	text = oneLine(text)
	if r := []rune(text); len(r) > summaryLength {
		text = string(r[:summaryLength]) + "…"
	}
	return text
}

// jsonText shows JSON, which may hold such characters in its strings alone: there the escape
// means the same.
func jsonText(text []byte) string {
	return escape(string(text), "\n\t", func(b *strings.Builder, r rune) {
		if r >= 0x10000 {
			high, low := utf16(r)
			fmt.Fprintf(b, `\u%04x\u%04x`, high, low)
			return
		}
		fmt.Fprintf(b, `\u%04x`, r)
	})
}

// utf16 returns the surrogates of a rune.
func utf16(r rune) (high, low rune) {
	r -= 0x10000
	return 0xd800 + r>>10, 0xdc00 + r&0x3ff
}

// quoted quotes a word for a shell, if necessary.
func quoted(word string) string {
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return hidden(r) || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.:/@", r)
	}) {
		return word
	}
	if strings.ContainsAny(word, "$`\\!") || strings.ContainsFunc(word, hidden) { // a shell reads $'' as Go does
		return "$'" + strings.NewReplacer("'", `\'`).Replace(visible(strings.ReplaceAll(word, `\`, `\\`))) + "'"
	}
	return `"` + strings.ReplaceAll(word, `"`, `\"`) + `"`
}

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
	clean := func(r rune) bool { return !hidden(r) || strings.ContainsRune(keep, r) }
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

// hidden reports whether a character controls a terminal, changes the direction of writing, or
// is not seen.
func hidden(r rune) bool {
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
		return !hidden(before) && (before >= utf8.RuneSelf || before >= '0' && before <= '9' || before == '#' || before == '*')
	case zeroWidthJoiner, zeroWidthNonJoiner:
		return before == emojiStyle || before >= utf8.RuneSelf && !hidden(before) && !unicode.In(before, unicode.Latin, unicode.Greek, unicode.Cyrillic)
	}
	return false
}
