package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// recorder is the reader of all tasks that writes them into the journal. Tasks do
// not wait for it; what it has not written yet stays in memory.
type recorder struct {
	hub    *Hub
	sess   *Session
	lag    lag
	cancel context.CancelFunc
	done   chan struct{}
	err    error
	// stopping is set once the hub stops: then a journal that refuses is not asked for
	// long.
	stopping atomic.Bool
}

// The recorder's pace: how long it gathers what happens together, how much it
// hands over at a time, and how long it waits after the journal refused. A task
// that is asked and answered within the time to gather is one write.
const (
	recordGather = 2 * time.Millisecond
	recordBatch  = 512
	recordPause  = 250 * time.Millisecond
)

// How long a hub that stops waits for its journal: in all, and for one that refuses.
const (
	recordLast    = 10 * time.Second
	recordRefused = 2 * time.Second
)

var errStopped = errors.New("the recorder was stopped")

func startRecorder(h *Hub) *recorder {
	ctx, cancel := context.WithCancel(context.Background())
	r := &recorder{hub: h, sess: newSession(h, Identity{Principal: core.Principal{ID: "journal", Operator: true}}), cancel: cancel, done: make(chan struct{})}
	r.sess.records = true
	r.sess.WatchAll()
	go func() {
		defer close(r.done)
		r.err = r.run(ctx)
	}()
	return r
}

// stop lets the recorder write what there is, and ends it. Its error says how many
// tasks are not recorded.
func (r *recorder) stop() error {
	r.stopping.Store(true)
	r.sess.inbox.end(errStopped)
	limit := time.AfterFunc(recordLast, r.cancel) // a journal that hangs must not hang the hub
	<-r.done
	limit.Stop()
	r.cancel()
	if r.err != nil {
		return fmt.Errorf("writing up the journal: tasks that are lost, whole or in part, since they are not recorded: %d: %w", r.hub.unrecorded(), r.err)
	}
	return nil
}

func (r *recorder) run(ctx context.Context) error {
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
			if r.sess.inbox.isEmpty() {
				r.lag.end()
			}
			b, err := r.sess.next(ctx, alarm.C, nil)
			switch {
			case errors.Is(err, errStopped):
				return r.write(ctx, segments.Flush(due))
			case err != nil:
				return err
			case b.Task == nil:
				if err := r.writeLateUsage(ctx); err != nil {
					return err
				}
				continue
			}
			due = segments.Add(due, b.Task.id, b.Events, time.Now())
			gather.Reset(recordGather)
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
func (r *recorder) drain(due []journal.Record, segments *journal.Segmenter) []journal.Record {
	now := time.Now()
	for len(due) < recordBatch {
		b, reader, ok, _ := r.sess.inbox.pop()
		if !ok {
			break
		}
		if reader != nil {
			b, ok = reader.task.take(reader)
		}
		if ok && b.Task != nil {
			due = segments.Add(due, b.Task.id, b.Events, now)
		}
	}
	return due
}

// write hands records to the journal until it has them: it is the journal that
// waits, not the tasks.
func (r *recorder) write(ctx context.Context, records []journal.Record) error {
	if len(records) == 0 {
		return r.writeLateUsage(ctx)
	}
	for _, write := range []func(context.Context, []journal.Record) error{r.hub.recordUsage, r.hub.record} {
		if err := r.insist(ctx, func(ctx context.Context) error { return write(ctx, records) }); err != nil {
			return err
		}
	}
	for i, rec := range records {
		if i+1 < len(records) && records[i+1].Task == rec.Task {
			continue // the last of a run tells it all
		}
		r.hub.mu.Lock()
		t := r.hub.tasks[rec.Task]
		r.hub.mu.Unlock()
		if t != nil {
			t.noteRecorded(rec.Event.End())
		}
	}
	return r.writeLateUsage(ctx)
}

// insist tries until it is written.
func (r *recorder) insist(ctx context.Context, write func(context.Context) error) error {
	for first := (time.Time{}); ; {
		err := write(ctx)
		if err == nil {
			if !first.IsZero() {
				r.hub.noteRefused(nil)
			}
			return nil
		}
		if first.IsZero() {
			first = time.Now()
		}
		r.hub.Count("journal.refused")
		r.hub.noteRefused(err)
		if r.stopping.Load() && time.Since(first) >= recordRefused {
			return err
		}
		select {
		case <-time.After(recordPause):
		case <-ctx.Done():
			return err
		}
	}
}

func (h *Hub) record(ctx context.Context, records []journal.Record) error {
	return h.journal.Append(ctx, records...)
}
