package frame

import (
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// Delivery is what one session of a connection has the peer told: one event after the other. One
// goroutine uses it; a nil Delivery does nothing.
type Delivery struct {
	ring *Ring

	// Guarded by the mutex of the ring.
	now  note   // the event that is being told; without a task, none is
	sent bool   // there was a frame for it
	held []note // events without a frame of their own: they are part of the next one
}

// Delivery returns a Delivery of the connection; nil for a nil Ring.
func (r *Ring) Delivery() *Delivery {
	if r == nil {
		return nil
	}
	return &Delivery{ring: r}
}

// Begin says that the peer is being told of an event from here on, until End.
func (d *Delivery) Begin(task core.TaskID, agent bool, e core.Event) {
	d.begin(note{task: task, agent: agent, kind: e.Body.Kind(), seq: e.Seq, end: e.End()})
}

// Repeats says that the event, a request, is sent with earlier turns.
func (d *Delivery) Repeats(earlier []core.Turn) {
	d.ring.mu.Lock()
	defer d.ring.mu.Unlock()
	d.now.shows = shownOf(earlier)
}

// End says that the peer was told: what is sent from here on is not that event. An event that the
// dialect refuses is kept without a frame.
func (d *Delivery) End() {
	if d == nil {
		return
	}
	d.ring.mu.Lock()
	defer d.ring.mu.Unlock()
	d.end()
}

// Refuse says that the dialect refuses the event that the peer is being told of. It comes before what is
// sent in its place.
func (d *Delivery) Refuse() {
	if d == nil {
		return
	}
	d.ring.mu.Lock()
	defer d.ring.mu.Unlock()
	d.now.refused = true
}

// end is End. Callers hold the mutex of the ring.
func (d *Delivery) end() {
	n, r := d.now, d.ring
	if n.task == "" {
		return
	}
	r.deliveries = slices.DeleteFunc(r.deliveries, func(other *Delivery) bool { return other == d })
	d.now = note{}
	if n.kind.Ends() {
		d.held = slices.DeleteFunc(d.held, func(h note) bool { return h.task == n.task })
	}
	if d.sent || n.kind == 0 {
		return
	}
	switch r.book.disposition(r.dialect, Out, n) {
	case core.Refused:
		r.add(&kept{at: time.Now(), direction: Out, notes: []note{n}})
	case core.Internal:
	default:
		if len(d.held) < maxNotes && !n.kind.Ends() {
			d.held = append(d.held, n)
		}
	}
}

// take returns what a frame says that is sent now. Callers hold the mutex of the ring.
func (d *Delivery) take() (notes []note) {
	d.sent = true
	d.held = slices.DeleteFunc(d.held, func(h note) bool {
		if h.task != d.now.task {
			return false
		}
		notes = append(notes, h)
		return true
	})
	return append(notes, d.now)
}

// BeginAnswer is Begin for the answer to a call of a tool in a task, which is private: see [Ring.Command].
func (d *Delivery) BeginAnswer(task core.TaskID) {
	d.begin(note{task: task, private: true})
}

func (d *Delivery) begin(n note) {
	d.ring.mu.Lock()
	defer d.ring.mu.Unlock()
	d.end()
	d.now, d.sent = n, false
	d.ring.deliveries = append(d.ring.deliveries, d)
}
