package web

import (
	"bytes"
	"errors"
	"net/http"
)

// NDJSON is a streaming answer with one JSON value per line. Its methods may be called
// concurrently. An error is final, and later calls return it again: the client has gone, or
// has not read for [DefaultStall].
type NDJSON struct{ live }

// NewNDJSON answers r with a stream of lines and sends the head at once. The handler should
// return when the context of r ends: the client has gone, or the server stops.
func NewNDJSON(w http.ResponseWriter, _ *http.Request) (*NDJSON, error) {
	n := &NDJSON{}
	return n, begin(&n.live, w, "application/x-ndjson")
}

// Send sends one line. The value must be JSON without line breaks, as
// encoding/json makes it.
func (n *NDJSON) Send(value []byte) error {
	if bytes.ContainsAny(value, "\r\n") {
		return errors.New("a value must stand on one line")
	}
	line := make([]byte, 0, len(value)+1)
	return n.write(append(append(line, value...), '\n'))
}
