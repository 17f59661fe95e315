package acp

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
)

// The defaults of [Options].
const (
	DefaultDeadline         = 30 * time.Second
	DefaultDelegateDeadline = time.Hour
	DefaultHubName          = "Dragoman"
)

// Options are the options of a session. The zero Options are an open hub with the
// defaults.
type Options struct {
	// Principal is the authenticated peer. Without an ID the hub is open, and the peer
	// states its own identity: see AgentID.
	Principal core.Principal
	// AgentID is the identity that the connection itself states, in X-Agent-Id or
	// ?agent_id=, or that of the principal. If it is empty, the from of the first envelope
	// is the identity. A later envelope with another from is not_authorized.
	AgentID core.AgentID
	// Peers is the state that the sessions of a hub share. It is required.
	Peers *Peers
	// HubName is the name of the hub in pong and capabilities.
	HubName string
	// MaxEnvelopeBytes bounds an envelope in either direction; 0 means
	// [wire.DefaultMaxEnvelopeBytes]. A longer one is refused as too_large, never cut.
	MaxEnvelopeBytes int
	// Deadline is how long a query may take that states no deadline; 0 means
	// [DefaultDeadline], as in the draft. DelegateDeadline is the same for a delegate, for
	// which the draft has no default; 0 means [DefaultDelegateDeadline].
	Deadline, DelegateDeadline time.Duration
	// KeepTasks lets every request of a peer run on when the peer has left, as a delegate
	// always does. GET then returns the answer to a POST that was cut off.
	KeepTasks bool
	// Trace is the trace context with which the connection was made: see [hub.Identity].
	Trace core.Trace
	// Link bounds the connection.
	Link link.Options
	// Log receives what operators should know; nil discards it.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	o.HubName = cmp.Or(o.HubName, DefaultHubName)
	o.MaxEnvelopeBytes = cmp.Or(max(0, o.MaxEnvelopeBytes), wire.DefaultMaxEnvelopeBytes)
	o.Deadline = cmp.Or(max(0, o.Deadline), DefaultDeadline)
	o.DelegateDeadline = cmp.Or(max(0, o.DelegateDeadline), DefaultDelegateDeadline)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}
