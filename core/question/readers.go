package question

import (
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/lru"
)

// AttendTime is how long somebody who has read the list of questions counts as present. Who
// shows people that list reads it more often: browsers let a page in the background work once a
// minute.
const AttendTime = 90 * time.Second

// mostReaders bounds the lists of questions that are remembered as read: beyond it whoever reads the most loses
// the oldest.
const mostReaders = 1024

// reader is a principal that reads the list of questions, or of those in a thread.
type reader struct {
	core.Principal
	thread core.ThreadID // "" for all
}

// newReaders returns those who read a list, by their id, their rights and the thread.
func newReaders() *lru.Cache[string, reader] {
	return lru.New(lru.Options[string, reader]{
		Count: mostReaders, Age: AttendTime,
		Owner: func(_ string, r reader) string { return r.Account() },
	})
}

// Attend notes that a principal reads the list of questions, with a thread that of [Book.List] for it: for
// [AttendTime] a question in the list waits for the principal, although no view shows it.
func (b *Book) Attend(p core.Principal, thread core.ThreadID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.readers.Put(p.ID+"\x00"+p.Rights()+"\x00"+string(thread), reader{p, thread})
}

// isAttended reports whether somebody who may answer the question reads a list that it is in. Callers hold mu.
func (b *Book) isAttended(q *pending) bool {
	for _, r := range b.readers.All() {
		if (r.thread == "" || q.isIn(r.thread)) && b.mayAnswer(r.Principal, q) {
			return true
		}
	}
	return false
}
