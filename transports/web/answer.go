package web

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// answer is the ResponseWriter of every handler. It sets a deadline for each write, knows
// whether the answer has begun, and lets the server answer instead of the handler. It
// belongs to the handler's goroutine.
type answer struct {
	http.ResponseWriter
	rc      *http.ResponseController // of the wrapped ResponseWriter
	timeout time.Duration
	stream  func() // called at the first Flush
	leave   func() // called at a Hijack
	body    *body  // of the request; nil for none

	begun     bool // something was written
	sealed    bool // the server has answered; what the handler writes is dropped
	own       bool // the handler sets its own deadlines
	streaming bool
	hijacked  bool

	head    bool // its path has HEAD, if it has GET
	options bool // the client asks which methods there are
}

// Unwrap serves http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader begins the answer.
func (a *answer) WriteHeader(status int) {
	if a.sealed || status == http.StatusMethodNotAllowed && a.refuseMethod() {
		return
	}
	if status >= 200 {
		a.start()
	}
	a.ResponseWriter.WriteHeader(status)
}

// pieceBytes is how much a client must read within a deadline. It is so small that only a client
// that has stopped reading does not.
const pieceBytes = 32 << 10

// Write writes, each piece within a deadline of its own.
func (a *answer) Write(p []byte) (n int, err error) {
	if a.sealed {
		return len(p), nil
	}
	a.start()
	for {
		a.arm()
		m, err := a.ResponseWriter.Write(p[n:min(len(p), n+pieceBytes)])
		if n += m; err != nil || n == len(p) {
			return n, err
		}
	}
}

// start notes that the answer begins, with status 200 unless there was a WriteHeader. It does not wait
// for what is left of the request: net/http would read up to 256 KiB of that first, however slowly it
// comes, for the sake of the next request of the connection.
func (a *answer) start() {
	if !a.begun && a.body.unread() {
		a.Header().Set("Connection", "close")
	}
	a.begun = true
}

// Flush implements http.Flusher, which some libraries need.
func (a *answer) Flush() { _ = a.FlushError() }

// FlushError sends what was written, within the deadline. An answer that is flushed counts
// as a stream: the context of its request ends when the server stops.
func (a *answer) FlushError() error {
	if a.sealed {
		return nil
	}
	if !a.streaming {
		a.streaming = true
		a.stream()
	}
	a.start()
	a.arm()
	return a.rc.Flush()
}

// Hijack passes the connection to the caller, who is then responsible for it.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := a.rc.Hijack()
	if err == nil {
		a.start()
		a.hijacked = true
		a.leave()
	}
	return conn, rw, err
}

// SetWriteDeadline lets the handler set its own deadlines from now on.
func (a *answer) SetWriteDeadline(t time.Time) error {
	a.own = true
	return a.rc.SetWriteDeadline(t)
}

// arm renews the deadline. It ignores writers without deadlines.
func (a *answer) arm() {
	if !a.own {
		_ = a.rc.SetWriteDeadline(time.Now().Add(a.timeout))
	}
}

// refuse answers instead of the handler, unless that has begun to, and drops what it writes
// afterwards.
func (a *answer) refuse(status int, code, detail string) {
	if a.begun || a.sealed {
		return
	}
	a.arm()
	a.start()
	Problem(a.ResponseWriter, status, code, detail)
	a.sealed = true
}

// finish sets the deadline for the rest of the answer, which net/http writes after the
// handler has returned, and for the next request.
func (a *answer) finish() {
	if !a.hijacked {
		a.start()
		a.own = false
		a.arm()
	}
}

// errNoBody is the cause with which the context of a HEAD ends whose answer would be a stream.
var errNoBody = errors.New("an answer to HEAD has no body")

// untilStop ends the context of a streaming request when the server stops, that of a HEAD at once.
func untilStop(stopping context.Context, r *http.Request) (_ *http.Request, stream, release func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	stop := func() bool { return true }
	stream = func() { stop = context.AfterFunc(stopping, func() { cancel(errStopping) }) }
	if r.Method == http.MethodHead {
		stream = func() { cancel(errNoBody) }
	}
	release = func() {
		stop()
		cancel(nil)
	}
	return r.WithContext(ctx), stream, release
}
