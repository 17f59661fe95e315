package web

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core/edge"
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

	begun bool   // the first bytes were read
	first []byte // what of them was not passed on
	after error  // what came behind them

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

// fits reports whether the body may be within the limit, and in an encoding that is understood. If the headers
// say that it is not, fits answers.
func (b *body) fits(r *http.Request) bool {
	if b == nil {
		return true
	}
	if r.ContentLength > b.limit {
		b.a.Header().Set("Connection", "close")
		b.tooLarge()
		return false
	}
	if why := unreadable(r.Header); why != "" {
		b.refuseEncoding(why)
		return false
	}
	return true
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

// unreadable returns why the headers of a request say that its body cannot be read, "" if they do not: every body
// is JSON, in UTF-8.
func unreadable(h http.Header) string {
	for _, values := range h.Values("Content-Encoding") {
		for name := range strings.SplitSeq(values, ",") {
			if name = strings.ToLower(strings.TrimSpace(name)); name != "" && name != "identity" {
				return fmt.Sprintf("the body is encoded as %.40q (Content-Encoding): send it as it is", name)
			}
		}
	}
	_, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	charset := strings.ToLower(params["charset"])
	if err == nil && charset != "" && charset != "utf-8" && charset != "utf8" && charset != "us-ascii" {
		return fmt.Sprintf("the body is in %.40q (charset of Content-Type): send it in UTF-8", charset)
	}
	return ""
}

// refuseEncoding answers 415.
func (b *body) refuseEncoding(why string) {
	b.a.Header().Set("Accept-Encoding", "identity")
	b.a.refuse(http.StatusUnsupportedMediaType, "unsupported", why)
}

// errEncoding is the error of a body in another encoding than UTF-8.
var errEncoding = errors.New("the body is not UTF-8")

// Read reads the body without a byte order mark at its beginning.
func (b *body) Read(p []byte) (int, error) {
	if !b.begun {
		b.begun = true
		b.begin()
	}
	switch {
	case len(b.first) > 0:
		n := copy(p, b.first)
		b.first = b.first[n:]
		return n, nil
	case b.after != nil:
		return 0, b.after
	}
	return b.read(p)
}

// begin reads the first bytes.
func (b *body) begin() {
	first, n := make([]byte, edge.Most), 0
	for n < len(first) && b.after == nil {
		var more int
		more, b.after = b.read(first[n:])
		n += more
	}
	if name := edge.Encoding(first[:n]); name != "" {
		b.refuseEncoding("the body is " + name + ": send it in UTF-8")
		b.after = errEncoding
		return
	}
	b.first = bytes.TrimPrefix(first[:n], []byte(edge.Mark))
}

// crowded reports whether the memory is full, and bodies are a large part of it. Smaller ones
// are let in: they may belong to what runs.
func (b *body) crowded() bool {
	return b.memory.IsFull() && b.memory.HeldAs(memory.Bodies) > b.memory.Limit()/4
}

// read reads within the limits. The time begins with the first call.
func (b *body) read(p []byte) (int, error) {
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
