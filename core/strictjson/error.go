package strictjson

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Error says what is wrong with a JSON text, where, and what to change. Its message is one
// line that may be sent to the peer: it repeats only keys and short values of the text,
// truncated and quoted.
type Error struct {
	// Offset is the byte at which the problem shows, from 0.
	Offset int
	// Path is the path of the value, as in payload.items[3].id, or for a problem with a
	// key that of its object. It is empty for the whole text; a very long one is truncated
	// on the left.
	Path string
	// Problem is what is wrong.
	Problem string
	// Advice is what to change, if the syntax is wrong and Problem does not say it.
	Advice string
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Advice == "" {
		if e.Path != "" {
			b.WriteString(e.Path)
			b.WriteString(": ")
		}
		b.WriteString(e.Problem)
		return b.String()
	}
	b.WriteString(e.Problem)
	b.WriteString(" at byte ")
	b.WriteString(strconv.Itoa(e.Offset))
	if e.Path != "" {
		b.WriteString(" (in ")
		b.WriteString(e.Path)
		b.WriteString(")")
	}
	b.WriteString(": ")
	b.WriteString(e.Advice)
	return b.String()
}

const (
	pathBytes  = 240 // a longer path is truncated
	quoteBytes = 48  // as are keys and values within a message
)

// UnderKey puts the key of the enclosing object before the path, and returns e.
func (e *Error) UnderKey(key []byte) *Error {
	if plainKey(key) {
		return e.under(string(key))
	}
	return e.under("[" + quote(key) + "]")
}

// UnderIndex puts the index in the enclosing array before the path, and returns e.
func (e *Error) UnderIndex(i int) *Error {
	return e.under("[" + strconv.Itoa(i) + "]")
}

func (e *Error) under(step string) *Error {
	switch {
	case len(e.Path) > pathBytes:
		if !strings.HasPrefix(e.Path, "...") {
			e.Path = "..." + e.Path
		}
	case e.Path == "" || e.Path[0] == '[':
		e.Path = step + e.Path
	default:
		e.Path = step + "." + e.Path
	}
	return e
}

// plainKey reports whether a path can have key without quotes.
func plainKey(key []byte) bool {
	if len(key) == 0 || len(key) > quoteBytes {
		return false
	}
	for _, c := range key {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// quote quotes a key for a message, and truncates a long one.
func quote(key []byte) string {
	return strconv.Quote(string(cut(key)))
}

// cut truncates a text for a message, between characters.
func cut(text []byte) []byte {
	if len(text) <= quoteBytes {
		return text
	}
	n := quoteBytes - 3
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return append(append(make([]byte, 0, n+3), text[:n]...), "..."...)
}
