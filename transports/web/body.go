package web

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/dragoman-hub/dragoman/core/memory"
)

// body is the body of a request with its limits. Reading too much, or for too long, returns
// an error, and the client gets an error response, unless the handler has begun to
// answer.
type body struct {
	io.ReadCloser // bounded by http.MaxBytesReader
	a             *answer
	limit         int64
	timeout       time.Duration
	armed         bool
	ended         bool // it was read to its end

	memory *memory.Budget
	share  memory.Share // what was read
}

// errFull is the error of a body for which there is no memory.
var errFull = errors.New("the server has no memory for more bodies of requests")

// limitBody limits the body of r; it returns nil if r has none. The caller calls release once the
// request is answered.
func limitBody(a *answer, r *http.Request, o Options) *body {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	b := &body{a: a, limit: o.MaxBodyBytes, timeout: o.BodyTimeout, memory: o.Memory, share: memory.Of(o.Memory, memory.Bodies)}
	b.ReadCloser = http.MaxBytesReader(a.ResponseWriter, r.Body, o.MaxBodyBytes)
	r.Body = b
	return b
}

// fits reports whether the body may be within the limit. If Content-Length is already over it, fits
// answers.
func (b *body) fits(r *http.Request) bool {
	if b == nil || r.ContentLength <= b.limit {
		return true
	}
	b.a.Header().Set("Connection", "close")
	b.tooLarge()
	return false
}

// release gives back the memory of what was read.
func (b *body) release() {
	if b != nil {
		b.share.Release()
	}
}

// unread reports whether a part of the body was not read.
func (b *body) unread() bool { return b != nil && !b.ended }

// leave bounds how long net/http may read what the handler has left of the body.
func (b *body) leave() {
	if b.unread() {
		_ = b.a.rc.SetReadDeadline(time.Now().Add(b.timeout))
	}
}

// crowded reports whether the memory is full, and bodies are a large part of it. Smaller ones
// are let in: they may belong to what runs.
func (b *body) crowded() bool {
	return b.memory.IsFull() && b.memory.HeldAs(memory.Bodies) > b.memory.Limit()/4
}

// Read reads within the limits. The time begins with the first call.
func (b *body) Read(p []byte) (int, error) {
	if !b.armed {
		b.armed = true
		_ = b.a.rc.SetReadDeadline(time.Now().Add(b.timeout))
	}
	if b.crowded() {
		b.a.Header().Set("Connection", "close")
		b.a.Header().Set("Retry-After", "1")
		b.a.refuse(http.StatusServiceUnavailable, "overloaded", "the hub has no memory for more requests (limits.memory): try again later")
		b.memory.Refuse()
		return 0, errFull
	}
	n, err := b.ReadCloser.Read(p)
	b.share.Add(n)
	var over *http.MaxBytesError
	switch {
	case err == io.EOF:
		b.ended = true
		_ = b.a.rc.SetReadDeadline(time.Time{})
	case errors.As(err, &over):
		b.tooLarge()
	case errors.Is(err, os.ErrDeadlineExceeded):
		b.a.Header().Set("Connection", "close")
		b.a.refuse(http.StatusRequestTimeout, "timeout", fmt.Sprintf("the body did not arrive within %v", b.timeout))
	}
	return n, err
}

// tooLarge answers 413.
func (b *body) tooLarge() {
	b.a.refuse(http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("the body is over the limit of %d bytes: send less, attachments included, or say where it is (a path, a link)", b.limit))
}
