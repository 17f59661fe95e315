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

// mostReaders bounds the principals that read the list.
const mostReaders = 1024

// newReaders returns the principals that read the list of questions, by their id and rights.
func newReaders() *lru.Cache[string, core.Principal] {
	return lru.New(lru.Options[string, core.Principal]{Count: mostReaders, Age: AttendTime})
}

// Attend notes that a principal reads the list of questions: for [AttendTime] a question that it
// may answer waits for it, although no view shows the question.
func (b *Book) Attend(p core.Principal) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.readers.Put(p.ID+"\x00"+p.Rights(), p)
}

// isAttended reports whether somebody who may answer the question reads the list. Callers hold mu.
func (b *Book) isAttended(q *pending) bool {
	for _, p := range b.readers.All() {
		if b.mayAnswer(p, q) {
			return true
		}
	}
	return false
}
