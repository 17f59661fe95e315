package a2a

import (
	"context"
	"sync"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/task"
)

// people stand for those behind the clients, who may be asked while no connection of theirs
// is open: a client that polls learns of the question from GetTask. It has a view of the
// questions in each running task that a client opened. It also reads the tasks whose updates
// are posted.
type people struct {
	session *hub.Session
	stop    func()
	over    chan struct{} // closed once everything was read

	mu    sync.Mutex
	views map[*task.Task]string // their tags
}

func newPeople(h *hub.Hub) *people {
	p := &people{session: h.Connect(hub.ComponentIdentity("people", wire.Dialect)), views: map[*task.Task]string{}, over: make(chan struct{})}
	p.stop = p.session.Consume(context.Background(), func(b hub.Batch, err error) bool {
		tag := b.Tag
		if b.Question != nil {
			tag = b.Question.Tag
		}
		if posted, ok := tag.(*pushes); ok {
			posted.notify(b)
		} else if b.Task != nil && b.Role == task.Requester {
			p.leave(b.Task)
		}
		if err != nil {
			close(p.over)
		}
		return err == nil
	})
	return p
}

// expect opens a view of the questions in a thread, before a task is opened in it, so that
// its agent can ask at once.
func (p *people) expect(thread core.ThreadID, viewer core.Principal) (tag string) {
	tag = core.NewID()
	_ = p.session.WatchQuestions(question.View{Tag: tag, Thread: thread, For: viewer})
	return tag
}

// stay keeps a view until the end of its task.
func (p *people) stay(tag string, t *task.Task) {
	p.mu.Lock()
	p.views[t] = tag
	p.mu.Unlock()
	p.session.AwaitEnd(t)
}

func (p *people) leave(t *task.Task) {
	p.mu.Lock()
	tag := p.views[t]
	delete(p.views, t)
	p.mu.Unlock()
	p.session.UnwatchQuestions(tag)
}

func (p *people) close() {
	p.session.Close(core.NewFault(core.CodeUnreachable, "the hub is stopping"))
	<-p.over
	p.stop()
}
