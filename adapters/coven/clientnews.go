package coven

import (
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// news are the messages of the latest time whose answer no stream has told to its
// end. Some clients open the stream only after they have sent a message: what they
// missed is told to them as it was said, and not as history. It is safe for
// concurrent use.
type news struct {
	keep time.Duration

	mu    sync.Mutex
	at    map[core.TaskID]time.Time
	order []core.TaskID // oldest first
}

// mostNews bounds news: the oldest make room.
const mostNews = 10_000

func newNews(keep time.Duration) *news { return &news{keep: keep, at: map[core.TaskID]time.Time{}} }

// open notes a message that was sent.
func (n *news) open(task core.TaskID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	for len(n.order) > 0 && (len(n.order) >= mostNews || now.Sub(n.at[n.order[0]]) > n.keep) {
		delete(n.at, n.order[0])
		n.order = n.order[1:]
	}
	n.at[task] = now
	n.order = append(n.order, task)
}

// told notes that the answer was told to its end.
func (n *news) told(task core.TaskID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.at[task]; ok {
		n.at[task] = time.Time{} // its place in the order goes with time
	}
}

// fresh reports whether the answer is still to be told.
func (n *news) fresh(task core.TaskID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Since(n.at[task]) <= n.keep
}
