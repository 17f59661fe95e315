package recorder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/redact"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/timer"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// Options of a Recorder. All but Usage and Redact are required.
type Options struct {
	Journal journal.Journal
	// Usage stores token usage; nil stores none.
	Usage usage.Store
	// Redact returns what takes secrets out of the events before they are written; nil, or a
	// function that returns nil, writes them as they are.
	Redact func() *redact.Redactor
	// Find returns a task in memory, or nil. A task that is not recorded is in memory.
	Find func(core.TaskID) *task.Task
	// MaxLag is how far the journal may be behind: see [Recorder.Behind].
	MaxLag time.Duration
	// SegmentAge is how long consecutive text is collected for one record; zero is [journal.SegmentAge].
	SegmentAge time.Duration
	// Count adds one to a named counter.
	Count func(name string)
	Log   *slog.Logger
}

// Recorder writes tasks into the journal. It is safe for concurrent use.
type Recorder struct {
	opts   Options
	inbox  inbox
	lag    lag
	late   lateUsage
	health health
	cancel context.CancelFunc
	done   chan struct{}
	err    error
	// stopping is set by Stop: from then on failing writes are not repeated for long.
	stopping atomic.Bool
}

// The pace of a Recorder. A task that is answered within gatherTime takes one write.
const (
	gatherTime  = 2 * time.Millisecond   // how long it collects events before a write
	batch       = 512                    // records in a write
	batchBytes  = 4 << 20                // and bytes, since journals copy what they write
	retryPause  = 250 * time.Millisecond // between tries of a write
	stopTime    = 10 * time.Second       // how long Stop waits
	refusedTime = 2 * time.Second        // how long Stop waits for a journal that refuses
)

// Start starts a Recorder. Stop ends it.
func Start(o Options) *Recorder {
	ctx, cancel := context.WithCancel(context.Background())
	r := &Recorder{opts: o, inbox: newInbox(), cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		if r.err = r.run(ctx); errors.Is(r.err, journal.ErrFenced) {
			r.lag.never() // no end that waits for the journal may be shown
		}
	}()
	return r
}

// Record writes a task from its first event on.
func (r *Recorder) Record(t *task.Task) { r.Continue(t, 0) }

// Continue writes a task from after a sequence number: the journal has the events before. A task that
// has moved away and comes back is written once, also if the Recorder has not read yet that it moved.
func (r *Recorder) Continue(t *task.Task, after uint64) {
	t.Detach(&r.inbox, task.Recorder)
	t.Attach(&r.inbox, task.Recorder, nil, after)
}

// Behind reports whether the journal is behind by more than MaxLag.
func (r *Recorder) Behind() bool { return r.lag.exceeds(r.opts.MaxLag) }

// Stop writes what is left and ends the Recorder. It waits for at most 10 s, and 2 s for a
// journal that refuses. Its error says how many tasks are not recorded.
func (r *Recorder) Stop(unrecorded func() int) error {
	r.stopping.Store(true)
	close(r.inbox.stopped)
	limit := time.AfterFunc(stopTime, r.cancel) // a journal that hangs must not hang the hub
	<-r.done
	limit.Stop()
	r.cancel()
	if r.err != nil {
		return fmt.Errorf("writing up the journal: tasks that are lost, whole or in part, since they are not recorded: %d: %w", unrecorded(), r.err)
	}
	return nil
}

