package audit

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/lru"
	"github.com/dragoman-hub/dragoman/core/policy"
)

// Options of a Log. Only Store is required.
type Options struct {
	// Store keeps the lines, a record each. Nobody else writes to it.
	Store core.RecordLog
	// Hub is the id of the hub, the object of its start and stop.
	Hub string
	// Patience is how long Close waits for a store that refuses; zero means 2 s. It does not wait for one that was
	// taken over ([journal.ErrFenced]).
	Patience time.Duration
	// Unavailable, if set, reports whether the store can take nothing until others come back: then Close does
	// not wait for the line alone that says that the hub stops. It may be called concurrently.
	Unavailable func() bool
	// Redact takes secrets out of the names that callers choose; nil takes none.
	Redact func(text string) string
	// Count adds one to a named counter: audit.missing for every entry that was dropped,
	// audit.refused for every write that failed.
	Count func(name string)
	// Log is for operators; nil discards it.
	Log *slog.Logger
}

// Log is the auditor of a hub. It is safe for concurrent use.
type Log struct {
	opts  Options
	queue *fifo.Mailbox[Line]
	flush chan chan struct{} // of those who wait until all is written, which closes what they send
	stop  chan struct{}      // closed by Close
	done  chan struct{}      // closed when the writer has ended
	// ctx ends writes that hang.
	ctx    context.Context //nolint:containedctx // the lifetime of the log, which ends with Close
	cancel context.CancelFunc

	mu        sync.Mutex
	missing   missing
	refused   map[refusal]*refusals
	seen      *lru.Cache[visit, struct{}]
	unwritten uint64 // lines that were queued and are not stored
	failing   error  // the error of the last write
	closed    bool

	// seq and prev are the end of the chain. They belong to the writer.
	seq  uint64
	prev hash
}

var (
	_ policy.Auditor           = (*Log)(nil)
	_ policy.ConnectionAuditor = (*Log)(nil)
)

// missing is a run of entries that were dropped.
type missing struct {
	count uint64
	since time.Time
}

// visit is who comes from where. The same visit is written once in visitTime, because some
// dialects come again with every request.
type visit struct{ principal, dialect, from string }

// The pace and the bounds of a Log.
const (
	gatherTime      = 50 * time.Millisecond  // how long entries are collected before a write
	batchLines      = 256                    // lines in a write
	retryPause      = 250 * time.Millisecond // between tries of a write
	refusedTime     = 2 * time.Second        // see Options.Patience
	stopTime        = 10 * time.Second       // how long Close waits for one that hangs
	unavailableTime = time.Second            // how long the store has to be unavailable
	unavailableTick = 100 * time.Millisecond
	visitTime       = 10 * time.Minute
	visits          = 4096
	queueBytes      = 1 << 20 // of what waits to be written
)

// Open reads the store to the end of its chain, continues there and starts the writer. Close
// ends it.
func Open(ctx context.Context, o Options) (*Log, error) {
	o.Patience = cmp.Or(o.Patience, refusedTime)
	if o.Count == nil {
		o.Count = func(string) {}
	}
	if o.Redact == nil {
		o.Redact = func(text string) string { return text }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	l := &Log{
		opts: o, queue: fifo.NewMailbox(queueBytes, Line.size),
		flush: make(chan chan struct{}), stop: make(chan struct{}), done: make(chan struct{}),
		refused: map[refusal]*refusals{},
		seen:    lru.New(lru.Options[visit, struct{}]{Count: visits, Age: visitTime}),
	}
	end, err := l.end(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the audit: %w", err)
	}
	l.seq, l.prev = end.seq, end.prev
	l.ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if !end.clean { // the hub was killed or taken over
		l.add(Line{At: time.Now(), Act: ActMissing, Outcome: string(core.CodeInternal)})
	}
	l.add(Line{At: time.Now(), Act: ActStart, Object: name(o.Hub), Outcome: OK})
	go l.write()
	return l, nil
}

// Audit implements [policy.Auditor]. Of the refusals of one command of one principal with one
// outcome, those beyond 100 in a minute share a line with their number, which comes after the
// minute.
func (l *Log) Audit(e policy.Entry) {
	line := l.lineOf(e)
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Err == nil || !l.isFolded(line) {
		l.push(line)
	}
}

// Connected audits that the principal came in with a dialect, from an address with or without
// port; or that somebody was refused, with the error. For a refusal the principal is zero
// unless it is proven. Nothing of the credential is passed.
//
// The same principal in the same dialect from the same address is written once in 10 minutes.
// Refusals cost nothing to cause, so that they could drive all else out of the store: beyond
// 10 in a minute they share a line with their number, which comes after the minute.
func (l *Log) Connected(p core.Principal, dialect, from string, err error) {
	if at, e := netip.ParseAddrPort(from); e == nil {
		from = at.Addr().Unmap().String()
	}
	v := visit{name(p.ID), name(dialect), name(from)}
	line := Line{At: time.Now(), Principal: v.principal, Act: ActConnect, Object: v.from, Outcome: outcome(err)}
	if v.dialect != "" {
		line.Object = strings.TrimSuffix(v.dialect+" "+v.from, " ")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		if !l.isFolded(line) {
			l.push(line)
		}
		return
	}
	if _, again := l.seen.Get(v); again {
		return
	}
	l.seen.Put(v, struct{}{})
	l.push(line)
}

// Err returns why nothing can be written now; nil while the store takes the lines.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failing
}

