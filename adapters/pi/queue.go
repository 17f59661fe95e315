package pi

import (
	"fmt"
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
)

// mostQueued bounds in bytes what waits to be said in a session.
const mostQueued = 32 << 20

// room returns why nothing of that size can be queued in the session, or "".
func (ss *session) room(q queued) string {
	waiting := q.size()
	for _, other := range slices.Concat(ss.steering, ss.following) {
		waiting += other.size()
	}
	if waiting > mostQueued {
		return fmt.Sprintf("Too much waits to be said in session %s (max %d bytes)", ss.key.ID, mostQueued)
	}
	return ""
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
func (ss *session) queueChanged() { ss.tell(ss.queueFrame()) }

// queueFrame is the additional event queue_update (section 14), as later versions of
// pi have it.
func (ss *session) queueFrame() []byte {
	return ss.envelope.Event(128, func(b []byte) []byte {
		b = appendQueued(append(b, `{"type":"queue_update","steering":`...), ss.steering)
		return append(appendQueued(append(b, `,"followUp":`...), ss.following), '}')
	})
}

func appendQueued(dst []byte, all []queued) []byte {
	dst = append(dst, '[')
	for i, q := range all {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = wire.AppendString(dst, q.text)
	}
	return append(dst, ']')
}
