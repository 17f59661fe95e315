package pi

import (
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
)

// maxQueued bounds in bytes what waits to be said in a session.
const maxQueued = 32 << 20

// queue is what waits to be said in a session.
type queue struct{ steering, following []queued } // next, and after that

// queued is a user's message that waits for its turn.
type queued struct {
	text   string
	images []core.File
	from   core.Principal
}

// empty reports whether nothing waits.
func (q *queue) empty() bool { return len(q.steering)+len(q.following) == 0 }

// fits reports whether a message of that size can be queued.
func (q *queue) fits(next queued) bool {
	waiting := next.size()
	for _, other := range slices.Concat(q.steering, q.following) {
		waiting += other.size()
	}
	return waiting <= maxQueued
}

// next takes what is to be said next.
func (q *queue) next() (queued, bool) {
	for _, line := range []*[]queued{&q.steering, &q.following} {
		if len(*line) > 0 {
			first := (*line)[0]
			*line = (*line)[1:]
			return first, true
		}
	}
	return queued{}, false
}

func (q queued) size() int {
	n := len(q.text)
	for _, f := range q.images {
		n += len(f.Data)
	}
	return n
}

// queueChanged tells the subscribers of a session what waits to be said there: that
// a steer becomes a turn of its own is seen by it.
func (ss *session) queueChanged() { ss.readers.tell(ss.queue.frame(ss.envelope)) }

// frame returns the frame that tells what waits.
func (q *queue) frame(in render.Envelope) []byte {
	return in.Queue(texts(q.steering), texts(q.following))
}

func texts(all []queued) []string {
	list := make([]string, len(all))
	for i, q := range all {
		list[i] = q.text
	}
	return list
}
