package coven

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
)

const (
	// registerTimeout is how long a stream may take to register.
	registerTimeout = 30 * time.Second
	// orphanGrace is how long after session_orphaned a request without further events fails.
	orphanGrace = 2 * time.Second
)

// Options are the settings of the hub's end. The zero value of each field means the
// default named beside it.
type Options struct {
	// Principal is the authenticated principal of the connection. One without an id
	// gets the agent id, as on an open hub.
	Principal core.Principal
	// DefaultMaxConcurrent is how many requests an agent gets at a time that does not
	// declare it, unless an operator sets it: 1, as in the specification.
	DefaultMaxConcurrent int
	// MCPEndpoint is sent in Welcome; "" for none.
	MCPEndpoint string
	// MCPToken issues the token with which the agent calls tools at the endpoint in its
	// own name; revoke invalidates it. Nil for none.
	MCPToken func(*hub.Session) (token string, revoke func())
	// Secrets returns the environment variables that Welcome sends to an agent; nil for
	// none. They are never logged.
	Secrets func(core.AgentID) map[string]string

	// Deadline is the default deadline of what an agent asks: 600 s.
	Deadline time.Duration
	// KeepTasks keeps the agent_ask tasks of an agent running when it disconnects.
	// What it delegated always keeps running.
	KeepTasks bool
	// MaxMessageBytes is the largest message that is sent, encoded: 4 MiB.
	MaxMessageBytes int
	// MaxToolCalls is how many tool calls of the agent may run at a time: 64.
	MaxToolCalls int

	// Link bounds the connection. HTTP/2 keeps it alive.
	Link link.Options
	// Logger gets what operators should know, without payloads or secrets; nil
	// discards it.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	o.DefaultMaxConcurrent = max(o.DefaultMaxConcurrent, 1)
	o.Deadline = cmp.Or(o.Deadline, wire.DefaultDeadline)
	o.MaxMessageBytes = cmp.Or(o.MaxMessageBytes, wire.DefaultMaxMessageBytes)
	o.MaxToolCalls = cmp.Or(o.MaxToolCalls, 64)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
