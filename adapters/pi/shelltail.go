package pi

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// The bounds of what is kept of a program's output (facts, section 3.5).
const (
	tailBytes = 51_200
	tailLines = 2000
)

// tail keeps the end of what a program prints, and counts the rest: its memory does
// not grow with what comes. The zero tail is empty.
type tail struct {
	kept  []byte
	bytes int64
	lines int64 // newlines
	open  bool  // the last line has no end yet
}

func (t *tail) write(p []byte) {
	if len(p) == 0 {
		return
	}
	t.bytes += int64(len(p))
	t.lines += int64(bytes.Count(p, []byte{'\n'}))
	t.open = p[len(p)-1] != '\n'
	t.kept = append(t.kept, last(p, tailBytes+1)...) // one more shows whether it begins a line
	if len(t.kept) > 4*tailBytes {
		t.kept = append(t.kept[:0], last(t.kept, tailBytes+1)...)
	}
}

// last returns the last n bytes of p.
func last(p []byte, n int) []byte { return p[max(0, len(p)-n):] }

// total is how many lines there were.
func (t *tail) total() int64 {
	if t.open {
		return t.lines + 1
	}
	return t.lines
}

// text returns what is kept, as UTF-8: whole lines, unless the last one alone is too
// long. truncated says that there was more.
func (t *tail) text() (text string, truncated bool) {
	p := last(t.kept, tailBytes)
	if cut := len(t.kept) - len(p); cut > 0 && t.kept[cut-1] != '\n' {
		if i := bytes.IndexByte(p, '\n'); i >= 0 && i < len(p)-1 {
			p = p[i+1:]
		}
		for len(p) > 0 && !utf8.RuneStart(p[0]) {
			p = p[1:]
		}
	}
	from := len(p)
	for n := 0; from > 0; from-- {
		if p[from-1] == '\n' && from < len(p) {
			if n++; n == tailLines {
				break
			}
		}
	}
	p = p[from:]
	return strings.ToValidUTF8(string(p), "\ufffd"), int64(len(p)) < t.bytes
}
