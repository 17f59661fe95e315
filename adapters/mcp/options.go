package mcp

import (
	"cmp"
	"log/slog"
	"net/http"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// Name is the name of this adapter among the dialects.
const Name = wire.Dialect

// Defaults of [Options].
const (
	DefaultDeadline     = 600 * time.Second
	DefaultCallTimeout  = time.Hour
	DefaultMaxBodyBytes = 1_000_000
	DefaultMaxCalls     = 64
	DefaultMaxStreams   = 16
	DefaultStreamAfter  = 30 * time.Second
	DefaultKeepAlive    = 15 * time.Second
	DefaultTaskAfter    = 2 * time.Second
	DefaultMaxTasks     = 256
)

// Options are the settings of a Server. A zero field means its default.
type Options struct {
	// Anonymous is the principal of callers without a token. Without an ID they are refused.
	Anonymous core.Principal
	// Authenticate returns the principal of a request whose token is none that the server has
	// issued; nil refuses those. A token in the path stands in Authorization.
	Authenticate func(*http.Request) (core.Principal, error)
	// Judged is called once for each request, with its principal or with why it has none; nil is
	// not called.
	Judged func(r *http.Request, p core.Principal, err error)
	// Endpoint is the URL at which clients reach the server; by default it is that of each
	// request.
	Endpoint string
	// Version is the version of the program, for clients.
	Version string
	// Deadline is the default deadline of tasks from callers without a token; default
	// 600 s. With a token, that of its session applies.
	Deadline time.Duration
	// CallTimeout is how long a tool call may take; default 1 h.
	CallTimeout time.Duration
	// MaxBodyBytes is the maximum size of a message; default 1,000,000.
	MaxBodyBytes int
	// MaxCalls is the maximum number of running tool calls for each token, and for all
	// callers without one; default 64.
	MaxCalls int
	// MaxStreams is the maximum number of notification streams, counted likewise; default 16.
	MaxStreams int
	// StreamAfter is how long an answer may take before a client that accepts a stream gets
	// one, with a comment every KeepAlive; defaults 30 s and 15 s.
	StreamAfter, KeepAlive time.Duration
	// TaskAfter is how long agent_ask may take before a client with the tasks extension gets
	// a task instead of the answer; default 2 s.
	TaskAfter time.Duration
	// MaxTasks is the maximum number of running tasks that clients follow, and of calls that
	// wait for a client to return with an answer of its user, counted as MaxCalls is;
	// default 256. Beyond it calls are answered as for clients that can do neither.
	MaxTasks int
	// Forward has a request of a principal answered by another hub of the cluster, unless it has
	// come from one: then it reports false. It is nil for a hub alone.
	Forward func(w http.ResponseWriter, r *http.Request, p core.Principal, hub string) bool
	// Log gets messages for operators, without tokens or payloads; nil discards them.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	o.Deadline = cmp.Or(max(0, o.Deadline), DefaultDeadline)
	o.CallTimeout = cmp.Or(max(0, o.CallTimeout), DefaultCallTimeout)
	o.MaxBodyBytes = cmp.Or(max(0, o.MaxBodyBytes), DefaultMaxBodyBytes)
	o.MaxCalls = cmp.Or(max(0, o.MaxCalls), DefaultMaxCalls)
	o.MaxStreams = cmp.Or(max(0, o.MaxStreams), DefaultMaxStreams)
	o.StreamAfter = cmp.Or(max(0, o.StreamAfter), DefaultStreamAfter)
	o.KeepAlive = cmp.Or(max(0, o.KeepAlive), DefaultKeepAlive)
	o.TaskAfter = cmp.Or(max(0, o.TaskAfter), DefaultTaskAfter)
	o.MaxTasks = cmp.Or(max(0, o.MaxTasks), DefaultMaxTasks)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}
