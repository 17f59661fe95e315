package control

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// queue holds the deliveries that wait, the next to be due first. Several may take
// from it.
type queue struct {
	mu       sync.Mutex
	byDue    byDue
	bytes    int
	finished bool
	wake     chan struct{} // holds one token when somebody should look again
}

// push adds a delivery, or reports that there is no room for it.
func (q *queue) push(d *delivery) bool {
	q.mu.Lock()
	room := q.bytes+len(d.body) <= mostBytes
	if room {
		q.bytes += len(d.body)
		heap.Push(&q.byDue, d)
	}
	q.mu.Unlock()
	q.look()
	return room
}

// finish ends the waiting for what is not due yet.
func (q *queue) finish() {
	q.mu.Lock()
	q.finished = true
	q.mu.Unlock()
	q.look()
}

// rest is what still waits.
func (q *queue) rest() []*delivery {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.byDue
}

// next waits for the next delivery that is due; nil once ctx has ended, or the queue is
// finished and nothing is due.
func (q *queue) next(ctx context.Context) *delivery {
	for ctx.Err() == nil {
		d, wait := q.pop(time.Now())
		switch {
		case d != nil:
			return d
		case wait < 0:
			q.look() // so does another
			return nil
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-q.wake:
		case <-ctx.Done():
		}
		t.Stop()
	}
	return nil
}

// pop takes the first delivery if it is due, else returns how long to wait for it: less
// than nothing where nobody should.
func (q *queue) pop(now time.Time) (*delivery, time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	wait := time.Hour
	if len(q.byDue) > 0 {
		wait = q.byDue[0].due.Sub(now)
	}
	switch {
	case wait > 0 && q.finished:
		return nil, -1
	case wait > 0:
		return nil, wait
	}
	d := heap.Pop(&q.byDue).(*delivery)
	q.bytes -= len(d.body)
	if len(q.byDue) > 0 {
		q.look() // another may wait for what comes now
	}
	return d, 0
}

func (q *queue) look() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// byDue implements heap.Interface.
type byDue []*delivery

func (h byDue) Len() int           { return len(h) }
func (h byDue) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h byDue) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byDue) Push(x any)        { *h = append(*h, x.(*delivery)) }

// Pop implements heap.Interface.
func (h *byDue) Pop() any {
	last := len(*h) - 1
	d := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return d
}
