package mcp

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// reply is the answer to a request: one JSON message, or a stream of messages that ends with
// the answer. One goroutine uses it.
type reply struct {
	w  http.ResponseWriter
	rc *http.ResponseController
	id json.RawMessage
	// accepts says that the client accepts a stream.
	accepts   bool
	streaming bool
}

func newReply(w http.ResponseWriter, q *request) *reply {
	return &reply{w: w, rc: http.NewResponseController(w), id: q.ID, accepts: acceptsStream(q.http)}
}

// keepAliveComment is a comment in a stream.
const keepAliveComment = ": alive\n\n"

// event returns a message as an event of a stream. It must not have line breaks.
func event(message []byte) []byte { return fmt.Appendf(nil, "event: message\ndata: %s\n\n", message) }

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
		_ = a.stream(event(message)) // the client may have gone
		return http.StatusOK
	}
	setHeaders(a.w.Header(), "application/json")
	a.w.WriteHeader(status)
	_, _ = a.w.Write(message)
	return status
}
