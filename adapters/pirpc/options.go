package pirpc

import (
	"context"
	"log/slog"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pirpc/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/link"
)

// Name is the name of the dialect in settings, cards and events.
const Name = wire.Dialect

// Options configure an [Agent]. Only Dial is required.
type Options struct {
	// Dial starts a process, with env beside its variables and args after those of its command, and
	// returns its stdin and stdout: a line a message, a longer one than 10 MiB as a [link.Reject].
	// The process ends with ctx at the latest.
	Dial func(ctx context.Context, env []string, args ...string) (link.Conn[[]byte, []byte], error)
	// Dir is the working directory of the processes, for the log.
	Dir string
	// Warm is how many started processes are kept ready for new threads; at least 1.
	Warm int
	// MaxSessions is how many threads keep their process while they are idle; the one that is
	// idle for longest makes room. 0 means [DefaultMaxSessions].
	MaxSessions int
	// IdleAfter is how long a thread keeps its process. 0 means [DefaultIdleAfter].
	IdleAfter time.Duration
	// StartTimeout is how long a process may take until its first answer. 0 means
	// [DefaultStartTimeout].
	StartTimeout time.Duration
	// SessionDir is the directory in which pi keeps its sessions, which makes them survive their
	// process. It stays "" if the command has --no-session.
	SessionDir string
	// Sessions remembers the session of each thread over a restart; nil remembers them only as
	// long as the Agent lives. Several agents may share a log if each has an Agent of its own.
	Sessions core.RecordLog
	// Agent is the id of the agent, for its records.
	Agent core.AgentID
	// Lost is called with the reason before [Agent.Run] returns it, which ends processes first and may take a while:
	// nothing is to be assigned from then on. nil is not called.
	Lost func(why error)
	// Tools returns where the tools of the hub are, when a run begins; nil offers none to pi.
	Tools func() Tools
	// ExtensionDir is the directory for the extension with which pi uses them; "" takes a temporary
	// one for each run.
	ExtensionDir string
	// Count counts what was refused, folded or not understood, by name; nil counts nothing.
	Count func(name string)
	// Frames keeps the frames of tasks; nil keeps none.
	Frames *frame.Book
	// Log gets messages for operators; nil discards them.
	Log *slog.Logger
}

// Defaults of [Options].
const (
	DefaultMaxSessions  = 8
	DefaultIdleAfter    = 10 * time.Minute
	DefaultStartTimeout = time.Minute
)

func (o Options) withDefaults() Options {
	o.Warm = max(1, o.Warm)
	if o.MaxSessions <= 0 {
		o.MaxSessions = DefaultMaxSessions
	}
	if o.IdleAfter <= 0 {
		o.IdleAfter = DefaultIdleAfter
	}
	if o.StartTimeout <= 0 {
		o.StartTimeout = DefaultStartTimeout
	}
	if o.Count == nil {
		o.Count = func(string) {}
	}
	if o.Lost == nil {
		o.Lost = func(error) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// The names of what is counted.
const (
	countGarbage   = "pi-rpc.malformed"          // lines that are no JSON or no event
	countTooLong   = "pi-rpc.too_long"           // lines over the limit
	countStray     = "pi-rpc.stray"              // events and answers that belong to no task and no command
	countUnknown   = "pi-rpc.unknown_event"      // kinds of lines that the hub does not know
	countFolded    = "pi-rpc.folded.opened"      // requests of which more than the content is in the prompt
	countFile      = "pi-rpc.refused.file"       // attachments that are neither text nor an image
	countForeign   = "pi-rpc.foreign.too_large"  // events passed on by their name alone
	countReplaced  = "pi-rpc.text_replaced"      // messages whose end differs from what was streamed
	countDiverged  = "pi-rpc.retry_differs"      // tasks that failed since a retry said something else than was told
	countUnasked   = "pi-rpc.dialog.unasked"     // dialogs that nobody could be asked
	countUnread    = "pi-rpc.injection.unread"   // tasks that ended before pi had read all that was injected
	countLost      = "pi-rpc.session.lost"       // sessions that could not be continued
	countEvicted   = "pi-rpc.session.evicted"    // idle processes that made room
	countUnwritten = "pi-rpc.session.unrecorded" // sessions that were not written to their log
)
