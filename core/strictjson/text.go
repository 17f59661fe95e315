package strictjson

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// Kind is the kind of a value. The zero Kind means that there is no value.
type Kind uint8

// The kinds of a value.
const (
	_ Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// String returns the name of the kind in errors.
func (k Kind) String() string {
	return [...]string{"no value", "null", "a boolean", "a number", "a string", "an array", "an object"}[k]
}

var kinds = [256]Kind{
	'n': Null, 't': Bool, 'f': Bool, '"': String, '[': Array, '{': Object,
	'-': Number, '0': Number, '1': Number, '2': Number, '3': Number, '4': Number,
	'5': Number, '6': Number, '7': Number, '8': Number, '9': Number,
}

// space skips white space.
func (s *scanner) space() {
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// literal reads true, false or null.
func (s *scanner) literal(word string) *Error {
	for i := range len(word) {
		if s.pos+i == len(s.text) {
			return s.truncated()
		}
		if s.text[s.pos+i] != word[i] {
			s.pos += i
			return s.wrong(s.unexpected()+" in "+word, "write "+word+", or put text in double quotes")
		}
	}
	s.pos += len(word)
	return nil
}

// number reads a number; whole reports that it has neither fraction nor exponent.
func (s *scanner) number() (whole bool, err *Error) {
	if s.text[s.pos] == '-' {
		s.pos++
	}
	zero := s.pos < len(s.text) && s.text[s.pos] == '0'
	n := s.digits()
	if n == 0 {
		return false, s.noDigit()
	}
	if zero && n > 1 {
		s.pos -= n
		return false, s.wrong("number with a leading zero", "remove it, or send a string")
	}
	whole = true
	if s.pos < len(s.text) && s.text[s.pos] == '.' {
		whole = false
		s.pos++
		if s.digits() == 0 {
			return false, s.noDigit()
		}
	}
	if s.pos < len(s.text) && s.text[s.pos]|0x20 == 'e' {
		whole = false
		s.pos++
		if s.pos < len(s.text) && (s.text[s.pos] == '+' || s.text[s.pos] == '-') {
			s.pos++
		}
		if s.digits() == 0 {
			return false, s.noDigit()
		}
	}
	return whole, nil
}

func (s *scanner) digits() (n int) {
	start := s.pos
	for s.pos < len(s.text) && '0' <= s.text[s.pos] && s.text[s.pos] <= '9' {
		s.pos++
	}
	return s.pos - start
}

func (s *scanner) noDigit() *Error {
	if s.pos == len(s.text) {
		return s.truncated()
	}
	return s.wrong(s.unexpected()+" in a number", "put a digit there")
}

// readString reads a string and returns the text between its quotes, and whether that has
// escapes.
func (s *scanner) readString() (raw []byte, escaped bool, err *Error) {
	start := s.pos + 1
	ascii := true
	for i := start; ; {
		var plain bool
		i, plain = plainText(s.text, i)
		ascii = ascii && plain
		if i == len(s.text) {
			return nil, false, s.truncated()
		}
		switch c := s.text[i]; c {
		case '"':
			raw = s.text[start:i]
			if !ascii && !s.lenient && !utf8.Valid(raw) {
				return nil, false, s.notUTF8(start)
			}
			s.pos = i + 1
			return raw, escaped, nil
		case '\\':
			escaped = true
			n, err := s.escape(i)
			if err != nil {
				return nil, false, err
			}
			i += n
		default:
			s.pos = i
			return nil, false, s.wrong(fmt.Sprintf("control character U+%04X in a string", c), fmt.Sprintf(`write it as \u%04x`, c))
		}
	}
}

// notUTF8 finds the first byte from start on that is not UTF-8.
func (s *scanner) notUTF8(start int) *Error {
	for s.pos = start; ; {
		r, n := utf8.DecodeRune(s.text[s.pos:])
		if r == utf8.RuneError && n <= 1 {
			return s.wrong(fmt.Sprintf("byte 0x%02x is not UTF-8", s.text[s.pos]), "send text in UTF-8")
		}
		s.pos += n
	}
}

// escape returns the length of the escape at i.
func (s *scanner) escape(i int) (int, *Error) {
	if i+1 == len(s.text) {
		return 0, s.truncated()
	}
	switch s.text[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, nil
	case 'u':
		for k := i + 2; k < i+6; k++ {
			if k == len(s.text) {
				return 0, s.truncated()
			}
			if c := s.text[k]; !('0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f') {
				s.pos = i
				return 0, s.wrong(`\u without four hexadecimal digits`, `write it as \u00e9`)
			}
		}
		return 6, nil
	}
	s.pos = i
	return 0, s.wrong("unknown escape in a string", `use \" \\ \/ \b \f \n \r \t or \u and four digits`)
}

// plainText returns the first offset from i on at which a string ends, has an escape or has
// a control character, or the end of data, and whether everything before it is ASCII. It
// compares eight bytes at a time, because long answers are one string.
func plainText(data []byte, i int) (end int, ascii bool) {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	var seen uint64
	for i+8 <= len(data) {
		x := binary.LittleEndian.Uint64(data[i:])
		quote, slash := x^(ones*'"'), x^(ones*'\\')
		// Each term has the high bit of a byte set if that byte is special. Bytes
		// above the first special one may show bits borrowed from it; those below
		// it do not.
		special := ((x-ones*0x20)&^x | (quote-ones)&^quote | (slash-ones)&^slash) & highs
		if special != 0 {
			n := bits.TrailingZeros64(special) / 8
			seen |= x & (1<<(8*n) - 1)
			return i + n, seen&highs == 0
		}
		seen |= x
		i += 8
	}
	for i < len(data) && data[i] >= 0x20 && data[i] != '"' && data[i] != '\\' {
		seen |= uint64(data[i])
		i++
	}
	return i, seen&highs == 0
}

// unescape appends the value of a checked string, given the text between its quotes. Half of
// a surrogate pair becomes U+FFFD.
func unescape(to, raw []byte) []byte {
	for len(raw) > 0 {
		n := bytes.IndexByte(raw, '\\')
		if n < 0 {
			return append(to, raw...)
		}
		to = append(to, raw[:n]...)
		c := raw[n+1]
		raw = raw[n+2:]
		if c != 'u' {
			to = append(to, escapes[c])
			continue
		}
		r := hexadecimal(raw)
		raw = raw[4:]
		if utf16.IsSurrogate(r) {
			low := rune(utf8.RuneError)
			if len(raw) >= 6 && raw[0] == '\\' && raw[1] == 'u' {
				low = hexadecimal(raw[2:])
			}
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				raw = raw[6:]
			}
		}
		to = utf8.AppendRune(to, r)
	}
	return to
}

// escapes are the characters of escapes with one letter.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// hexadecimal reads the first four digits of text.
func hexadecimal(text []byte) (r rune) {
	for _, c := range text[:4] {
		if c > '9' {
			c = c | 0x20 - 'a' + 10 + '0'
		}
		r = r<<4 | rune(c-'0')
	}
	return r
}
