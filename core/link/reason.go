package link

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
)

// Cause is the class of a [Reason]. The zero Cause is unset.
type Cause uint8

// The causes. Transports map them to signals of their own (a WebSocket close code, a gRPC
// status); the numbers never leave the process.
const (
	_            Cause = iota
	Normal             // both sides had finished
	PeerGone           // the peer left or the network cut it off
	ShuttingDown       // the hub is stopping
	Protocol           // the peer broke the rules of its dialect
	TooLarge           // a message exceeded the limit of the transport
	Unauthorized       // the peer is not allowed to connect
	Replaced           // a newer connection replaced this one
	Slow               // the peer did not read in time
	Unresponsive       // the peer did not answer a ping in time
	Overloaded         // the hub has no room for this connection
	Internal           // the hub failed
)

var causeNames = [...]string{"unset", "normal", "peer gone", "shutting down", "protocol", "too large", "unauthorized", "replaced", "slow", "unresponsive", "overloaded", "internal"}

// String returns the name of the cause.
func (c Cause) String() string {
	if int(c) < len(causeNames) {
		return causeNames[c]
	}
	return fmt.Sprintf("cause %d", uint8(c))
}

// Reason is why a connection ended. It is an error, so that a Conn can return it.
type Reason struct {
	Cause Cause
	// Text is sent to the peer if the transport can carry it.
	Text string
	// Code is the number of the end in the transport: the WebSocket close code received
	// from the peer, or one that a dialect asks for. If it is zero, the transport chooses
	// by Cause.
	Code int
	// Err is a detail for the log, or nil. It is never sent to the peer.
	Err error
}

// Error implements error.
func (r *Reason) Error() string {
	cause := r.Cause.String()
	switch {
	case r.Text == "":
		return cause
	case strings.HasSuffix(r.Text, cause): // it already names the cause
		return r.Text
	}
	return cause + ": " + r.Text
}

// Unwrap returns Err.
func (r *Reason) Unwrap() error { return r.Err }

// endMessages tell others why the connection of a peer ended.
var endMessages = map[Cause]string{
	Normal:       "it ended its connection",
	PeerGone:     "its connection was lost",
	ShuttingDown: "the hub is stopping",
	Protocol:     "it broke the rules of its dialect",
	TooLarge:     "it sent a message over the limit",
	Unauthorized: "it was not authorized",
	Replaced:     "a newer connection took its place",
	Slow:         "it did not read what was sent to it",
	Unresponsive: "it gave no sign of life",
	Overloaded:   "the hub had no room for its connection",
}

// Fault returns the error for others that depend on the peer: an unreachable Fault with a
// fixed message for the cause. Text and Err are only in its hidden cause, which is never
// sent. If the hub is stopping, there is no hidden cause.
func (r *Reason) Fault() *core.Fault {
	message, ok := endMessages[r.Cause]
	if !ok {
		message = "the hub failed"
	}
	f := core.NewFault(core.CodeUnreachable, "%s", message)
	if r.Cause == ShuttingDown && r.Err == nil {
		return f
	}
	return f.Because(r)
}

// graceful reports whether the peer can be expected to read, so that the queue is flushed
// before the connection is closed.
func (r *Reason) graceful() bool {
	switch r.Cause {
	case PeerGone, Slow, Unresponsive:
		return false
	default:
		return true
	}
}

// Because returns a Reason with a formatted text.
func Because(c Cause, format string, args ...any) *Reason {
	return &Reason{Cause: c, Text: fmt.Sprintf(format, args...)}
}

// Reject is a message that the transport refused without ending the connection.
type Reject struct {
	Cause Cause
	Text  string
	// Size and Limit are set, in bytes, if the message was too large.
	Size, Limit int
	// Head is the beginning of such a message, and Tail its end, as far as the transport kept
	// them.
	Head, Tail string
}

// Error implements error.
func (r *Reject) Error() string { return r.Text }

// reasonOf turns an error of Receive or Send into a Reason.
func reasonOf(err error) Reason {
	var r *Reason
	switch {
	case errors.As(err, &r):
		return *r
	case errors.Is(err, io.EOF):
		return Reason{Cause: Normal, Text: "peer closed"}
	default:
		return Reason{Cause: PeerGone, Text: "the connection was lost", Err: err}
	}
}

// reasonFrom turns an error of a callback into a Reason. An error that is not a Reason is a
// failure of the hub, whose detail the peer does not get.
func reasonFrom(err error) Reason {
	var r *Reason
	if errors.As(err, &r) {
		return *r
	}
	return Reason{Cause: Internal, Text: "internal error", Err: err}
}
