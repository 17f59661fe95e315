package strictjson

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// Piece is a piece of a text that is told in several strings. A program that counts in UTF-16 may cut a character
// beyond U+FFFF into halves: the second half of a surrogate pair at the beginning of a Piece, and the first half at
// its end, are kept in the form that UTF-8 would have for them, three bytes that are not UTF-8. [Halves] makes
// text of it; nothing else should.
type Piece string

// halfBytes is the length of half a surrogate pair in a Piece, and of U+FFFD.
const halfBytes = len(string(utf8.RuneError))

// Piece is [Value.Text] for a piece of a text.
func (v Value) Piece() (Piece, bool) {
	text, ok := v.Text()
	if !ok || !v.Escaped() {
		return Piece(text), ok
	}
	raw := v.Raw()
	raw = raw[1 : len(raw)-1]
	first, last := escapedUnit(raw), escapedUnit(lastEscape(raw))
	if !isLow(first) && !isHigh(last) {
		return Piece(text), true
	}
	piece := []byte(text) // with U+FFFD for each half
	if isLow(first) {
		putHalf(piece, first)
	}
	if isHigh(last) {
		putHalf(piece[len(piece)-halfBytes:], last)
	}
	return Piece(piece), true
}

// Halves joins the pieces of one text. The zero Halves is one that begins. It is not safe for concurrent use.
type Halves struct{ high rune }

// Join returns the text that a piece adds: valid UTF-8. Half a surrogate pair at its end is kept for the next
// piece. One that stays alone becomes U+FFFD.
func (h *Halves) Join(p Piece) string {
	if h.high == 0 && !begins(p, isLow) && !ends(p, isHigh) {
		return string(p)
	}
	if p == "" {
		return ""
	}
	var text []byte
	switch low := half(p); {
	case isLow(low):
		text, p = utf8.AppendRune(text, utf16.DecodeRune(h.high, low)), p[halfBytes:] // U+FFFD without the first half
	case h.high != 0:
		text = utf8.AppendRune(text, utf8.RuneError)
	}
	h.high = 0
	if ends(p, isHigh) {
		cut := len(p) - halfBytes
		h.high, p = half(p[cut:]), p[:cut]
	}
	return string(append(text, p...))
}

// Rest returns what is left when the text ends: "" or U+FFFD.
func (h *Halves) Rest() string {
	if h.high == 0 {
		return ""
	}
	h.high = 0
	return string(utf8.RuneError)
}

func isHigh(r rune) bool { return 0xd800 <= r && r < 0xdc00 }
func isLow(r rune) bool  { return 0xdc00 <= r && r < 0xe000 }

func begins(p Piece, is func(rune) bool) bool { return is(half(p)) }

func ends(p Piece, is func(rune) bool) bool {
	return len(p) >= halfBytes && is(half(p[len(p)-halfBytes:]))
}

// half returns the half of a surrogate pair that p begins with; 0 for none.
func half(p Piece) rune {
	const lead, cont = 0xed, 0x3f
	if len(p) < halfBytes || p[0] != lead || p[1] < 0xa0 {
		return 0
	}
	return 0xd000 | rune(p[1]&cont)<<6 | rune(p[2]&cont)
}

// putHalf writes half a surrogate pair over the U+FFFD that stands for it.
func putHalf(at []byte, r rune) {
	const lead, cont = 0xed, 0x80
	at[0], at[1], at[2] = lead, byte(cont|r>>6&0x3f), byte(cont|r&0x3f)
}

// escapedUnit returns the unit of UTF-16 that text begins with as an escape; 0 for none.
func escapedUnit(text []byte) rune {
	const length = len(`\u0000`)
	if len(text) < length || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	return hexadecimal(text[2:])
}

// lastEscape returns the escape that a checked string ends with; nil for none.
func lastEscape(raw []byte) []byte {
	at := len(raw) - len(`\u0000`)
	if at < 0 || raw[at] != '\\' {
		return nil
	}
	before := len(raw[:at]) - len(bytes.TrimRight(raw[:at], `\`))
	if before%2 != 0 { // it is itself escaped
		return nil
	}
	return raw[at:]
}
