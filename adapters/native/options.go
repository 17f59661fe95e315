package native

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
)

// Dialect is the name of the dialect in cards, principals and foreign members.
const Dialect = wire.Dialect

// The defaults of [Options].
const (
	DefaultFrameBytes = 10 << 20
	DefaultHubName    = "dragoman"
)

// Options are the options of a connection. The zero Options are an open hub with the defaults.
type Options struct {
	// Principal is the authenticated peer. Without an ID the hub is open, and the peer is an
	// operator with the name AgentID, or a new one. Not for [Serve].
	Principal core.Principal
	// AgentID is the only id with which the peer may join; "" lets it choose. Not for [Serve].
	AgentID core.AgentID
	// Card is the card of the settings, for [Serve]: what it says comes first, and what the
	// peer says of itself in join is added.
	Card core.Card
	// Ready is called with the card once the peer has joined, from a goroutine of the
	// connection: it must return soon.
	Ready func(core.Card)
	// Lost is called by [Serve] with the reason before the tasks of a peer that is gone fail, so
	// that its queue waits for the next one; nil for none.
	Lost func(error)
	// HubName and Version are told in hello.
	HubName, Version string
	// FrameBytes bounds a frame of the peer; 0 means [DefaultFrameBytes]. A longer one is
	// refused as too_large, never cut.
	FrameBytes int
	// Deadline is how long a request may take that states no deadline; 0 means the default of
	// the hub. Not for [Serve].
	Deadline time.Duration
	// Trace is the trace context with which the connection was made: see [hub.Identity].
	Trace core.Trace
	// Link bounds the connection.
	Link link.Options
	// Log receives what operators should know; nil discards it.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	o.HubName = cmp.Or(o.HubName, DefaultHubName)
	o.FrameBytes = cmp.Or(max(0, o.FrameBytes), DefaultFrameBytes)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}
