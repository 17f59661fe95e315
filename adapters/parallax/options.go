package parallax

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
)

// The defaults of [Options], beside those of package wire. The rate is that of the page.
const (
	DefaultTaskTimeout          = 30 * time.Second
	DefaultMaxMessagesPerSecond = 100
)

// The WebSocket close codes of this dialect. The page defines none.
const (
	closeGoingAway       = 1001
	closeUnauthenticated = 4401
	closeRegisterTimeout = 4408
	closeDuplicate       = 4409
	closeUnhealthy       = 4410
)

// Options configure a connection. The zero Options are the defaults, for an agent without
// headers.
type Options struct {
	// AgentID and Capabilities are the headers X-Agent-Id and X-Agent-Capabilities.
	AgentID      string
	Capabilities []string
	// Principal is the one that the connection authenticated as. Its ID defaults to the
	// agent's.
	Principal core.Principal
	// ConnectionID is the header X-Connection-Id of the response; "" for none.
	ConnectionID string

	// Secret returns the secret that signs the messages of an agent, nil for an agent that
	// does not sign. A nil Secret is for none. RequireSignature refuses unsigned messages.
	Secret           func(core.AgentID) []byte
	RequireSignature bool

	// HeartbeatInterval is sent in registered. Once an agent has sent a heartbeat, it gets
	// nothing new after two intervals of silence and is closed after three.
	HeartbeatInterval time.Duration
	// TaskTimeout is sent in registered unless the agent chose one. It is also the default
	// deadline of what the agent requests.
	TaskTimeout time.Duration
	// KeepTasks keeps what the agent requested running when it disconnects.
	KeepTasks bool
	// MaxMessageBytes bounds a message, in both directions.
	MaxMessageBytes int
	// MaxMessagesPerSecond is the rate at which messages are read after a burst of as
	// many; task_progress does not count. Negative sets no limit.
	MaxMessagesPerSecond int
	// Traffic counts the messages of the connection; nil counts nothing.
	Traffic *Traffic
	// Trace is the trace context with which the connection was made: see [hub.Identity].
	Trace core.Trace
	// Link bounds the connection.
	Link link.Options
	// Log gets messages for operators; nil discards them.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	o.HeartbeatInterval = cmp.Or(o.HeartbeatInterval, wire.DefaultHeartbeatInterval)
	o.TaskTimeout = cmp.Or(o.TaskTimeout, DefaultTaskTimeout)
	o.MaxMessageBytes = cmp.Or(o.MaxMessageBytes, wire.DefaultMaxMessageBytes)
	o.MaxMessagesPerSecond = cmp.Or(o.MaxMessagesPerSecond, DefaultMaxMessagesPerSecond)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}
