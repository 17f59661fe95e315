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
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// Options say what a Recorder writes where. All but Usage are required.
type Options struct {
	Journal journal.Journal
	// Usage remembers what was spent; nil for nothing that does.
	Usage usage.Store
	// Find returns a task that is in memory, as every task is that is not recorded, or
	// nil.
	Find func(core.TaskID) *task.Task
	// MaxLag is how far the journal may be behind: see [Recorder.Behind].
	MaxLag time.Duration
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
	// stopping is set once the hub stops: then a journal that refuses is not asked for
	// long.
	stopping atomic.Bool
}

// The pace of a Recorder: how long it gathers what happens together, how much it
// hands over at a time, and how long it waits after the journal refused. A task
// that is asked and answered within the time to gather is one write.
const (
	gatherTime  = 2 * time.Millisecond
	batch       = 512
	retryPause  = 250 * time.Millisecond
	stopTime    = 10 * time.Second // how long Stop waits in all,
	refusedTime = 2 * time.Second  // and for a journal that refuses
)

// Start starts a Recorder. Stop ends it.
func Start(o Options) *Recorder {
	ctx, cancel := context.WithCancel(context.Background())
	r := &Recorder{opts: o, inbox: newInbox(), cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = r.run(ctx)
	}()
	return r
}

// Record has all of a task written, from its first event on.
func (r *Recorder) Record(t *task.Task) { t.Attach(&r.inbox, task.Recorder, nil, 0) }

// Behind reports whether the journal is further behind what happens than it may be.
func (r *Recorder) Behind() bool { return r.lag.exceeds(r.opts.MaxLag) }

// Stop lets the Recorder write what there is, and ends it. It waits for at most 10 s, and
// for 2 s where the journal refuses. Its error says how many tasks are not recorded.
func (r *Recorder) Stop(unrecorded func() int) error {
	r.stopping.Store(true)
	r.inbox.close()
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
	segments := journal.NewSegmenter()
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
			if r.inbox.isEmpty() {
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

// drain takes in what else is ready, so that a busy hub writes in bulk.
func (r *Recorder) drain(due []journal.Record, segments *journal.Segmenter) []journal.Record {
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

// write hands records to the journal until it has them: it is the journal that
// waits, not the tasks.
func (r *Recorder) write(ctx context.Context, records []journal.Record) error {
	if len(records) == 0 {
		return r.writeLateUsage(ctx)
	}
	for _, write := range []func(context.Context, []journal.Record) error{r.writeUsage, r.append} {
		if err := r.insist(ctx, func(ctx context.Context) error { return write(ctx, records) }); err != nil {
			return err
		}
	}
	for i, rec := range records {
		if i+1 < len(records) && records[i+1].Task == rec.Task {
			continue // the last of a run tells it all
		}
		if t := r.opts.Find(rec.Task); t != nil {
			t.SetRecorded(rec.Event.End())
		}
	}
	return r.writeLateUsage(ctx)
}

func (r *Recorder) append(ctx context.Context, records []journal.Record) error {
	return r.opts.Journal.Append(ctx, records...)
}

// writeUsage hands what is spent in records to the store, before they go to the journal,
// so that the usage of what is recorded is recorded too.
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

// insist tries until it is written.
func (r *Recorder) insist(ctx context.Context, write func(context.Context) error) error {
	for first := (time.Time{}); ; {
		err := write(ctx)
		if err == nil {
			if !first.IsZero() {
				r.noteRefused(nil)
			}
			return nil
		}
		if first.IsZero() {
			first = time.Now()
		}
		r.opts.Count("journal.refused")
		r.noteRefused(err)
		if r.stopping.Load() && time.Since(first) >= refusedTime {
			return err
		}
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
			return err
		}
	}
}
