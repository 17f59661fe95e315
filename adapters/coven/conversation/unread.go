package conversation

import (
	"context"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/lru"
	"github.com/dragoman-hub/dragoman/core/rpc"
)

// unread holds the tasks of recent messages whose answer no stream has sent completely.
// Some clients open the stream only after they have sent a message: they get the answer
// as live events, not as history. It is safe for concurrent use.
type unread struct {
	mu    sync.Mutex
	tasks *lru.Cache[core.TaskID, struct{}]
}

// maxUnread is how many tasks unread holds: the oldest are evicted.
const maxUnread = 10_000

func newUnread(keep time.Duration) *unread {
	return &unread{tasks: lru.New(lru.Options[core.TaskID, struct{}]{Count: maxUnread, Age: keep})}
}

// add adds the task of a message that was sent.
func (u *unread) add(task core.TaskID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.tasks.Put(task, struct{}{})
}

// remove removes a task whose answer was sent completely.
func (u *unread) remove(task core.TaskID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.tasks.Remove(task)
}

// has reports whether the answer has yet to be sent.
func (u *unread) has(task core.TaskID) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, ok := u.tasks.Get(task)
	return ok
}

// take removes a task, and reports whether its answer has yet to be sent.
func (u *unread) take(task core.TaskID) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, ok := u.tasks.Remove(task)
	return ok
}

// unreadMatter takes over from another hub of the cluster, where the message was sent, that its
// answer has yet to be sent.
const unreadMatter rpc.Method[core.TaskID, bool] = "coven.unread"

// isUnread reports whether the answer to a message of a client has yet to be sent, at whichever hub
// the message was sent.
func (s *Service) isUnread(ctx context.Context, by core.Principal, task core.TaskID) bool {
	if s.unread.has(task) {
		return true
	}
	answers, _ := unreadMatter.AskAll(ctx, s.hub, by, task) // without an answer it is history
	for _, a := range answers {
		if a.Out {
			s.unread.add(task)
			return true
		}
	}
	return false
}
