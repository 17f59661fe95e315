package conversation

import (
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/lru"
)

// unread are the tasks of recent messages whose answer no stream has sent to its end.
// Some clients open the stream only after they have sent a message: they get what they
// missed as it was said, and not as history. It is safe for concurrent use.
type unread struct {
	mu    sync.Mutex
	tasks *lru.Cache[core.TaskID, struct{}]
}

// maxUnread bounds unread: the oldest make room.
const maxUnread = 10_000

func newUnread(keep time.Duration) *unread {
	return &unread{tasks: lru.New(lru.Options[core.TaskID, struct{}]{Count: maxUnread, Age: keep})}
}

// add notes the task of a message that was sent.
func (u *unread) add(task core.TaskID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.tasks.Put(task, struct{}{})
}

// remove notes that the answer was sent to its end.
func (u *unread) remove(task core.TaskID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.tasks.Remove(task)
}

// has reports whether the answer is still to be sent.
func (u *unread) has(task core.TaskID) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, ok := u.tasks.Get(task)
	return ok
}
