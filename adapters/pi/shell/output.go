package shell

import (
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Output is reported in pieces of at most PieceBytes, one every PieceEvery.
const (
	PieceEvery = 200 * time.Millisecond
	PieceBytes = 8 << 10
)

// Output is an [io.Writer] for the output of a command. It reports pieces of the output at
// a bounded rate and keeps its end. Its memory is bounded. It is safe for concurrent use.
type Output struct {
	report func(piece string, skipped int64)

	mu      sync.Mutex
	tail    tail
	piece   []byte      // not reported yet
	skipped int64       // bytes dropped before piece
	timer   *time.Timer // set while a flush is scheduled
	closed  bool
}

// NewOutput returns an Output that calls report with each piece, as valid UTF-8, and
// with the number of bytes dropped before it to keep the rate. Calls do not overlap; they
// come from Close and from a separate goroutine. Writers wait for report to return, and
// report must not call the Output.
func NewOutput(report func(piece string, skipped int64)) *Output {
	return &Output{report: report}
}

// Write implements io.Writer. It takes all of p and returns no error.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tail.write(p)
	o.piece = append(o.piece, last(p, PieceBytes)...)
	over := len(o.piece) - PieceBytes
	o.skipped += int64(len(p) - min(len(p), PieceBytes) + max(0, over))
	if over > 0 {
		o.piece = append(o.piece[:0], o.piece[over:]...)
	}
	if o.timer == nil && !o.closed {
		o.timer = time.AfterFunc(PieceEvery, o.flush)
	}
	return len(p), nil
}

// flush reports the piece up to its last whole character.
func (o *Output) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.timer = nil; !o.closed {
		o.send(wholeCharacters(o.piece))
	}
}

// Close reports the rest of the output and returns a summary of all of it. Nothing is
// reported afterwards.
func (o *Output) Close() Printed {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	if o.timer != nil {
		o.timer.Stop()
	}
	o.send(len(o.piece))
	return o.tail.printed()
}

// send reports the first n bytes of the piece.
func (o *Output) send(n int) {
	if n == 0 && o.skipped == 0 {
		return
	}
	o.report(validUTF8(o.piece[:n]), o.skipped)
	o.piece = append(o.piece[:0], o.piece[n:]...)
	o.skipped = 0
}

// wholeCharacters returns the length of p without an incomplete character at its end.
func wholeCharacters(p []byte) int {
	for i := len(p) - 1; i >= 0 && i >= len(p)-utf8.UTFMax; i-- {
		if utf8.RuneStart(p[i]) {
			if utf8.FullRune(p[i:]) {
				break
			}
			return i
		}
	}
	return len(p)
}

// validUTF8 returns p as a string, with U+FFFD in place of invalid UTF-8.
func validUTF8(p []byte) string { return strings.ToValidUTF8(string(p), "\ufffd") }
