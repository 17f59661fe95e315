package link

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
)

// Cause says in one word why a connection ended. The zero Cause is unset.
type Cause uint8

// The causes. Transports map them to their own signals (a WebSocket close code,
// a gRPC status); the numbers themselves never leave the process.
const (
	_            Cause = iota
	Normal             // both sides were done
	PeerGone           // the peer left or the network cut it off
	ShuttingDown       // the hub is stopping
	Protocol           // the peer broke the rules of its dialect
	TooLarge           // a message was over the limit of the transport
	Unauthorized       // the peer is not who or what it must be
	Replaced           // a newer connection took this one's place
	Slow               // the peer did not take what was sent to it in time
	Unresponsive       // the peer did not answer a ping in time
	Overloaded         // the hub has no room for this connection
	Internal           // the hub failed
)

var causeNames = [...]string{"unset", "normal", "peer gone", "shutting down", "protocol", "too large", "unauthorized", "replaced", "slow", "unresponsive", "overloaded", "internal"}

// String returns the cause in words.
func (c Cause) String() string {
	if int(c) < len(causeNames) {
		return causeNames[c]
	}
	return fmt.Sprintf("cause %d", uint8(c))
}

// Reason is why a connection ended. It is an error, so that a Conn can return it.
type Reason struct {
	Cause Cause
	// Text is told to the peer where the transport can carry it.
	Text string
	// Code is the transport's own number for the end: the WebSocket close code
	// received from the peer, or one that a dialect asks for. Zero lets the
	// transport choose by Cause.
	Code int
	// Err is the detail for the log, when there is one. It is never told to the
	// peer.
	Err error
}

// Error implements error.
func (r *Reason) Error() string {
	cause := r.Cause.String()
	switch {
	case r.Text == "":
		return cause
	case strings.HasSuffix(r.Text, cause): // which says it already
		return r.Text
	}
	return cause + ": " + r.Text
}

// Unwrap returns the detail that is kept from the peer.
func (r *Reason) Unwrap() error { return r.Err }

// departures is what is said of a peer whose connection has ended.
var departures = map[Cause]string{
	Normal:       "it ended its connection",
	PeerGone:     "its connection was lost",
	ShuttingDown: "the hub is stopping",
	Protocol:     "it broke the rules of its dialect",
	TooLarge:     "it sent a message over the limit",
	Unauthorized: "it was turned away",
	Replaced:     "a newer connection took its place",
	Slow:         "it took nothing of what was sent to it",
	Unresponsive: "it gave no sign of life",
	Overloaded:   "there was no room for its connection",
}

// Fault is what others are told of the peer: that it is unreachable, with a fixed
// sentence for the cause. What the peer or the network said of the end is none of
// their business: that is the hidden cause of the Fault. That the hub is stopping is all
// there is to that.
func (r *Reason) Fault() *core.Fault {
	said, ok := departures[r.Cause]
	if !ok {
		said = "the hub failed"
	}
	f := core.NewFault(core.CodeUnreachable, "%s", said)
	if r.Cause == ShuttingDown && r.Err == nil {
		return f
	}
	return f.Because(r)
}

// graceful says whether the peer can still be expected to read, so that what is
// already queued is flushed before the connection is taken down.
func (r *Reason) graceful() bool {
	switch r.Cause {
	case PeerGone, Slow, Unresponsive:
		return false
	default:
		return true
	}
}

// Because makes a Reason.
func Because(c Cause, format string, args ...any) *Reason {
	return &Reason{Cause: c, Text: fmt.Sprintf(format, args...)}
}

// Reject is one message that the transport refused without ending the
// connection.
type Reject struct {
	Cause Cause
	Text  string
	// Size and Limit are in bytes, when the message was too large.
	Size, Limit int
	// Head is how such a message begins, as far as the transport kept it.
	Head string
}

// Error implements error.
func (r *Reject) Error() string { return r.Text }

// reasonOf turns what Receive or Send returned into a Reason.
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

// reasonFrom turns what a callback returned into a Reason. What is not a Reason
// is the hub's own failure, whose detail is none of the peer's business.
func reasonFrom(err error) Reason {
	var r *Reason
	if errors.As(err, &r) {
		return *r
	}
	return Reason{Cause: Internal, Text: "internal error", Err: err}
}