func (r *Recorder) run(ctx context.Context) error {
	segments := newForms(r.opts.Redact, cmp.Or(r.opts.SegmentAge, journal.SegmentAge))
	alarm, gather := time.NewTimer(time.Hour), time.NewTimer(time.Hour)
	defer alarm.Stop()
	defer gather.Stop()
	var due []journal.Record
	for {
		var wait time.Duration
		due, wait = segments.Due(due[:0], time.Now())
		if wait > 0 {
			alarm.Reset(wait)
		}
		if len(due) == 0 {
			if r.inbox.readers.Len() == 0 {
				r.lag.end()
			}
			p, err := r.inbox.next(ctx, alarm.C)
			switch {
			case errors.Is(err, errClosed):
				return r.write(ctx, segments.Flush(due))
			case err != nil:
				return err
			case p.Task == nil:
				if err := r.writeLateUsage(ctx); err != nil {
					return err
				}
				continue
			}
			due = segments.Add(due, p.Task.ID(), p.Events, time.Now())
			gather.Reset(gatherTime)
			select {
			case <-gather.C:
			case <-ctx.Done():
			}
			due = r.drain(due, segments)
		}
		r.lag.begin(due)
		slices.SortStableFunc(due, func(a, b journal.Record) int { return cmp.Compare(a.Task, b.Task) })
		if err := r.write(ctx, due); err != nil {
			return err
		}
	}
}

// drain adds what else is ready, so that a busy hub writes in batches.
func (r *Recorder) drain(due []journal.Record, segments *forms) []journal.Record {
	now := time.Now()
	for len(due) < batch {
		p, ok := r.inbox.poll()
		if !ok {
			break
		}
		due = segments.Add(due, p.Task.ID(), p.Events, now)
	}
	return due
}

// write writes records, and repeats that until it succeeds.
func (r *Recorder) write(ctx context.Context, records []journal.Record) error {
	if len(records) == 0 {
		return r.writeLateUsage(ctx)
	}
	if err := r.insist(ctx, func(ctx context.Context) error { return r.writeUsage(ctx, records) }); err != nil {
		return err
	}
	for len(records) > 0 {
		n := fitting(records)
		if err := r.insist(ctx, func(ctx context.Context) error { return r.opts.Journal.Append(ctx, records[:n]...) }); err != nil {
			return err
		}
		for i, rec := range records[:n] {
			if i+1 < n && records[i+1].Task == rec.Task {
				continue // the last record of a task is enough
			}
			if t := r.opts.Find(rec.Task); t != nil {
				t.SetRecorded(rec.Event.End())
			}
		}
		records = records[n:]
	}
	return r.writeLateUsage(ctx)
}

// fitting returns how many of the records go into one write, at least one.
func fitting(records []journal.Record) int {
	bytes := 0
	for i, rec := range records {
		if bytes += rec.Event.Size(); bytes > batchBytes && i > 0 {
			return i
		}
	}
	return len(records)
}

// writeUsage stores the usage in records. It comes before the journal, so that no recorded
// event lacks its usage.
func (r *Recorder) writeUsage(ctx context.Context, records []journal.Record) error {
	if r.opts.Usage == nil {
		return nil
	}
	var due []usage.Record
	for _, rec := range records {
		if u, ok := rec.Event.Body.(core.Usage); ok {
			due = append(due, r.opts.Find(rec.Task).UsageRecord(rec.Event, u))
		}
	}
	if len(due) == 0 {
		return nil
	}
	return r.opts.Usage.Append(ctx, due...)
}

// insist repeats a write until it succeeds, or the journal was taken over.
func (r *Recorder) insist(ctx context.Context, write func(context.Context) error) error {
	r.health.begin()
	defer r.health.end()
	for first := (time.Time{}); ; {
		err := write(ctx)
		if err == nil {
			if late := r.health.end(); !first.IsZero() || late {
				r.noteRefused(nil)
			}
			return nil
		}
		if first.IsZero() {
			first = time.Now()
		}
		r.opts.Count("journal.refused")
		if j, ok := r.opts.Journal.(journal.Replicated); !ok || !j.IsTemporary(err) {
			r.noteRefused(err)
		}
		if errors.Is(err, journal.ErrFenced) {
			return err
		}
		if r.stopping.Load() && time.Since(first) >= refusedTime {
			return err
		}
		if timer.Sleep(ctx, retryPause) != nil {
			return err
		}
	}
}
