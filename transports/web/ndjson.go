package web

import (
	"bytes"
	"errors"
	"net/http"
)

// NDJSON is an answer of one JSON value a line. Its methods may be called from
// several goroutines; a line is never torn. After an error all of them return it
// again: the client is gone, or has not read for [DefaultStall].
type NDJSON struct{ live }

// NewNDJSON answers r with a stream of lines and sends the head at once. The
// handler should return when r's context ends: the client has left, or the server
// stops.
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
