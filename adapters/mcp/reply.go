package mcp

import (
	"net/http"

	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
)

// reply is the answer to a request: one JSON message, or a stream of messages that ends with
// the answer. One goroutine uses it.
type reply struct {
	w  http.ResponseWriter
	rc *http.ResponseController
	// accepts says that the client accepts a stream.
	accepts   bool
	streaming bool
}

func newReply(w http.ResponseWriter, q *request) *reply {
	return &reply{w: w, rc: http.NewResponseController(w), accepts: acceptsStream(q.http)}
}

// stream sends a part of a stream, which it begins if necessary. After an error the client
// has gone.
func (a *reply) stream(text []byte) error {
	if !a.streaming {
		a.streaming = true
		setHeaders(a.w.Header(), "text/event-stream")
		a.w.Header().Set("X-Accel-Buffering", "no") // so that proxies do not delay the events
		a.w.WriteHeader(http.StatusOK)
	}
	if _, err := a.w.Write(text); err != nil {
		return err
	}
	return a.rc.Flush()
}

// finish sends the answer. It returns the HTTP status.
func (a *reply) finish(status int, message []byte) int {
	if a.streaming {
		_ = a.stream(wire.Event(message)) // the client may have gone
		return http.StatusOK
	}
	setHeaders(a.w.Header(), "application/json")
	a.w.WriteHeader(status)
	_, _ = a.w.Write(message)
	return status
}
