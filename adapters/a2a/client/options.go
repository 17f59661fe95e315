package client

import (
	"cmp"
	"log/slog"
	"net/http"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/timer"
)

// Options are the options of [New]. Only URL is required.
type Options struct {
	// Name is the agent in the hub. What is remembered in Sessions is for it alone.
	Name string
	// URL is the base of the agent, whose card is at /.well-known/agent-card.json below it,
	// or the address of a card, which ends in .json.
	URL string
	// Hub is the id of the hub, whose own cards are refused; "" refuses none.
	Hub string
	// HTTP sends every request; nil is http.DefaultClient. Its Timeout must be zero, since
	// streams last as long as tasks; its CheckRedirect is not used.
	HTTP *http.Client
	// Token returns what the hub proves its identity with, as the security schemes of the card
	// want it. It is called for every request; nil or "" sends nothing.
	Token func() string
	// Log receives what goes wrong without ending a task; nil discards it.
	Log *slog.Logger
	// Count is called with the names of counters; nil counts nothing.
	Count func(name string)
	// Sessions keeps the contexts of threads across restarts; nil keeps them in memory only.
	Sessions core.RecordLog
	// Frames keeps the frames of tasks; nil keeps none.
	Frames *frame.Book
	// Grace is how long the remote may take to end a task that was cancelled; default 4 s,
	// which is less than the hub's own.
	Grace time.Duration
	// Refresh is how often the card is fetched again; default 5 min.
	Refresh time.Duration
	// Backoff is the first pause before another attempt and between two polls; it doubles up
	// to 20 times itself. Default 250 ms.
	Backoff time.Duration
	// Timeout bounds every request that is not a stream or a message; default 15 s.
	Timeout time.Duration
}

// pace returns that of what is done again.
func (o Options) pace() timer.Pace { return timer.Pace{First: o.Backoff, Most: 20 * o.Backoff} }

func (o Options) withDefaults() Options {
	if o.HTTP == nil {
		o.HTTP = http.DefaultClient
	}
	if o.Token == nil {
		o.Token = func() string { return "" }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Count == nil {
		o.Count = func(string) {}
	}
	o.Grace = cmp.Or(o.Grace, 4*time.Second)
	o.Refresh = cmp.Or(o.Refresh, 5*time.Minute)
	o.Backoff = cmp.Or(o.Backoff, 250*time.Millisecond)
	o.Timeout = cmp.Or(o.Timeout, 15*time.Second)
	return o
}

// The limits of what a remote may send.
const (
	maxCardBytes  = 1 << 20
	maxBodyBytes  = 16 << 20 // a task with all its artifacts
	maxEventBytes = 10 << 20
)
