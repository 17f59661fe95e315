package web

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
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
}

// limitBody limits the body of r. If Content-Length is already over the limit, it answers and
// returns false.
func limitBody(a *answer, r *http.Request, o Options) bool {
	if r.Body == nil || r.Body == http.NoBody {
		return true
	}
	b := &body{a: a, limit: o.MaxBodyBytes, timeout: o.BodyTimeout}
	b.ReadCloser = http.MaxBytesReader(a.ResponseWriter, r.Body, o.MaxBodyBytes)
	if r.ContentLength > o.MaxBodyBytes {
		a.Header().Set("Connection", "close")
		b.tooLarge()
		return false
	}
	r.Body = b
	return true
}

// Read reads within the limits. The time begins with the first call.
func (b *body) Read(p []byte) (int, error) {
	if !b.armed {
		b.armed = true
		_ = b.a.rc.SetReadDeadline(time.Now().Add(b.timeout))
	}
	n, err := b.ReadCloser.Read(p)
	var over *http.MaxBytesError
	switch {
	case err == io.EOF:
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
