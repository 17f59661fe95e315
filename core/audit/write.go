package audit

import (
	"context"
	"errors"
	"time"

	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/timer"
)

// write is the writer: it writes what is queued until Close.
func (l *Log) write() {
	defer close(l.done)
	for {
		var flushed chan struct{}
		select {
		case <-l.queue.Ready():
			select { // entries that come together share a write
			case <-time.After(gatherTime):
			case flushed = <-l.flush:
			case <-l.stop:
			}
		case flushed = <-l.flush:
		case <-l.stop:
			l.drain()
			return
		}
		if !l.drain() {
			return
		}
		if flushed != nil {
			close(flushed)
		}
	}
}

// drain writes until the queue is empty. It returns false if it gave up.
func (l *Log) drain() bool {
	for {
		l.mu.Lock()
		l.pushMissing()
		l.mu.Unlock()
		var batch []Line
		for len(batch) < batchLines {
			line, ok := l.queue.Poll()
			if !ok {
				break
			}
			batch = append(batch, line)
		}
		if len(batch) == 0 {
			return true
		}
		if !l.append(batch) {
			return false
		}
	}
}

// append chains lines and writes them. It repeats a write that fails, with the same text: readers
// know repeated lines.
func (l *Log) append(lines []Line) bool {
	records := make([][]byte, len(lines))
	for i, line := range lines {
		l.seq++
		line.Seq, line.Prev = l.seq, l.prev.String()
		records[i] = line.text()
		l.prev = hashOf(records[i])
	}
	for first := (time.Time{}); ; {
		err := l.opts.Store.Append(l.ctx, records...)
		if l.note(err); err == nil {
			break
		}
		if first.IsZero() {
			first = time.Now()
		}
		if l.isClosed() && (errors.Is(err, journal.ErrFenced) || time.Since(first) >= l.opts.Patience) {
			return false
		}
		if timer.Sleep(l.ctx, retryPause) != nil {
			return false
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unwritten -= uint64(len(lines))
	return true
}

// note notes the error of a write, or nil for its success. A failure and its end are logged
// once each.
func (l *Log) note(err error) {
	if err != nil {
		l.opts.Count("audit.refused")
	}
	l.mu.Lock()
	before := l.failing
	l.failing = err
	l.mu.Unlock()
	switch {
	case err != nil && before == nil && l.ctx.Err() == nil: // else Close says what is lost
		l.opts.Log.Error("the audit cannot be written: commands go on, and their entries wait in memory as long as there is room", "error", err)
	case err == nil && before != nil:
		l.opts.Log.Warn("the audit is written again")
	}
}

func (l *Log) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// settled waits until what was audited before is stored, at most for a while: a store that
// fails is read as it is.
func (l *Log) settled(ctx context.Context) error {
	wait, cancel := context.WithTimeout(ctx, retryPause)
	defer cancel()
	flushed := make(chan struct{})
	select {
	case l.flush <- flushed:
	case <-l.done:
		return nil
	case <-wait.Done():
		return ctx.Err()
	}
	select {
	case <-flushed:
	case <-l.done:
	case <-wait.Done():
	}
	return ctx.Err()
}
