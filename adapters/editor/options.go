package editor

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
)

// Dialect is the name of the dialect in cards, principals and events.
const Dialect = wire.Dialect

// Path is where the hub serves editors over WebSocket. The query names the agent: ?agent=ADDRESS.
const Path = "/ws/editor"

// The defaults of [Options].
const (
	DefaultDeadline        = 4 * time.Hour
	DefaultMaxMessageBytes = 10 << 20
)

// Options configure a connection. Agent is required; the zero value of each other field means
// its default.
type Options struct {
	// Agent is who answers prompts.
	Agent core.Address
	// Principal is who the editor authenticated as; default "editor".
	Principal core.Principal
	// Deadline is how long a prompt may take.
	Deadline time.Duration
	// DropTasks cancels what runs when the editor disconnects. Otherwise it runs on, and
	// session/load shows it.
	DropTasks bool
	// MaxMessageBytes bounds a message, in both directions.
	MaxMessageBytes int
	// Version is that of the program.
	Version string
	// Trace is the trace context with which the connection was made: see [hub.Identity].
	Trace core.Trace
	// Link bounds the connection.
	Link link.Options
	// Log gets messages for operators; nil discards them.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	o.Principal.ID = cmp.Or(o.Principal.ID, Dialect)
	o.Principal.Dialect = cmp.Or(o.Principal.Dialect, Dialect)
	o.Deadline = cmp.Or(o.Deadline, DefaultDeadline)
	o.MaxMessageBytes = cmp.Or(o.MaxMessageBytes, DefaultMaxMessageBytes)
	o.Version = cmp.Or(o.Version, "dev")
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}
