package audit

import (
	"context"
	"time"

	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/timer"
)

// write is the writer: it writes what is queued until Close.
func (l *Log) write() {
	defer close(l.done)
	defer l.settle(0)
	for {
		select {
		case <-l.wake:
		case <-l.stop:
			l.drain()
			return
		}
		select { // entries that come together share a write
		case <-time.After(gatherTime):
		case <-l.hurry:
		case <-l.stop:
		}
		if !l.drain() {
			return
		}
	}
}

// drain writes until the queue is empty. It returns false if it gave up.
func (l *Log) drain() bool {
	for {
		var batch []Line
		l.mu.Lock()
		l.pushMissing()
		for line, ok := l.queue.Pop(); ok; line, ok = l.queue.Pop() {
			if batch = append(batch, line); len(batch) == batchLines {
				break
			}
		}
		l.mu.Unlock()
		if len(batch) == 0 {
			return true
		}
		if !l.append(batch) {
			return false
		}
	}
}

// append chains lines and writes them. The lines count in the queue until they are stored. It
// repeats a write that fails, with the same text: readers know repeated lines.
func (l *Log) append(lines []Line) bool {
	records, size := make([][]byte, len(lines)), 0
	for i, line := range lines {
		if line.Act != ActMissing || line.Count == 0 { // see pushMissing
			size += line.size()
		}
		l.seq++
		line.Seq, line.Prev = l.seq, l.prev.String()
		records[i] = line.text()
		l.prev = hashOf(records[i])
	}
	for first := (time.Time{}); ; {
		err := l.store.Append(l.ctx, records...)
		if l.note(err); err == nil {
			break
		}
		if first.IsZero() {
			first = time.Now()
		}
		if l.isClosed() && time.Since(first) >= l.opts.Patience {
			return false
		}
		if timer.Sleep(l.ctx, retryPause) != nil {
			return false
		}
	}
	l.mu.Lock()
	l.bytes -= size
	l.mu.Unlock()
	l.settle(uint64(len(lines)))
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

// settle notes that more lines are stored, and wakes who waits.
func (l *Log) settle(n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.written += n
	for _, w := range l.waiting {
		close(w)
	}
	l.waiting = nil
}

// settled waits until what was audited before is stored, at most for a while: a store that
// fails is read as it is.
func (l *Log) settled(ctx context.Context) error {
	wait, cancel := context.WithTimeout(ctx, retryPause)
	defer cancel()
	l.mu.Lock()
	until := l.added
	for l.written < until && l.failing == nil {
		w := make(chan struct{})
		l.waiting = append(l.waiting, w)
		l.mu.Unlock()
		fifo.Signal(l.hurry)
		select {
		case <-w:
		case <-l.done:
			return nil
		case <-wait.Done():
			return ctx.Err()
		}
		l.mu.Lock()
	}
	l.mu.Unlock()
	return nil
}
