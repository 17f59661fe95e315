package hub

import (
	"context"
	"slices"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/memory"
	"github.com/dragoman-hub/dragoman/core/pack"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// Batch is what [Session.Next] returns: exactly one of events, a gap, the result or the progress of a
// tool, an execution or its withdrawal, a question, a change of tools or settings, or that the hub is
// stopping.
type Batch struct {
	// Task and Role say what Events or Gap belong to.
	Task *task.Task
	Role task.Role
	// Tag is what the session passed when it opened or watched the task.
	Tag any
	// Events are consecutive. They share memory with the log: read only.
	Events []core.Event
	// Gap says that a part of the task is gone and will not come; for a Subscriber, how
	// many notices are, some of which may have been for it.
	Gap *task.Gap
	// Tool is the result of a tool that this session called.
	Tool *tool.Result
	// Progress is the latest of such a call: see [Session.WatchProgress].
	Progress *tool.Progress
	// Execute is a call for the pack that this session provides.
	Execute *pack.Execution
	// Withdrawn is the id of an execution that the session was given and for which nobody
	// waits any more.
	Withdrawn string
	// Question is put to people, or says how it ended: see [Session.WatchQuestions].
	Question *question.Update
	// ToolsChanged says that packs came, went or changed: see [Session.WatchTools].
	ToolsChanged bool
	// SettingsChanged says that an operator has changed the settings of the agent.
	SettingsChanged *SettingsChange
	// Draining says why the hub is stopping, and which hubs are not. Running tasks may still finish.
	Draining string
}

// inbox collects what a session has not read yet.
type inbox struct {
	mu      sync.Mutex
	readers fifo.Queue[*task.Reader] // of tasks with unread events
	news    fifo.Queue[Batch]        // results of tools, executions and questions
	share   memory.Share             // news, until the session has ended
	// What follows is pending at most once.
	draining     string
	settings     *SettingsChange
	progress     *tool.Progress
	empty        bool // an empty batch
	toolsChanged bool
	notices      bool // there may be notices for a subscriber
	yielded      bool // the notices let something else go first

	watchesProgress bool

	ended    error // why there will be nothing more
	wake     chan struct{}
	consumer *consumer // nil while nobody consumes the session
}

func newInbox(m *memory.Budget) inbox {
	return inbox{wake: make(chan struct{}, 1), share: memory.Of(m, memory.Inboxes)}
}

// size estimates the memory of a batch beside events, in bytes.
func (b *Batch) size() int {
	n := 256
	switch {
	case b.Tool != nil:
		n += len(b.Tool.Output)
		if f := b.Tool.Foreign; f != nil {
			n += len(f.JSON) + len(f.Wire)
		}
	case b.Execute != nil:
		n += len(b.Execute.Input)
	case b.Question != nil:
		n += b.Question.Question.Size()
		if o := b.Question.Outcome; o != nil {
			n += len(o.Text) + len(o.Content)
		}
	}
	return n
}

// push adds a batch. What replaces itself, such as a change of settings, is pending at most
// once: the latest counts. A batch with only the role of a Subscriber stands for its
// notices.
func (f *inbox) push(b Batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case b.Draining != "":
		f.draining = b.Draining
	case b.SettingsChanged != nil:
		f.settings = b.SettingsChanged
	case b.Progress != nil:
		if !f.watchesProgress || f.ended != nil {
			return
		}
		f.progressed(b.Progress)
	case b.ToolsChanged:
		f.toolsChanged = true
	case b.Role == task.Subscriber:
		f.notices = true
	case b.Tool == nil && b.Execute == nil && b.Withdrawn == "" && b.Question == nil:
		f.empty = true
	default:
		f.news.Push(b)
		if f.ended == nil {
			f.share.Add(b.size())
		}
	}
	f.signal()
}

// progressed replaces the latest progress; nil for none. The caller holds mu.
func (f *inbox) progressed(p *tool.Progress) {
	for _, of := range []struct {
		p *tool.Progress
		n int
	}{{f.progress, -1}, {p, 1}} {
		if of.p != nil && f.ended == nil {
			f.share.Add(of.n * len(of.p.Detail))
		}
	}
	f.progress = p
}

// ready adds a reader that has something to read. It reports whether the session has not ended.
func (f *inbox) ready(r *task.Reader) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readers.Push(r)
	f.signal()
	return f.ended == nil
}

// release lets the tasks go that nobody may read any more, now that the session has ended.
func (f *inbox) release() {
	f.mu.Lock()
	all := slices.Clone(f.readers.Items())
	f.mu.Unlock()
	for _, r := range all { // without mu, which is locked after that of a task
		r.Release()
	}
}

