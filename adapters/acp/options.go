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

// Options are what a session needs to know of its connection. The zero Options are
// an open hub with the defaults.
type Options struct {
	// Principal is who authentication found the peer to be. Without an ID the hub
	// is open, and the peer is who it says: see AgentID.
	Principal core.Principal
	// AgentID is the identity that the connection itself stated, in X-Agent-Id or
	// ?agent_id=, or the one that belongs to the principal. Empty lets the from of
	// the first envelope decide. Either way another from later is not_authorized.
	AgentID core.AgentID
	// Peers is what the sessions of a hub share. Nil gives the session its own, so
	// that nothing reaches it from an earlier connection of the same peer.
	Peers *Peers
	// HubName is what the hub calls itself in pong and capabilities.
	HubName string
	// MaxEnvelopeBytes bounds an envelope in either direction; 0 means
	// [DefaultMaxEnvelopeBytes]. A longer one is refused as too_large, never cut.
	MaxEnvelopeBytes int
	// Deadline is how long a query may take that does not say; 0 means
	// [DefaultDeadline], as in the draft. DelegateDeadline is the same for a
	// delegate, for which the draft sets none; 0 means [DefaultDelegateDeadline].
	Deadline, DelegateDeadline time.Duration
	// KeepTasks lets all that a peer asked run on when it has gone, as a delegate
	// always does. The answer to a POST that was cut off is then among what GET tells.
	KeepTasks bool
	// FinishAfterEOF is for connections of two separate directions, such as our
	// stdin and stdout: when the peer has said all it wants to say, the session
	// goes on until everything it asked was answered.
	FinishAfterEOF bool
	// Link bounds the connection; EOF in it is set by the session.
	Link link.Options
	// Log gets what operators should know; nil discards it.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	o.HubName = cmp.Or(o.HubName, DefaultHubName)
	o.MaxEnvelopeBytes = cmp.Or(max(0, o.MaxEnvelopeBytes), wire.DefaultMaxEnvelopeBytes)
	o.Deadline = cmp.Or(max(0, o.Deadline), DefaultDeadline)
	o.DelegateDeadline = cmp.Or(max(0, o.DelegateDeadline), DefaultDelegateDeadline)
	if o.Peers == nil {
		o.Peers = NewPeers(PeersOptions{})
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}
