package command

import (
	"cmp"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// Options make an engine. A zero field takes its default.
type Options struct {
	// MaxPending is how many commands of one connection may wait for their response;
	// default 100.
	MaxPending int
	// QueuePrompts lets a prompt that comes while another runs wait its turn.
	QueuePrompts bool
	// PromptTimeout is how long a command may take that agents or programs work on; default
	// 300 s. CommandTimeout is how long one may take that only looks, or stops something;
	// default 30 s. What changes settings or makes sessions has no limit.
	PromptTimeout, CommandTimeout time.Duration
	// DependencyTimeout is how long a command waits for each other that it depends on;
	// default 30 s.
	DependencyTimeout time.Duration
	// MaxInFlight bounds the commands that are under way, of all connections; default
	// 10,000.
	MaxInFlight int
	// InFlightBytes bounds the frames of those that still need them; default 256 MiB.
	// Frames of its MaxInFlight-th part are admitted beyond it, and one alone of any size.
	InFlightBytes int
	// MaxOutcomes is how many outcomes are remembered by id, for each principal (for
	// each connection on an open hub); default 2000.
	MaxOutcomes int
	// OutcomeBytes bounds all outcomes that are remembered; default 64 MiB. Beyond it
	// the oldest are forgotten.
	OutcomeBytes int
	// KeyTTL is how long an idempotencyKey is remembered after its command; default
	// 600 s.
	KeyTTL time.Duration
	// Rates bound how many commands begin within a minute.
	Rates Rates
	// Journal keeps what came of commands beyond the process, and makes their history;
	// nil keeps nothing. The engine does not close it.
	Journal core.RecordLog
	// JournalPath says where the journal is, to operators alone; "" is nowhere.
	JournalPath string
	// JournalQueueBytes bounds what waits for the journal; default 32 MiB. Beyond it the
	// journal misses commands, which is counted.
	JournalQueueBytes int
	// Log gets what operators should know.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	o.MaxPending = cmp.Or(o.MaxPending, 100)
	o.PromptTimeout = cmp.Or(o.PromptTimeout, 300*time.Second)
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

// Host has the sessions that commands are for, and the connections that are told of
// them. The engine calls it in its turns; it does not wait.
type Host interface {
	// Find returns the session of a name, or nil.
	Find(key Key) Session
	// IsParked reports whether the session of a name is out of memory, and comes back when
	// a command names it.
	IsParked(key Key) bool
	// Perform does what a command asks for, as far as that takes no time.
	Perform(x *Execution) Outcome
	// Admitted is told of a command that counts from now on; ss is the session that it
	// names, or nil.
	Admitted(x *Execution, ss Session)
	// Replayed is told of a command whose earlier success was told to its client.
	Replayed(x *Execution)
	// Announce tells the clients that get it a lifecycle event of a command.
	Announce(x *Execution, frame []byte)
	// Recovered is told of a success that an earlier process had.
	Recovered(s Success)
	// Count counts something by its name.
	Count(what string)
}

// Session is what the engine must know of the session that a command is for.
type Session interface {
	// Running reports whether a prompt is under way.
	Running() bool
	// Deleted reports whether the session was deleted, and from which number on commands that
	// name it mean another one.
	Deleted() (until uint64, gone bool)
	// Succeeded returns the version of the session behind a success, which raises it if
	// that has changed something. It reports false of one that was deleted.
	Succeeded(mutates bool) (version int, ok bool)
	// Location returns the id of the session and where its conversation is kept, "" where it
	// is not.
	Location() (id, path string)
}

// Key names a session or its lane. Sessions of an authenticated principal
// are its own; on an open hub all clients share them.
type Key struct{ Scope, ID string }

// Client is who sends commands over one connection. The connection has one.
type Client struct {
	Scope     string    // whose sessions it uses: a principal's, or "" on an open hub
	Namespace Namespace // where its ids mean a command
	// Carrier is what a refusal calls the connection.
	Carrier string
	Sink    Sink

	// In turns of the engine.
	Pending  int
	Attached bool // the connection is served
	ended    bool // nothing more comes in; the connection ends with the last response
}

// Sink takes what a client is told. It does not wait.
type Sink interface {
	// Send takes a frame.
	Send(frame []byte)
	// Close closes the connection behind what it was told.
	Close()
}

// Engine takes commands of clients and brings each to exactly one outcome. It is a
// monitor: what a host does for commands happens in turns, one at a time. Whoever else
// touches what a host may touch takes a turn himself, with lock and unlock.
type Engine struct {
	opts Options
	host Host
	// begun tells the synthetic ids of this server from those of earlier ones.
	startedAt int64

	anonymous atomic.Uint64            // commands without an id
	rejected  [rejections]atomic.Int64 // by reason

	mu            sync.Mutex
	lanes         map[Key]*lane
	inFlight      map[*Execution]struct{} // admitted and not finished
	inFlightBytes int                     // of their frames
	duplicates    int                     // that wait for one of these
	replay        replayCache
	rates         rates
	admissions    uint64
	executed      int64 // commands that have their outcome
	wakeQueue     []*Execution
	waking        bool
	draining      bool          // no more commands are admitted
	stopped       bool          // the hub has stopped
	idle          chan struct{} // closed once it has and no command is in flight

	journal Journal
}

// New returns an engine. The caller ends it with close.
func New(h Host, opts Options) *Engine {
	opts = opts.withDefaults()
	e := &Engine{
		opts: opts, host: h, startedAt: time.Now().UnixMilli(), lanes: map[Key]*lane{}, inFlight: map[*Execution]struct{}{},
		replay: newReplayCache(opts), rates: newRates(opts.Rates), idle: make(chan struct{}),
	}
	e.journal.start(e)
	return e
}

// Options returns the options, with the defaults of those that were not set.
func (e *Engine) Options() Options { return e.opts }

// Lock begins a turn.
func (e *Engine) Lock() { e.mu.Lock() }

// Unlock ends a turn.
func (e *Engine) Unlock() { e.mu.Unlock() }

// Drain lets no more commands in.
func (e *Engine) Drain() { e.draining = true }

// Draining reports whether no more commands are let in.
func (e *Engine) Draining() bool { return e.draining }

// Stop notes that the hub has stopped: what is in flight may still end.
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

// Journal is the journal of commands.
func (e *Engine) Journal() *Journal { return &e.journal }

// Close ends the engine: what is on its way into the journal is still written. It takes a
// turn.
func (e *Engine) Close() {
	e.journal.close()
	e.mu.Lock()
	defer e.mu.Unlock()
	for x := range e.inFlight {
		x.stopTimers()
	}
}

// NextNumber is the number that the next command will have.
func (e *Engine) NextNumber() uint64 { return e.admissions + 1 }

// HasLane reports whether the lane of a session has turns.
func (e *Engine) HasLane(key Key) bool { return e.lanes[key] != nil }

// SessionsInFlight are the sessions that commands in flight name.
func (e *Engine) SessionsInFlight() map[Key]bool {
	all := make(map[Key]bool, len(e.inFlight))
	for x := range e.inFlight {
		all[Key{x.client.Scope, x.Session}] = true
	}
	return all
}

// EndOfInput notes that nothing more comes from the client: its connection ends with the
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

// answered notes that a command has its response.
func (e *Engine) answered(c *Client) {
	c.Pending--
	e.forget(c)
	c.endIfDone()
}

// forget lets go of the ids of a connection that has ended with all its commands.
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
	// Admitted is how many commands were admitted, Overflown how many were refused
	// because too many were in flight, Executed how many have their outcome.
	Admitted, Overflown uint64
	Executed            int64
	// Dependents is how many wait for a command in flight.
	Dependents int
}

// Counts returns the numbers of the engine.
func (e *Engine) Counts() Counts {
	dependents := 0
	for x := range e.inFlight {
		dependents += len(x.tracked.dependents)
	}
	return Counts{
		Dependents: dependents, InFlight: len(e.inFlight), InFlightBytes: e.inFlightBytes, Namespaces: len(e.replay.namespaces), Outcomes: e.replay.order.Len(), OutcomeBytes: e.replay.bytes, Keys: len(e.replay.keys),
		Lanes: len(e.lanes), Admitted: e.admissions, Overflown: uint64(e.rejected[overInFlight].Load()), Executed: e.executed,
	}
}

// RateOf returns how many commands of a client began within the last minute.
func (e *Engine) RateOf(c *Client) int { return e.rates.used(c.Namespace) }
