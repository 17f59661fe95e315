package command

import (
	"cmp"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
)

// Options make an engine. A zero field takes its default.
type Options struct {
	// MaxPending bounds the commands of one connection that have no response yet; default
	// 100.
	MaxPending int
	// QueuePrompts queues a prompt that comes while another runs.
	QueuePrompts bool
	// PromptTimeout limits commands that agents or programs work on; default 4 h.
	// CommandTimeout limits those that only read or stop something; default 30 s. Commands
	// that change settings or create sessions have no limit.
	PromptTimeout, CommandTimeout time.Duration
	// DependencyTimeout is how long a command waits for each of its dependencies; default
	// 30 s.
	DependencyTimeout time.Duration
	// MaxInFlight bounds the commands in flight of all connections; default 10,000.
	MaxInFlight int
	// InFlightBytes bounds the frames of those that still need them; default 256 MiB. A
	// frame of at most InFlightBytes/MaxInFlight is admitted beyond it, and one of any size
	// while no other is held.
	InFlightBytes int
	// MaxOutcomes bounds the outcomes that are remembered by id, for each principal (for each
	// connection on an open hub); default 2000.
	MaxOutcomes int
	// OutcomeBytes bounds all outcomes that are remembered; default 64 MiB. Beyond it
	// the oldest are forgotten.
	OutcomeBytes int
	// KeyTTL is how long an idempotencyKey is remembered after its command; default
	// 600 s.
	KeyTTL time.Duration
	// Rates bound the commands that begin within a minute.
	Rates Rates
	// Journal keeps outcomes beyond the process; nil keeps none, and no history either. The
	// engine does not close it.
	Journal core.RecordLog
	// JournalPath is where the journal is, shown to operators only; "" is nowhere.
	JournalPath string
	// JournalQueueBytes bounds what waits for the journal; default 32 MiB. Beyond it the
	// journal misses commands, which is counted.
	JournalQueueBytes int
	// Log gets what operators should know; nil discards it.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	o.MaxPending = cmp.Or(o.MaxPending, 100)
	o.PromptTimeout = cmp.Or(o.PromptTimeout, 4*time.Hour)
	o.CommandTimeout = cmp.Or(o.CommandTimeout, 30*time.Second)
	o.DependencyTimeout = cmp.Or(o.DependencyTimeout, 30*time.Second)
	o.MaxInFlight = cmp.Or(o.MaxInFlight, 10_000)
	o.InFlightBytes = cmp.Or(o.InFlightBytes, 256<<20)
	o.MaxOutcomes = cmp.Or(o.MaxOutcomes, 2000)
	o.OutcomeBytes = cmp.Or(o.OutcomeBytes, 64<<20)
	o.KeyTTL = cmp.Or(o.KeyTTL, 600*time.Second)
	o.JournalQueueBytes = cmp.Or(o.JournalQueueBytes, 32<<20)
	o.Rates = o.Rates.withDefaults()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Host has the sessions that commands are for and the connections that receive lifecycle
// events. The engine calls it in its turns; it must not wait.
type Host interface {
	// Find returns the session of a name, or nil.
	Find(key Key) Session
	// IsParked reports whether the session of a name is on disk only, until a command names
	// it.
	IsParked(key Key) bool
	// Perform executes a command. For work that takes time it returns a pending outcome.
	Perform(x *Execution) Outcome
	// Admitted is called for each admitted command; ss is the session that it names, or nil.
	Admitted(x *Execution, ss Session)
	// Replayed is called after an earlier success was replayed to the client of x.
	Replayed(x *Execution)
	// Announce sends a lifecycle event of a command to the clients that subscribe to it.
	Announce(x *Execution, frame []byte)
	// Respond sends the response of a command to its client, as the Sink of that would.
	Respond(x *Execution, frame []byte)
	// Recovered is called for each success of an earlier process.
	Recovered(s Success)
	// Count adds 1 to the counter of a name.
	Count(what string)
}

// Session is a session that commands are for.
type Session interface {
	// Running reports whether a prompt is under way.
	Running() bool
	// Deleted reports whether the session was deleted, and the number of the first command for
	// which its name means a new session.
	Deleted() (until uint64, gone bool)
	// Succeeded returns the version of the session after a command has succeeded, which
	// raises it if the command mutates. It reports false if the session was deleted.
	Succeeded(mutates bool) (version int, ok bool)
	// Location returns the id of the session and the path of its conversation, "" if it has
	// no file.
	Location() (id, path string)
}

// Key names a session or its lane. Sessions of an authenticated principal are its own; on
// an open hub all clients share them.
type Key struct{ Scope, ID string }

// Client is the sender of the commands of one connection.
type Client struct {
	Scope     string    // whose sessions it uses: a principal's, or "" on an open hub
	Namespace Namespace // where its ids mean a command
	// Carrier is what an error text calls the connection.
	Carrier string
	Sink    Sink

	// Used in turns of the engine.
	Pending  int
	Attached bool // the connection is served
	ended    bool // no more input; the connection is closed after the last response
}

// Sink takes the frames for a client. It must not wait.
type Sink interface {
	// Send takes a frame.
	Send(frame []byte)
	// Close closes the connection after the frames that were sent.
	Close()
}

// Engine takes commands of clients and brings each to exactly one outcome. It is a monitor:
// it calls the host in turns, one at a time. Other code that touches the state of the host
// takes a turn with [Engine.Lock] and [Engine.Unlock].
type Engine struct {
	opts Options
	host Host
	// startedAt distinguishes the synthetic ids of this server from those of earlier ones.
	startedAt int64

	anonymous atomic.Uint64            // commands without an id
	rejected  [rejections]atomic.Int64 // by reason

	mu            sync.Mutex
	lanes         map[Key]*lane
	inFlight      map[*Execution]struct{} // admitted and not finished
	inFlightBytes int                     // of their frames
	duplicates    int                     // that wait for a command in flight
	replay        replayCache
	rates         rates
	admissions    uint64
	executed      int64 // commands with an outcome
	wakeQueue     fifo.Queue[*Execution]
	waking        bool
	draining      bool          // no more commands are admitted
	stopped       bool          // the hub has stopped
	idle          chan struct{} // closed once it has and no command is in flight

	journal Journal
}

// New returns an engine. The caller ends it with [Engine.Close].
func New(h Host, opts Options) *Engine {
	opts = opts.withDefaults()
	e := &Engine{
		opts: opts, host: h, startedAt: time.Now().UnixMilli(), lanes: map[Key]*lane{}, inFlight: map[*Execution]struct{}{},
		replay: newReplayCache(opts), rates: newRates(opts.Rates), idle: make(chan struct{}),
	}
	e.journal.start(e)
	return e
}

// Options returns the options with their defaults in place.
func (e *Engine) Options() Options { return e.opts }

// Lock begins a turn.
func (e *Engine) Lock() { e.mu.Lock() }

// Unlock ends a turn.
func (e *Engine) Unlock() { e.mu.Unlock() }

// Drain refuses all further commands.
func (e *Engine) Drain() { e.draining = true }

// Draining reports whether commands are refused.
func (e *Engine) Draining() bool { return e.draining }

// Stop notes that the hub has stopped. Commands in flight may still end.
func (e *Engine) Stop() {
	e.draining, e.stopped = true, true
	e.checkIdle()
}

// Stopped reports whether the hub has stopped.
func (e *Engine) Stopped() bool { return e.stopped }

// Idle is closed once the hub has stopped and no command is in flight.
func (e *Engine) Idle() <-chan struct{} { return e.idle }

func (e *Engine) checkIdle() {
	if e.stopped && len(e.inFlight) == 0 {
		select {
		case <-e.idle:
		default:
			close(e.idle)
		}
	}
}

// Journal returns the journal of commands.
func (e *Engine) Journal() *Journal { return &e.journal }

// Close ends the engine, after queued records were written to the journal. It takes a turn.
func (e *Engine) Close() {
	e.journal.close()
	e.mu.Lock()
	defer e.mu.Unlock()
	for x := range e.inFlight {
		x.stopTimers()
	}
}

// NextNumber returns the number of the next command to be admitted.
func (e *Engine) NextNumber() uint64 { return e.admissions + 1 }

// HasLane reports whether something runs or waits in the lane of a session.
func (e *Engine) HasLane(key Key) bool { return e.lanes[key] != nil }

// SessionsInFlight returns the sessions that commands in flight name.
func (e *Engine) SessionsInFlight() map[Key]bool {
	all := make(map[Key]bool, len(e.inFlight))
	for x := range e.inFlight {
		all[Key{x.client.Scope, x.Session}] = true
	}
	return all
}

// EndOfInput notes that the client sends nothing more: its connection is closed after the
// last response. It takes a turn.
func (e *Engine) EndOfInput(c *Client) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c.ended = true
	c.endIfDone()
}

