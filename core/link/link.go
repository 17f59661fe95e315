package link

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/memory"
)

// Defaults of [Options].
const (
	DefaultQueueBytes   = 1 << 20
	DefaultWriteTimeout = 30 * time.Second
)

// drainTime is how long a graceful close may take to flush what is queued.
const drainTime = 2 * time.Second

// Options are the limits of a [Link]. The zero value means the defaults, without
// keepalive.
type Options struct {
	// QueueBytes is the maximum size of the messages that the transport has not taken yet.
	// 0 means [DefaultQueueBytes].
	QueueBytes int
	// WriteTimeout is how long one write may take before the connection is closed
	// as [Slow], or with a [Meter] how long the peer may take nothing of it. 0 means
	// [DefaultWriteTimeout].
	WriteTimeout time.Duration
	// PingEvery is how long the peer may be silent before it is pinged. PingTimeout is how
	// long the answer may take before the connection is closed as [Unresponsive]; 0 means
	// as long as PingEvery. Any message counts as an answer. Without PingEvery, or on a
	// Conn that is not a [Pinger], there is no keepalive.
	PingEvery, PingTimeout time.Duration
	// Memory counts what is queued, and a received message of bytes until it was processed;
	// nil counts nothing. It refuses nothing here.
	Memory *memory.Budget
	// Frames is told of each message that was received and queued, and closed when Run returns;
	// nil keeps none.
	Frames *frame.Ring
	// EOF, if set, keeps the link open for sending after the peer has ended its side
	// (io.EOF): only the reader loop ends, and calls EOF last. Otherwise io.EOF closes the
	// link as [Normal]. It is for transports with two separate directions, such as our
	// stdin and stdout.
	EOF func()
}

// withDefaults returns the options with defaults in place of zeros.
func (o Options) withDefaults() Options {
	if o.QueueBytes <= 0 {
		o.QueueBytes = DefaultQueueBytes
	}
	if o.WriteTimeout <= 0 {
		o.WriteTimeout = DefaultWriteTimeout
	}
	if o.PingTimeout <= 0 {
		o.PingTimeout = o.PingEvery
	}
	return o
}

// Link owns a [Conn]: it queues messages, runs both loops, checks that the peer is alive
// and keeps the first close reason. All methods may be called from any goroutine; Run is
// called exactly once.
type Link[In, Out any] struct {
	conn    Conn[In, Out]
	batcher Batcher[Out] // nil if conn is none
	pinger  Pinger       // nil without keepalive
	meter   Meter        // nil if conn is none
	opts    Options
	epoch   time.Time // zero of the link's clock

	done chan struct{}  // closed with the first reason
	wg   sync.WaitGroup // the writer loop, if it runs, and every armed alarm
	down sync.Once      // takes the socket down

	// lastReceive is when the reader loop last began to receive, or busy while it does
	// something else. It is only set if there is a pinger.
	lastReceive atomic.Int64

	mu      sync.Mutex
	reason  *Reason            // nil until closed
	wire    context.Context    //nolint:containedctx // the lifetime of the socket, which begins with Run
	cancel  context.CancelFunc // ends the context of the callbacks
	running bool
	cut     bool // nothing more may be written

	awake    bool      // the writer loop runs
	resting  bool      // it waits for work
	flushing bool      // a Flush writes instead of it
	held     bool      // what is queued waits for a Flush
	starts   int       // of the writer loop, since checkWrite last ended an idle one
	work     sync.Cond // tells the writer loop that there is work
	queue    batch[Out]
	queued   int          // bytes, queued or being written
	sending  memory.Share // those, and those that wait
	waiting  fifo.Queue[*waiter[Out]]
	drained  chan struct{} // closed once nothing is queued; nil while no Drain waits
	taken    batch[Out]    // what the writer loop writes; it owns it while it runs

	writing   int64 // when the write under way began; 0 if there is none
	moved     int64 // when checkWrite last saw that some of a write was taken
	written   int64 // what the meter said last
	unblocked int64 // when a slow write last ended

	slow, drain, silence alarm
}

// New returns a Link over conn, which belongs to the Link from then on. Messages may be
// queued at once; everything else begins with Run.
func New[In, Out any](conn Conn[In, Out], opts Options) *Link[In, Out] {
	l := &Link[In, Out]{
		conn:  conn,
		opts:  opts.withDefaults(),
		epoch: time.Now(),
		done:  make(chan struct{}),

		sending: memory.Of(opts.Memory, memory.Sending),
	}
	l.work.L = &l.mu
	l.batcher, _ = conn.(Batcher[Out])
	l.meter, _ = conn.(Meter)
	if l.opts.PingEvery > 0 {
		l.pinger, _ = conn.(Pinger)
	}
	return l
}

// Run runs the connection until it ends and returns the first close reason. By then the
// socket is closed, and both loops and any ping have ended.
//
// The reader loop calls receive with one message after the other; the context ends when
// the link closes. An error of receive closes the link, with that reason if it is a
// *[Reason], else as [Internal]. rejected is called likewise for messages that the
// transport refused; if it is nil, such a message closes the link with the cause of the
// [Reject].
//
// When ctx ends the link closes as [ShuttingDown], or with the cause of ctx if
// that is a *[Reason].
func (l *Link[In, Out]) Run(
	ctx context.Context,
	receive func(ctx context.Context, m In) error,
	rejected func(ctx context.Context, r *Reject) error,
) Reason {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	// Only Close wakes the Conn. If it saw the end of ctx, it would close before the queue
	// is flushed.
	l.wire = context.WithoutCancel(ctx)

	if l.opts.Frames != nil {
		inner = frame.Reading(inner)
		defer l.opts.Frames.Close()
	}
	l.start(cancel)
	stop := context.AfterFunc(ctx, func() {
		defer l.wg.Done()
		l.Close(endOf(ctx))
	})

	l.read(inner, receive, rejected)
	<-l.done
	if stop() {
		l.wg.Done()
	}
	l.wg.Wait()
	l.mu.Lock()
	l.sending.Release() // what was not flushed is dropped
	l.mu.Unlock()
	return *l.reason
}

// start marks the link as running, counts the watch over the context, and starts to write
// what was queued before.
func (l *Link[In, Out]) start(cancel context.CancelFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running {
		panic("link: Run called twice")
	}
	l.running = true
	l.cancel = cancel
	l.wg.Add(1)
	if l.reason != nil {
		l.endLocked() // closed before it began
		return
	}
	if l.pinger != nil {
		l.lastReceive.Store(l.now())
		l.armLocked(&l.silence, l.opts.PingEvery, l.keepAlive)
	}
	if len(l.queue.messages) > 0 {
		l.wakeLocked()
	}
}

// Done is closed as soon as there is a close reason. The socket may still be open then: it
// is closed when Run returns.
func (l *Link[In, Out]) Done() <-chan struct{} { return l.done }

// Reason returns why the link was closed, and the zero Reason until then.
func (l *Link[In, Out]) Reason() Reason {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reason == nil {
		return Reason{}
	}
	return *l.reason
}

// Queued returns how many bytes are queued and not yet taken by the transport.
func (l *Link[In, Out]) Queued() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queued
}

// now is the time since the link was created, never 0.
func (l *Link[In, Out]) now() int64 { return int64(time.Since(l.epoch)) + 1 }
