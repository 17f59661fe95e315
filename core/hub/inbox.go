package hub

import (
	"context"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/pack"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// Batch is what [Session.Next] returns: exactly one of events, a gap, the output
// of a tool, an execution, a question, a change of tools or settings, or that the hub is
// stopping.
type Batch struct {
	// Task and Role say what Events or Gap are of.
	Task *task.Task
	Role task.Role
	// Tag is what the session gave when it opened or watched the task.
	Tag any
	// Events follow one another. They share memory with the log: read only.
	Events []core.Event
	// Gap says that a part of the task is gone and will not come; of a Subscriber,
	// that many notices are, of which some may have been for it.
	Gap *task.Gap
	// Tool is what a tool that this session called came to.
	Tool *tool.Result
	// Execute is what the pack that this session provides is to do.
	Execute *pack.Execution
	// Question is put to people, or the news of how it ended: see [Session.WatchQuestions].
	Question *question.Update
	// ToolsChanged says that packs came, went or changed: see [Session.WatchTools].
	ToolsChanged bool
	// SettingsChanged says that an operator has changed the settings of the agent.
	SettingsChanged *SettingsChange
	// Draining says why the hub is stopping. What runs may still finish.
	Draining string
}

// inbox gathers what is new for a session, in the order in which it became so.
type inbox struct {
	mu       sync.Mutex
	ready    fifo.Queue[*task.Reader]
	tools    fifo.Queue[*tool.Result]
	execute  fifo.Queue[*pack.Execution]
	asking   fifo.Queue[*question.Update]
	changed  bool // the tools, since that was told last
	settings *SettingsChange
	stirred  bool // a thread that is followed has another task
	noticed  bool // there may be notices for a subscriber
	waited   bool // they let something else go first
	draining string
	ended    error
	wake     chan struct{}
	// attendance is told of news, where nobody waits for it.
	attendance *attendance
}

func newInbox() inbox { return inbox{wake: make(chan struct{}, 1)} }

func (f *inbox) push(r *task.Reader) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ready.Push(r)
	f.signal()
}

func (f *inbox) pushTool(o *tool.Result) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tools.Push(o)
	f.signal()
}

func (f *inbox) pushExecution(e *pack.Execution) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.execute.Push(e)
	f.signal()
}

func (f *inbox) pushAsking(a *question.Update) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asking.Push(a)
	f.signal()
}

func (f *inbox) toolsChanged() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changed = true
	f.signal()
}

// stir makes Next return an empty batch.
func (f *inbox) stir() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stirred = true
	f.signal()
}

// notice has Next look whether there are notices for a subscriber.
func (f *inbox) notice() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.noticed = true
	f.signal()
}

func (f *inbox) drain(reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.draining = reason
	f.signal()
}

// pushSettings replaces a change of settings that was not read yet.
func (f *inbox) pushSettings(c *SettingsChange) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settings = c
	f.signal()
}

// end makes Next return err once everything that is ready was read.
func (f *inbox) end(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended == nil {
		f.ended = err
	}
	f.signal()
}

// pop returns what is ready: a batch, or a reader to take one from.
func (f *inbox) pop() (b Batch, r *task.Reader, ok bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.draining != "" {
		b.Draining, f.draining = f.draining, ""
		return b, nil, true, nil
	}
	if f.settings != nil {
		b.SettingsChanged, f.settings = f.settings, nil
		return b, nil, true, nil
	}
	if o, found := f.tools.Pop(); found {
		return Batch{Tool: o}, nil, true, nil
	}
	if e, found := f.execute.Pop(); found {
		return Batch{Execute: e}, nil, true, nil
	}
	if a, found := f.asking.Pop(); found {
		return Batch{Question: a}, nil, true, nil
	}
	if f.stirred {
		f.stirred = false
		return Batch{}, nil, true, nil
	}
	if f.changed {
		f.changed = false
		return Batch{ToolsChanged: true}, nil, true, nil
	}
	if f.noticed && (f.waited || f.ready.Len() == 0) {
		f.noticed, f.waited = false, false
		return Batch{Role: task.Subscriber}, nil, true, nil
	}
	f.waited = f.noticed
	if r, ok = f.ready.Pop(); ok {
		return b, r, true, nil
	}
	return b, nil, false, f.ended
}

// Next waits for news: of the tasks that the session opened, works on or
// watches, of tools it called, or of the hub itself. One goroutine calls it. It
// returns the context's error, or a Fault once the session has been ended and
// everything was read.
func (s *Session) Next(ctx context.Context) (Batch, error) { return s.next(ctx, nil, nil) }

// NextOr is Next, but returns an empty batch when there is no news and something else
// is received from other: for a goroutine that has more to look after.
func (s *Session) NextOr(ctx context.Context, other <-chan struct{}) (Batch, error) {
	return s.next(ctx, nil, other)
}

func (s *Session) next(ctx context.Context, alarm <-chan time.Time, other <-chan struct{}) (Batch, error) {
	for {
		if b, found, err := s.poll(); found || err != nil {
			return b, err
		}
		select {
		case <-s.inbox.wake:
		case <-alarm:
			return Batch{}, nil
		case <-other:
			return Batch{}, nil
		case <-ctx.Done():
			return Batch{}, context.Cause(ctx)
		}
	}
}

// drainBatches bounds how many batches Drain delivers, so that what was sent first does
// not wait long for what goes along with it.
const drainBatches = 32

// Drain calls deliver for a batch that Next returned, and for those that are ready behind
// it, so that they may be written together. It returns the first error of deliver; the
// error of the session comes from Next. Only the caller of Next, or of Attend from within
// its function, calls it.
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

// poll returns what Next would if there is something. Once the session has been ended
// and everything was read, it returns why.
func (s *Session) poll() (b Batch, found bool, err error) {
	for {
		b, r, ok, err := s.inbox.pop()
		switch {
		case err != nil || !ok:
			return Batch{}, false, err
		case r == nil && b.Execute != nil && !s.hub.packs.Take(b.Execute):
			continue // it is not waited for any more
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

// take returns what is new for a reader of the session; false if nothing is.
func (s *Session) take(r *task.Reader) (Batch, bool) {
	p, ok := r.Take()
	if p.Over && p.Role == task.Viewer {
		s.views.forget(p.Task)
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
	return Batch{Tool: o}, o != nil
}
