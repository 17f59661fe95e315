package mcp

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// Name is the name of this door among the dialects.
const Name = "mcp"

// The defaults of [Options].
const (
	DefaultDeadline     = 600 * time.Second
	DefaultCallTimeout  = time.Hour
	DefaultMaxBodyBytes = 1_000_000
	DefaultMaxCalls     = 64
	DefaultMaxStreams   = 16
	DefaultPatience     = 30 * time.Second
	DefaultKeepAlive    = 15 * time.Second
)

// Options are the settings of the door. The zero value of each field stands for the
// default named beside it.
type Options struct {
	// Anonymous is who asks without a token. Without an ID nobody may.
	Anonymous core.Principal
	// Version is what the door says of the program.
	Version string
	// Deadline is how long what is asked without a token may take unless it says:
	// 600 s. With a token the session that it belongs to decides.
	Deadline time.Duration
	// CallTimeout is how long one call of a tool may take: 1 h.
	CallTimeout time.Duration
	// MaxBodyBytes bounds a message: 1,000,000.
	MaxBodyBytes int
	// MaxCalls is how many tools may run at a time for each token, and for all who
	// have none: 64.
	MaxCalls int
	// MaxStreams is how many streams of news each of them may hold: 16.
	MaxStreams int
	// Patience is how long an answer may take before a client that accepts a stream
	// gets one, with a sign of life in it every KeepAlive: 30 s and 15 s.
	Patience, KeepAlive time.Duration
	// Log gets what operators should know, without tokens or payloads; nil discards
	// it.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	o.Deadline = cmp.Or(max(0, o.Deadline), DefaultDeadline)
	o.CallTimeout = cmp.Or(max(0, o.CallTimeout), DefaultCallTimeout)
	o.MaxBodyBytes = cmp.Or(max(0, o.MaxBodyBytes), DefaultMaxBodyBytes)
	o.MaxCalls = cmp.Or(max(0, o.MaxCalls), DefaultMaxCalls)
	o.MaxStreams = cmp.Or(max(0, o.MaxStreams), DefaultMaxStreams)
	o.Patience = cmp.Or(max(0, o.Patience), DefaultPatience)
	o.KeepAlive = cmp.Or(max(0, o.KeepAlive), DefaultKeepAlive)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}
