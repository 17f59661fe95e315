package webhook

import (
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"
)

// The bounds of a queue. maxPerTarget deliveries to one target are in flight at once:
// fewer than there are workers, so that a target that never answers leaves some for the
// others.
const (
	maxPerTarget  = 8
	maxQueueBytes = 64 << 20
)

// queue holds the deliveries that wait, by the time that they are due. It is safe for
// concurrent use.
type queue struct {
	mu       sync.Mutex
	byDue    byDue
	inFlight map[string]int         // deliveries, by target
	blocked  map[string][]*Delivery // due, while maxPerTarget to their target are in flight
	bytes    int
	finished bool
	wake     chan struct{} // holds one token for a worker that should look again
}

func newQueue() queue {
	return queue{inFlight: map[string]int{}, blocked: map[string][]*Delivery{}, wake: make(chan struct{}, 1)}
}

// push adds a delivery, and reports whether there was room.
func (q *queue) push(d *Delivery) bool {
	q.mu.Lock()
	room := q.bytes+len(d.Body) <= maxQueueBytes
	if room {
		q.bytes += len(d.Body)
		heap.Push(&q.byDue, d)
	}
	q.mu.Unlock()
	q.signal()
	return room
}

// finish makes next return nil instead of waiting for a delivery that is not due.
func (q *queue) finish() {
	q.mu.Lock()
	q.finished = true
	q.mu.Unlock()
	q.signal()
}

// waiting returns the deliveries in the queue.
func (q *queue) waiting() []*Delivery {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := slices.Clone(q.byDue)
	for _, blocked := range q.blocked {
		all = append(all, blocked...)
	}
	return all
}

// next waits for the next delivery that is due. It returns nil once ctx has ended, or the
// queue is finished and nothing is due. The caller must call done.
func (q *queue) next(ctx context.Context) *Delivery {
	for ctx.Err() == nil {
		d, wait := q.pop(time.Now())
		switch {
		case d != nil:
			return d
		case wait < 0:
			q.signal() // to the next worker
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

// pop removes the first delivery that is due to a target with fewer than maxPerTarget in
// flight, else it returns how long to wait, negative for not at all.
func (q *queue) pop(now time.Time) (*Delivery, time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	wait := time.Hour
	for len(q.byDue) > 0 {
		if left := q.byDue[0].due.Sub(now); left > 0 {
			wait = left
			break
		}
		d := heap.Pop(&q.byDue).(*Delivery)
		to := d.Target
		if q.inFlight[to] == maxPerTarget {
			q.blocked[to] = append(q.blocked[to], d)
			continue
		}
		q.inFlight[to]++
		q.bytes -= len(d.Body)
		if len(q.byDue) > 0 {
			q.signal() // another worker may take the next
		}
		return d, 0
	}
	if q.finished {
		return nil, -1
	}
	return nil, wait
}

// done ends a delivery that next returned, and unblocks the next to its target.
func (q *queue) done(d *Delivery) {
	to := d.Target
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.inFlight[to]--; q.inFlight[to] == 0 {
		delete(q.inFlight, to)
	}
	blocked := q.blocked[to]
	if len(blocked) == 0 {
		return
	}
	heap.Push(&q.byDue, blocked[0])
	if q.blocked[to] = blocked[1:]; len(blocked) == 1 {
		delete(q.blocked, to)
	}
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// byDue implements heap.Interface.
type byDue []*Delivery

func (h byDue) Len() int           { return len(h) }
func (h byDue) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h byDue) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byDue) Push(x any)        { *h = append(*h, x.(*Delivery)) }

// Pop implements heap.Interface.
func (h *byDue) Pop() any {
	last := len(*h) - 1
	d := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return d
}
