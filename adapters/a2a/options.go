package a2a

import (
	"cmp"
	"log/slog"
	"net/http"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/webhook"
)

// Defaults of [Options].
const (
	DefaultDeadline     = 4 * time.Hour
	DefaultMaxBodyBytes = 1_000_000
	DefaultKeepAlive    = 15 * time.Second
)

// Options are the settings of a Server. Only Principal is required.
type Options struct {
	// Principal returns the sender of a request (promise P7). The client gets its error if
	// that is a Fault. A Principal without an ID is refused as unauthenticated.
	Principal func(*http.Request) (core.Principal, error)
	// URL is the address of the hub as clients reach it, such as https://hub.example.com,
	// for cards; "" takes it from each request.
	URL string
	// GRPC returns the host and port at which the sender of a request reaches the gRPC binding, for
	// cards; nil or "" for none.
	GRPC func(*http.Request) string
	// Bearer says that clients need a token, for cards.
	Bearer bool
	// Version is the version of the program, for cards.
	Version string
	// Deadline is the deadline of tasks; default [DefaultDeadline].
	Deadline time.Duration
	// MaxBodyBytes is the maximum size of a request body; default [DefaultMaxBodyBytes].
	MaxBodyBytes int
	// KeepAlive is the interval of comments in a silent stream; default [DefaultKeepAlive].
	KeepAlive time.Duration
	// Signer signs cards; nil signs none.
	Signer *Signer
	// Webhooks posts notifications; nil for none.
	Webhooks *webhook.Sender
	// Log gets messages for operators; nil discards them.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Principal == nil {
		o.Principal = func(*http.Request) (core.Principal, error) { return core.Principal{}, nil }
	}
	if o.GRPC == nil {
		o.GRPC = func(*http.Request) string { return "" }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Deadline = cmp.Or(max(0, o.Deadline), DefaultDeadline)
	o.MaxBodyBytes = cmp.Or(max(0, o.MaxBodyBytes), DefaultMaxBodyBytes)
	o.KeepAlive = cmp.Or(max(0, o.KeepAlive), DefaultKeepAlive)
	return o
}