// Leave notes that the connection of the client has ended.
func (e *Engine) Leave(c *Client) {
	c.Attached = false
	e.forget(c)
}

// answered notes that a command of the client has its response.
func (e *Engine) answered(c *Client) {
	c.Pending--
	e.forget(c)
	c.endIfDone()
}

// forget drops the ids of a connection once it and all its commands have ended.
func (e *Engine) forget(c *Client) {
	if !c.Attached && c.Pending == 0 && c.Namespace.Conn != 0 {
		e.replay.forgetNamespace(c.Namespace)
	}
}

func (c *Client) endIfDone() {
	if c.ended && c.Pending == 0 {
		c.Sink.Close()
	}
}

// Counts are the numbers of the engine.
type Counts struct {
	InFlight, InFlightBytes, Outcomes, OutcomeBytes, Keys, Namespaces, Lanes int
	// Admitted counts admitted commands, Overflown those refused because too many were in
	// flight, Executed those with an outcome.
	Admitted, Overflown uint64
	Executed            int64
	// Dependents counts commands that wait for one in flight.
	Dependents int
}

// Counts returns the numbers of the engine.
func (e *Engine) Counts() Counts {
	dependents := 0
	for x := range e.inFlight {
		dependents += len(x.tracked.dependents)
	}
	return Counts{
		InFlight: len(e.inFlight), InFlightBytes: e.inFlightBytes, Lanes: len(e.lanes), Dependents: dependents,
		Outcomes: e.replay.order.Len(), OutcomeBytes: e.replay.bytes, Keys: len(e.replay.keys), Namespaces: len(e.replay.namespaces),
		Admitted: e.admissions, Overflown: uint64(e.rejected[overInFlight].Load()), Executed: e.executed,
	}
}

// RateOf returns how many commands of a client began within the last minute.
func (e *Engine) RateOf(c *Client) int { return e.rates.used(c.Namespace) }
