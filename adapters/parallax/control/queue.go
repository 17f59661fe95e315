package control

import (
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"
)

// mostAtOnce is how many deliveries are under way to one target: fewer than there are
// deliverers, so that one that never answers leaves some to the others.
const mostAtOnce = 8

// queue holds the deliveries that wait, the next to be due first. Several may take
// from it.
type queue struct {
	mu       sync.Mutex
	byDue    byDue
	under    map[string]int         // how many are under way, by target
	held     map[string][]*delivery // those that are due and have too many of theirs before them
	bytes    int
	finished bool
	wake     chan struct{} // holds one token when somebody should look again
}

func newQueue() queue {
	return queue{under: map[string]int{}, held: map[string][]*delivery{}, wake: make(chan struct{}, 1)}
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
	all := slices.Clone(q.byDue)
	for _, held := range q.held {
		all = append(all, held...)
	}
	return all
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

// pop takes the first delivery that is due to a target that may have one more, else
// returns how long to wait for the next: less than nothing where nobody should. Whoever
// has taken one calls done.
func (q *queue) pop(now time.Time) (*delivery, time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.byDue) > 0 {
		if wait := q.byDue[0].due.Sub(now); wait > 0 {
			return nil, q.patience(wait)
		}
		d := heap.Pop(&q.byDue).(*delivery)
		to := d.hook.target
		if q.under[to] == mostAtOnce {
			q.held[to] = append(q.held[to], d)
			continue
		}
		q.under[to]++
		q.bytes -= len(d.body)
		if len(q.byDue) > 0 {
			q.look() // another may wait for what comes now
		}
		return d, 0
	}
	return nil, q.patience(time.Hour)
}

// patience is how long to wait for what is due after a while. Callers hold mu.
func (q *queue) patience(wait time.Duration) time.Duration {
	if q.finished {
		return -1
	}
	return wait
}

// done notes that a delivery is under way no more, and lets the next to its target go.
func (q *queue) done(d *delivery) {
	to := d.hook.target
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.under[to]--; q.under[to] == 0 {
		delete(q.under, to)
	}
	held := q.held[to]
	if len(held) == 0 {
		return
	}
	heap.Push(&q.byDue, held[0])
	if q.held[to] = held[1:]; len(held) == 1 {
		delete(q.held, to)
	}
	q.look()
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
