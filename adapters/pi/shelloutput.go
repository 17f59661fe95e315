package pi

import (
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
)

// The rate at which output is told while a program runs: at most a piece of
// pieceBytes every pieceEvery.
const (
	pieceEvery = 200 * time.Millisecond
	pieceBytes = 8 << 10
)

// shellOutput takes what a program prints: it keeps the end, and tells pieces at a
// bounded rate while the program runs. Its memory is bounded. It is safe for
// concurrent use; the tail is read once end has returned.
type shellOutput struct {
	// tell is given what was printed since, and how many bytes before that were too
	// many to be told. It is never called by two at once.
	tell func(delta string, skipped int64)

	mu sync.Mutex
	tail
	piece   []byte
	skipped int64
	timer   *time.Timer // set while a piece waits for its time
	ended   bool
}

// Write implements io.Writer. It always takes everything.
func (o *shellOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.write(p)
	o.piece = append(o.piece, last(p, pieceBytes)...)
	over := len(o.piece) - pieceBytes
	o.skipped += int64(len(p) - min(len(p), pieceBytes) + max(0, over))
	if over > 0 {
		o.piece = append(o.piece[:0], o.piece[over:]...)
	}
	if o.timer == nil && !o.ended {
		o.timer = time.AfterFunc(pieceEvery, o.flush)
	}
	return len(p), nil
}

// flush tells what waits, but for a letter that is not whole yet.
func (o *shellOutput) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.timer = nil; !o.ended {
		o.say(runes(o.piece))
	}
}

// end tells the rest. Nothing is told afterwards.
func (o *shellOutput) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	if o.timer != nil {
		o.timer.Stop()
	}
	o.say(len(o.piece))
}

// say tells the first n bytes of the piece.
func (o *shellOutput) say(n int) {
	if n == 0 && o.skipped == 0 {
		return
	}
	o.tell(strings.ToValidUTF8(string(o.piece[:n]), "\ufffd"), o.skipped)
	o.piece = append(o.piece[:0], o.piece[n:]...)
	o.skipped = 0
}

// runes returns how many bytes of p end with a whole letter.
func runes(p []byte) int {
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

// sayOutput tells the subscribers of a session what a program printed: an event
// bash_output, which the reference does not have; clients ignore events that they
// do not know (section 14).
func (s *Server) sayOutput(ss *session, sh *shell, delta string, skipped int64) {
	b := append(make([]byte, 0, len(ss.prefix)+len(delta)+256), ss.prefix...)
	b = wire.AppendString(append(b, `{"type":"bash_output","commandId":`...), sh.x.known.name)
	b = wire.AppendString(append(b, `,"delta":`...), delta)
	if skipped > 0 {
		b = strconv.AppendInt(append(b, `,"skippedBytes":`...), skipped, 10)
	}
	b = append(b, '}', '}')
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range ss.readers {
		c.push(item{frame: b})
	}
}
