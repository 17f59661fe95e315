package pi

import (
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
)

// queue holds the messages that wait in a session: steering ones for the next turn,
// following ones for the turns after that.
type queue struct{ steering, following []userMessage }

// userMessage is a message of a user, who sent it, and in which trace.
type userMessage struct {
	text   string
	images []core.File
	from   core.Principal
	trace  core.Trace
}

// empty reports whether no message waits.
func (q *queue) empty() bool { return len(q.steering)+len(q.following) == 0 }

// fits reports whether there is room for another message among so many bytes.
func (q *queue) fits(next userMessage, most int) bool {
	waiting := next.size()
	for _, other := range slices.Concat(q.steering, q.following) {
		waiting += other.size()
	}
	return waiting <= most
}

// next removes and returns the first message.
func (q *queue) next() (userMessage, bool) {
	for _, line := range []*[]userMessage{&q.steering, &q.following} {
		if len(*line) > 0 {
			first := (*line)[0]
			*line = (*line)[1:]
			return first, true
		}
	}
	return userMessage{}, false
}

func (q userMessage) size() int {
	n := len(q.text)
	for _, f := range q.images {
		n += len(f.Data)
	}
	return n
}

// queueChanged tells the subscribers of a session which messages wait. It shows them that a
// steer becomes a turn of its own.
func (ss *session) queueChanged() { ss.subscribers.send(ss.queue.frame(ss.envelope)) }

// frame returns the event that tells which messages wait.
func (q *queue) frame(in render.Envelope) []byte {
	return in.Queue(texts(q.steering), texts(q.following))
}

func texts(all []userMessage) []string {
	list := make([]string, len(all))
	for i, q := range all {
		list[i] = q.text
	}
	return list
}
