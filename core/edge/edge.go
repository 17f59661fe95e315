package edge

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Mark is the byte order mark of UTF-8.
const Mark = "\ufeff"

// Most is how many bytes of a text [Encoding] wants to see.
const Most = 4

// Encoding returns the name of the encoding of a text that is not UTF-8, by its first bytes: UTF-16 and UTF-32 with a
// byte order mark, or with a first character of ASCII. It returns "" for any other.
func Encoding(text []byte) string {
	for _, known := range []struct{ name, first string }{
		{"UTF-32", "\x00\x00\xfe\xff"}, {"UTF-32", "\xff\xfe\x00\x00"}, {"UTF-16", "\xfe\xff"}, {"UTF-16", "\xff\xfe"},
	} {
		if bytes.HasPrefix(text, []byte(known.first)) {
			return known.name
		}
	}
	switch zeros := func(at ...int) bool {
		return !slices.ContainsFunc(at, func(i int) bool { return text[i] != 0 })
	}; {
	case len(text) >= Most && (zeros(1, 2, 3) && isASCII(text[0]) || zeros(0, 1, 2) && isASCII(text[3])):
		return "UTF-32"
	case len(text) >= 2 && (zeros(1) && isASCII(text[0]) || zeros(0) && isASCII(text[1])):
		return "UTF-16"
	}
	return ""
}

// isASCII reports whether a byte is a character of ASCII that a text may begin with.
func isASCII(c byte) bool { return ' ' <= c && c < 0x7f || c == '\n' || c == '\r' || c == '\t' }

// Text returns a text without a byte order mark at its beginning. The error names an encoding that is not UTF-8.
func Text(text []byte) ([]byte, error) {
	if name := Encoding(text); name != "" {
		return nil, fmt.Errorf("it is %s: write it as UTF-8", name)
	}
	return bytes.TrimPrefix(text, []byte(Mark)), nil
}

// ReadFile is [os.ReadFile] for a file of text: see [Text].
func ReadFile(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Text(text)
}

// Word returns a word, such as a token or the value of a variable, without a byte order mark, and without white space
// at its ends.
func Word(text string) string { return strings.TrimSpace(strings.TrimPrefix(text, Mark)) }