// Close writes what is left and ends the Log; what is audited later is dropped. It waits for
// at most 10 s, and Options.Patience for a store that refuses. Its error says how many entries are lost;
// where that is the stop of the hub alone, and the store unavailable, it is logged instead.
func (l *Log) Close() error {
	l.mu.Lock()
	again := l.closed
	if !again {
		for kind, r := range l.refused {
			l.closeRefusals(kind, r)
		}
		l.push(Line{At: time.Now(), Act: ActStop, Object: name(l.opts.Hub), Outcome: OK})
		l.closed = true
		close(l.stop)
	}
	l.mu.Unlock()
	limit := time.AfterFunc(stopTime, l.cancel)
	gaveUp := l.awaitWriter()
	limit.Stop()
	l.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	lost := l.pending()
	if gaveUp && lost == 1 && !again {
		l.opts.Log.Warn("the audit lacks the stop of this hub: too few hubs are left to store it", "error", cmp.Or(l.failing, context.DeadlineExceeded))
		return nil
	}
	if lost > 0 && !again {
		return fmt.Errorf("writing the audit: entries that are lost: %d: %w", lost, cmp.Or(l.failing, context.DeadlineExceeded))
	}
	return nil
}

// pending is how many lines are not stored. Callers hold mu.
func (l *Log) pending() uint64 { return l.unwritten + l.missing.count }

// awaitWriter returns once the writer has ended. It reports whether it ended the writer, because the store is
// unavailable and only the last line waits.
func (l *Log) awaitWriter() (gaveUp bool) {
	if l.opts.Unavailable == nil {
		<-l.done
		return false
	}
	tick := time.NewTicker(unavailableTick)
	defer tick.Stop()
	for since := (time.Time{}); ; {
		select {
		case <-l.done:
			return gaveUp
		case <-tick.C:
		}
		l.mu.Lock()
		last := l.pending() <= 1
		l.mu.Unlock()
		switch {
		case !last || !l.opts.Unavailable():
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) >= unavailableTime:
			gaveUp = true
			l.cancel()
		}
	}
}

func (l *Log) add(line Line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.push(line)
}

// push queues a line, or counts it as missing. Callers hold mu.
func (l *Log) push(line Line) {
	if l.closed || l.pushMissing() && l.offer(line) {
		return
	}
	if l.missing.count == 0 {
		l.missing.since = line.At
		l.opts.Log.Error("the audit drops entries: it cannot be written as fast as they come", "error", l.failing)
	}
	l.missing.count++
	l.opts.Count("audit.missing")
}

// offer queues a line if there is room. Callers hold mu.
func (l *Log) offer(line Line) bool {
	queued := l.queue.Offer(line)
	if queued {
		l.unwritten++
	}
	return queued
}

// pushMissing queues the line of the entries that were dropped, if there are any and there is room. It
// reports whether none are left. Callers hold mu.
func (l *Log) pushMissing() bool {
	m := l.missing
	if m.count > 0 && l.offer(Line{At: m.since, Act: ActMissing, Count: m.count, Outcome: string(core.CodeOverloaded)}) {
		l.missing = missing{}
	}
	return l.missing.count == 0
}
