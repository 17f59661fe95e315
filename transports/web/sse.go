package web

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
)

// SSE is a streaming answer of server-sent events. Its methods may be called concurrently.
// An error is final, and later calls return it again: the client has gone, or has not read
// for [DefaultStall].
type SSE struct{ live }

// NewSSE answers r with a stream of events and sends the head at once. The handler should
// return when the context of r ends: the client has gone, or the server stops.
func NewSSE(w http.ResponseWriter, _ *http.Request) (*SSE, error) {
	s := &SSE{}
	return s, begin(&s.live, w, "text/event-stream")
}

// Send sends one event. Event is its type, empty for the default; id, if not empty,
// is what the client gives as Last-Event-ID when it comes back. Neither may contain
// a line break or NUL. The data may have any number of lines; CR and CRLF reach the
// client as LF.
func (s *SSE) Send(event, id string, data []byte) error {
	if strings.ContainsAny(event, "\r\n\x00") || strings.ContainsAny(id, "\r\n\x00") {
		return errors.New("an event's type and id must have no line break")
	}
	var b bytes.Buffer
	b.Grow(len(data) + len(event) + len(id) + 32)
	if event != "" {
		b.WriteString("event: " + event + "\n")
	}
	if id != "" {
		b.WriteString("id: " + id + "\n")
	}
	lines(&b, "data: ", data)
	b.WriteByte('\n')
	return s.write(b.Bytes())
}

// Comment sends a comment, which clients ignore. It keeps proxies from closing a quiet
// stream, and detects that a client has gone.
func (s *SSE) Comment(text string) error {
	var b bytes.Buffer
	lines(&b, ": ", []byte(text))
	b.WriteByte('\n')
	return s.write(b.Bytes())
}

// lines writes each line of text after prefix. Empty text is one empty line.
func lines(b *bytes.Buffer, prefix string, text []byte) {
	for more := true; more; {
		line := text
		end := bytes.IndexAny(text, "\r\n")
		if more = end >= 0; more {
			line = text[:end]
			if bytes.HasPrefix(text[end:], []byte("\r\n")) {
				end++
			}
			text = text[end+1:]
		}
		b.WriteString(prefix)
		b.Write(line)
		b.WriteByte('\n')
	}
}
