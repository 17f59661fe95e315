package shell

import (
	"bytes"
	"unicode/utf8"
)

// A tail keeps at most TailBytes in at most TailLines.
const (
	TailBytes = 51_200
	TailLines = 2000
)

// Printed is what a command printed.
type Printed struct {
	// Text is the end of the output as UTF-8: whole lines, unless the last line alone is
	// longer than TailBytes.
	Text string
	// Truncated reports whether the output is longer than Text.
	Truncated bool
	// Bytes and Lines are the size of the whole output.
	Bytes, Lines int64
}

// tail keeps the end of the written bytes and counts all of them. The zero tail is empty.
type tail struct {
	kept     []byte
	bytes    int64
	newlines int64
	open     bool // the last line has no newline yet
}

func (t *tail) write(p []byte) {
	if len(p) == 0 {
		return
	}
	t.bytes += int64(len(p))
	t.newlines += int64(bytes.Count(p, []byte{'\n'}))
	t.open = p[len(p)-1] != '\n'
	t.kept = append(t.kept, last(p, TailBytes+1)...) // the extra byte shows whether the kept text begins a line
	if len(t.kept) > 4*TailBytes {
		t.kept = append(t.kept[:0], last(t.kept, TailBytes+1)...)
	}
}

// last returns the last n bytes of p, or all of it.
func last(p []byte, n int) []byte { return p[max(0, len(p)-n):] }

// lines returns the number of lines written.
func (t *tail) lines() int64 {
	if t.open {
		return t.newlines + 1
	}
	return t.newlines
}

// printed returns the summary of the written bytes.
func (t *tail) printed() Printed {
	p := last(t.kept, TailBytes)
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
			if n++; n == TailLines {
				break
			}
		}
	}
	p = p[from:]
	return Printed{Text: validUTF8(p), Truncated: int64(len(p)) < t.bytes, Bytes: t.bytes, Lines: t.lines()}
}