// end makes Next return err once everything before it was read.
func (f *inbox) end(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended == nil {
		f.ended = err
		f.share.Release() // the session may never be read again
	}
	f.signal()
}

// signal wakes whoever waits for news, and starts the goroutine of a consumer that has
// none. The caller holds mu.
func (f *inbox) signal() {
	fifo.Signal(f.wake)
	if c := f.consumer; c != nil && !c.running {
		c.running = true
		c.goroutine.Add(1)
		go c.run()
	}
}

// rouse lets the reader look again.
func (f *inbox) rouse() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.signal()
}

// pop returns the next batch, or a reader to take one from.
func (f *inbox) pop() (b Batch, r *task.Reader, ok bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.draining != "":
		b.Draining, f.draining = f.draining, ""
	case f.settings != nil:
		b.SettingsChanged, f.settings = f.settings, nil
	case f.progress != nil: // before the result of the call
		b.Progress = f.progress
		f.progressed(nil)
	case f.news.Len() > 0:
		if b, _ = f.news.Pop(); f.ended == nil {
			f.share.Add(-b.size())
		}
	case f.empty:
		f.empty = false
	case f.toolsChanged:
		b.ToolsChanged, f.toolsChanged = true, false
	case f.notices && (f.yielded || f.readers.Len() == 0):
		b.Role = task.Subscriber
		f.notices, f.yielded = false, false
	default:
		f.yielded = f.notices
		if r, ok = f.readers.Pop(); !ok {
			err = f.ended
		}
		return b, r, ok, err
	}
	return b, nil, true, nil
}

// Next waits for news: of the tasks that the session opened, works on or watches, of tools
// that it called, or of the hub itself. One goroutine calls it. It returns the context's
// error, or a Fault once the session has ended and everything was read.
func (s *Session) Next(ctx context.Context) (Batch, error) { return s.NextOr(ctx, nil) }

// NextOr is Next, but returns an empty batch when there is no news and something is
// received from other: for a goroutine with more than one source of work.
func (s *Session) NextOr(ctx context.Context, other <-chan struct{}) (Batch, error) {
	for {
		if b, found, err := s.poll(); found || err != nil {
			return b, err
		}
		select {
		case <-s.inbox.wake:
		case <-other:
			return Batch{}, nil
		case <-ctx.Done():
			return Batch{}, context.Cause(ctx)
		}
	}
}

// drainBatches bounds how many batches Drain delivers, so that the first one is not delayed
// by many behind it.
const drainBatches = 32

// Drain calls deliver for a batch that Next returned, and for those that are ready after
// it, so that they may be written together. It returns the first error of deliver; the
// error of the session comes from Next. Only the caller of Next, or the function passed to
// Consume, calls it.
func (s *Session) Drain(b Batch, deliver func(Batch) error) error {
	for range drainBatches {
		if err := deliver(b); err != nil {
			return err
		}
		var found bool
		if b, found, _ = s.poll(); !found {
			return nil
		}
	}
	return deliver(b)
}

// poll returns what Next would without waiting. Once the session has ended and everything
// was read, it returns why.
func (s *Session) poll() (b Batch, found bool, err error) {
	if s.told != nil {
		return s.pollEach()
	}
	return s.pollBatch()
}

func (s *Session) pollBatch() (b Batch, found bool, err error) {
	for {
		b, r, ok, err := s.inbox.pop()
		switch {
		case err != nil || !ok:
			return Batch{}, false, err
		case r == nil && b.Execute != nil && !s.hub.packs.Take(b.Execute):
			continue // nobody waits for it any more
		case r == nil && b.Role == task.Subscriber:
			if b, ok = s.nextNotice(); ok {
				return b, true, nil
			}
		case r == nil:
			return b, true, nil
		default:
			if b, ok = s.take(r); ok {
				return b, true, nil
			}
		}
	}
}

// take returns what a reader of the session has not read yet; false if there is nothing.
func (s *Session) take(r *task.Reader) (Batch, bool) {
	p, ok := r.Take()
	if p.Over && p.Role == task.Viewer {
		s.views.forget(p.Task, r)
	}
	if !ok {
		return Batch{}, false
	}
	if p.Role != task.Waiter {
		return Batch{Task: p.Task, Role: p.Role, Tag: p.Tag, Events: p.Events, Gap: p.Gap}, true
	}
	s.waits.done(r)
	then, isCall := p.Tag.(func(*task.Task) *tool.Result)
	if !isCall {
		return Batch{Task: p.Task, Role: task.Requester, Tag: p.Tag}, true
	}
	o := then(p.Task)
	if s.told != nil {
		s.told.answered = p.Task
	}
	return Batch{Tool: o}, o != nil
}
