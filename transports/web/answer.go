package web

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"time"
)

// answer is the ResponseWriter that every handler gets. It gives each write a
// deadline, knows whether the answer has begun, and lets the server answer in the
// handler's place. It belongs to the handler's goroutine.
type answer struct {
	http.ResponseWriter
	rc      *http.ResponseController // of the ResponseWriter within
	timeout time.Duration
	stream  func() // told of the first Flush
	leave   func() // told of a Hijack

	begun     bool // something was written
	sealed    bool // the server has answered; what the handler writes is dropped
	own       bool // the handler sets its own deadlines
	streaming bool
	hijacked  bool
}

// Unwrap serves http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader begins the answer.
func (a *answer) WriteHeader(status int) {
	if a.sealed {
		return
	}
	a.begun = a.begun || status >= 200
	a.ResponseWriter.WriteHeader(status)
}

// Write writes within the deadline.
func (a *answer) Write(p []byte) (int, error) {
	if a.sealed {
		return len(p), nil
	}
	a.begun = true
	a.arm()
	return a.ResponseWriter.Write(p)
}

// Flush implements http.Flusher, which some libraries ask for.
func (a *answer) Flush() { _ = a.FlushError() }

// FlushError sends what was written within the deadline. An answer that is
// flushed is taken for a stream: its request ends when the server stops.
func (a *answer) FlushError() error {
	if a.sealed {
		return nil
	}
	if !a.streaming {
		a.streaming = true
		a.stream()
	}
	a.begun = true
	a.arm()
	return a.rc.Flush()
}

// Hijack hands the connection over: from here on it is the caller's business.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := a.rc.Hijack()
	if err == nil {
		a.begun, a.hijacked = true, true
		a.leave()
	}
	return conn, rw, err
}

// SetWriteDeadline leaves the deadlines to the handler.
func (a *answer) SetWriteDeadline(t time.Time) error {
	a.own = true
	return a.rc.SetWriteDeadline(t)
}

// arm renews the deadline. A writer that has none is no socket of ours.
func (a *answer) arm() {
	if !a.own {
		_ = a.rc.SetWriteDeadline(time.Now().Add(a.timeout))
	}
}

// refuse answers in the handler's place, if it has not begun to, and drops what it
// writes afterwards.
func (a *answer) refuse(status int, code, detail string) {
	if a.begun || a.sealed {
		return
	}
	a.arm()
	Problem(a.ResponseWriter, status, code, detail)
	a.begun, a.sealed = true, true
}

// finish leaves the connection in order for the last of the answer, which net/http
// writes once the handler has returned, and for the next request.
func (a *answer) finish() {
	if !a.hijacked {
		a.own = false
		a.arm()
	}
}

// untilStop makes a request end when the server stops, should it stream.
func untilStop(stopping context.Context, r *http.Request) (_ *http.Request, stream, release func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	stop := func() bool { return true }
	stream = func() { stop = context.AfterFunc(stopping, func() { cancel(errStopping) }) }
	release = func() {
		stop()
		cancel(nil)
	}
	return r.WithContext(ctx), stream, release
}
