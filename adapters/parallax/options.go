package parallax

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
)

// The defaults of [Options], beside those of the codec. The last is of the page's
// section on rate limiting.
const (
	DefaultHeartbeatInterval    = 10 * time.Second
	DefaultTaskTimeout          = 30 * time.Second
	DefaultMaxMessagesPerSecond = 100
)

// The WebSocket close codes of this dialect's own; the page defines none.
const (
	closeGoingAway       = 1001
	closeUnauthenticated = 4401
	closeRegisterTimeout = 4408
	closeDuplicate       = 4409
	closeUnhealthy       = 4410
)

// Options are what the carrier of a connection knows of it, and the numbers of
// the dialect. The zero Options are an agent without headers and the defaults.
type Options struct {
	// AgentID and Capabilities are what the headers X-Agent-Id and
	// X-Agent-Capabilities said.
	AgentID      string
	Capabilities []string
	// Principal is who the connection authenticated as; without an ID the agent's
	// id serves.
	Principal core.Principal
	// ConnectionID is what the header X-Connection-Id told the agent; "" for none.
	ConnectionID string

	// Secret is what an agent's messages are signed with; nil, and nothing of it, is for
	// agents that do not sign. RequireSignature refuses what is not signed.
	Secret           func(core.AgentID) []byte
	RequireSignature bool

	// RegisterTimeout is how long the agent has to register.
	RegisterTimeout time.Duration
	// HeartbeatInterval is told in registered, and an agent that has sent a
	// heartbeat is judged by it: unhealthy after two of silence, closed after three.
	HeartbeatInterval time.Duration
	// TaskTimeout is told in registered where the agent did not choose one, and is
	// how long what the agent asks of others may take unless it says.
	TaskTimeout time.Duration
	// KeepTasks lets what the agent asked of others run on when it has gone.
	KeepTasks bool
	// MaxMessageBytes bounds a message, in both directions.
	MaxMessageBytes int
	// MaxMessagesPerSecond is how fast the agent is read beyond a burst of as
	// many; task_progress does not count. Negative sets no limit.
	MaxMessagesPerSecond int
	// Traffic counts the messages of the connection; nil counts nothing.
	Traffic *Traffic
	// Link are the bounds of the connection.
	Link link.Options
	// Log gets what operators should know; nil discards it.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	o.RegisterTimeout = cmp.Or(o.RegisterTimeout, wire.DefaultRegisterTimeout)
	o.HeartbeatInterval = cmp.Or(o.HeartbeatInterval, DefaultHeartbeatInterval)
	o.TaskTimeout = cmp.Or(o.TaskTimeout, DefaultTaskTimeout)
	o.MaxMessageBytes = cmp.Or(o.MaxMessageBytes, wire.DefaultMaxMessageBytes)
	o.MaxMessagesPerSecond = cmp.Or(o.MaxMessagesPerSecond, DefaultMaxMessagesPerSecond)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}
