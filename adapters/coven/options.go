package coven

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
)

// The defaults of [Options].
const (
	DefaultRegisterTimeout = 30 * time.Second
	DefaultOrphanGrace     = 2 * time.Second
	DefaultDeadline        = 600 * time.Second
	// DefaultMaxMessageBytes is what every gRPC library accepts unless told
	// otherwise; a larger message would end the stream of the agent.
	DefaultMaxMessageBytes = 4 << 20
	// DefaultMaxToolCalls is how many tools an agent may have called at a time.
	DefaultMaxToolCalls = 64
)

// Options are the settings of the hub's end. The zero value of each field stands
// for the default named beside it.
type Options struct {
	// ServerID names the hub in Welcome: the hub's own id.
	ServerID string
	// Principal is who the connection was established to be. One without an id is
	// who the agent says it is: the open hub, where the agent id decides.
	Principal core.Principal
	// DefaultMaxConcurrent is how many requests an agent gets at a time that does
	// not say, unless an operator sets how many it gets: 1, as its specification has it.
	DefaultMaxConcurrent int
	// MCPEndpoint is told in Welcome; "" tells agents that there is none.
	MCPEndpoint string
	// MCPToken makes the token with which the agent calls tools at the endpoint in
	// its own name; it is void once revoke was called. Nil for none.
	MCPToken func(*hub.Session) (token string, revoke func())
	// Secrets returns the environment that Welcome hands to an agent; nil for
	// none. They are never logged.
	Secrets func(core.AgentID) map[string]string

	// RegisterTimeout is how long a stream may take to register: 30 s.
	RegisterTimeout time.Duration
	// OrphanGrace is how long after session_orphaned, when nothing follows, the
	// request is taken to be lost: 2 s.
	OrphanGrace time.Duration
	// Deadline is how long what an agent asks for may take, if it does not say:
	// 600 s.
	Deadline time.Duration
	// KeepTasks lets what an agent asked by agent_ask run on when it has gone, as
	// what it delegated always does.
	KeepTasks bool
	// MaxMessageBytes bounds what is sent, encoded: 4 MiB.
	MaxMessageBytes int
	// MaxToolCalls bounds the tools that the agent has called and not yet heard
	// of: 64.
	MaxToolCalls int

	// Link bounds the connection. Keepalive is the business of HTTP/2.
	Link link.Options
	// Logger gets what operators should know, without payloads or secrets; nil
	// discards it.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	o.DefaultMaxConcurrent = max(o.DefaultMaxConcurrent, 1)
	o.RegisterTimeout = cmp.Or(o.RegisterTimeout, DefaultRegisterTimeout)
	o.OrphanGrace = cmp.Or(o.OrphanGrace, DefaultOrphanGrace)
	o.Deadline = cmp.Or(o.Deadline, DefaultDeadline)
	o.MaxMessageBytes = cmp.Or(o.MaxMessageBytes, DefaultMaxMessageBytes)
	o.MaxToolCalls = cmp.Or(o.MaxToolCalls, DefaultMaxToolCalls)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
