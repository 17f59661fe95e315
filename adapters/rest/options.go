package rest

import (
	"cmp"
	"log/slog"
	"net/http"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// Name is the name of this interface among the dialects.
const Name = "rest"

// Defaults of [Options].
const (
	DefaultDeadline     = 4 * time.Hour
	DefaultMaxBodyBytes = 24 << 20
	DefaultKeepAlive    = 15 * time.Second
	DefaultWriteTimeout = 30 * time.Second
)

// Options are the settings of the handler. Only Principal is required.
type Options struct {
	// Principal returns the sender of a request (promise P7). The client gets its error if
	// that is a Fault. If it is nil, or returns a Principal without an ID, the request is
	// refused as unauthenticated.
	Principal func(*http.Request) (core.Principal, error)
	// Deadline is the deadline of tasks whose request has none; default [DefaultDeadline].
	Deadline time.Duration
	// MaxBodyBytes is the maximum size of a request body; default [DefaultMaxBodyBytes].
	MaxBodyBytes int
	// Version is the version of the program for GET /v1/hub.
	Version string
	// Addresses returns the addresses of the hub for the sender of a request, for
	// GET /v1/hub; nil means none.
	Addresses func(*http.Request) Addresses
	// SeesAll reports whether a principal gets the counters in GET /v1/hub, which are about
	// everybody; nil means that all do.
	SeesAll func(core.Principal) bool
	// Cluster is what the hub knows of the other hubs, for GET /v1/hub; nil for a hub alone.
	Cluster *cluster.Cluster
	// Translations are those of all dialects, for the losses in GET /v1/hub; without that of a
	// dialect none are told of it.
	Translations core.Translations
	// Packs returns the id, dialect and Child of the packs of the settings, for GET /v1/packs;
	// nil means none.
	Packs func() []hub.PackStatus
	// Log gets messages for operators; nil discards them.
	Log *slog.Logger
	// KeepAlive is the interval of comments in a silent stream of server-sent events;
	// default [DefaultKeepAlive].
	KeepAlive time.Duration
	// WriteTimeout is how long a client may read nothing before its connection is closed,
	// and how long it may take to send a body; default [DefaultWriteTimeout].
	WriteTimeout time.Duration
}

// Addresses are the addresses of the hub as host:port for one client; "" for a listener that
// it cannot reach.
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
	if o.SeesAll == nil {
		o.SeesAll = func(core.Principal) bool { return true }
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
