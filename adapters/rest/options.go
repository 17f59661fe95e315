package rest

import (
	"cmp"
	"log/slog"
	"net/http"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// Name is the name of this interface among the dialects.
const Name = "rest"

// The defaults of [Options].
const (
	DefaultDeadline     = 300 * time.Second
	DefaultMaxBodyBytes = 1_000_000
	DefaultKeepAlive    = 15 * time.Second
	DefaultWriteTimeout = 30 * time.Second
)

// Options make the handler. Of the zero Options only Principal is missing.
type Options struct {
	// Principal returns who sends a request (promise P7); its error is told as it is
	// when it is a Fault. Where it is nil, or returns a Principal without an ID, every
	// request is refused as unauthenticated.
	Principal func(*http.Request) (core.Principal, error)
	// Deadline is how long a task may take unless its request says; default
	// [DefaultDeadline].
	Deadline time.Duration
	// DropTasks cancels a task when the client that waits for it or reads it leaves,
	// unless its request says keep. Without it tasks run on unless the request says
	// otherwise.
	DropTasks bool
	// MaxBodyBytes bounds the body of a request; default [DefaultMaxBodyBytes].
	MaxBodyBytes int
	// Version is what GET /v1/hub says of the program.
	Version string
	// Addresses returns where the sender of a request reaches the listeners of the hub,
	// for GET /v1/hub; nil tells of none.
	Addresses func(*http.Request) Addresses
	// Log gets what operators should know; nil discards it.
	Log *slog.Logger
	// KeepAlive is how often a silent stream of server-sent events says that it
	// lives; default [DefaultKeepAlive].
	KeepAlive time.Duration
	// WriteTimeout is how long a reader may take nothing at all before it is cut off,
	// and a sender for its body; default [DefaultWriteTimeout].
	WriteTimeout time.Duration
}

// Addresses are the listeners of the hub as host:port, each as one client reaches it;
// "" of what it cannot reach.
type Addresses struct {
	GRPC string `json:"grpc,omitempty"`
	HTTP string `json:"http,omitempty"`
	Pi   string `json:"pi,omitempty"`
}

func (o Options) withDefaults() Options {
	if o.Principal == nil {
		o.Principal = func(*http.Request) (core.Principal, error) { return core.Principal{}, nil }
	}
	if o.Addresses == nil {
		o.Addresses = func(*http.Request) Addresses { return Addresses{} }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Deadline = cmp.Or(max(0, o.Deadline), DefaultDeadline)
	o.MaxBodyBytes = cmp.Or(max(0, o.MaxBodyBytes), DefaultMaxBodyBytes)
	o.KeepAlive = cmp.Or(max(0, o.KeepAlive), DefaultKeepAlive)
	o.WriteTimeout = cmp.Or(max(0, o.WriteTimeout), DefaultWriteTimeout)
	return o
}
