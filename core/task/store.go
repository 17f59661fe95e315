package task

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// Limits are the numbers of tasks. They have no defaults here.
type Limits struct {
	// TaskBytes bounds what an agent may say in one task, RequestBytes context that is
	// pushed into one at once.
	TaskBytes, RequestBytes int
	// ApprovalTimeout is how long a person has to decide.
	ApprovalTimeout time.Duration
	// CancelGrace is how long an agent has to answer a cancel.
	CancelGrace time.Duration
	// Retries is how often a task that failed before any output goes to another agent.
	Retries int
	// FinishedTasks and FinishedBytes bound the ended tasks in memory.
	FinishedTasks, FinishedBytes int
}

// Host is the hub around its tasks. Its methods are called with the lock of the task
// held, so that they return at once and call nothing of the task, but for those that
// say otherwise.
type Host interface {
	// Appended tells every event of every task, in order.
	Appended(core.TaskID, core.Event)
	// Answered tells of a task that is done, before anybody else hears of that and asks
	// on. The log is only read.
	Answered(req core.Request, id core.TaskID, log *Log)
	// Recorded tells that the journal has a task up to seq.
	Recorded(id core.TaskID, seq uint64)
	// JournalBehind reports whether ends have to be recorded before they are told.
	JournalBehind() bool
	// Spend counts what an agent used, late if the task has ended, and returns the
	// budgets that are nearly spent.
	Spend(t *Task, r usage.Record, late bool) []usage.BudgetStatus
	// Count adds one to a named counter.
	Count(name string)

	// BudgetsCrossed tells of budgets that came to be nearly spent, or spent. It is
	// called without a lock.
	BudgetsCrossed([]usage.BudgetStatus)
	// Ended is called without a lock, once for each task that was not ended by its agent.
	// The worker, if there is one, has not ended it yet.
	Ended(t *Task, worker Worker)
	// CancelUnanswered is called without a lock for a task that has ended since its agent
	// did not answer a cancel in time.
	CancelUnanswered(t *Task)
}

// Store has the tasks of a hub. It is safe for concurrent use.
type Store struct {
	limits  Limits
	host    Host
	journal journal.Journal

	mu       sync.Mutex
	tasks    map[core.TaskID]*Task // those that run, and the latest that ended
	finished fifo.Queue[*Task]     // the ended ones of those, oldest first
	bytes    int                   // of the finished ones
	newest   core.TaskID           // the task that was taken in last
	catalog  catalog
}

// NewStore makes an empty Store.
func NewStore(l Limits, h Host, j journal.Journal) *Store {
	return &Store{limits: l, host: h, journal: j, tasks: map[core.TaskID]*Task{}}
}

// Open takes a task in: it gets its id, its place in the catalog and its first event,
// and from here on it is sure to end. A task without a thread begins one.
func (s *Store) Open(t *Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.id = s.nextID()
	if t.request.Thread == "" {
		t.request.Thread = core.ThreadID(t.id)
	}
	s.tasks[t.id] = t
	s.catalog.add(known{id: t.id})
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	t.receipt = core.Receipt{Task: t.id, Stage: core.StageAccepted, At: now}
	t.due = t.request.Deadline
	id := t.id // not the task: the runtime keeps timers for a while that were stopped
	t.deadline = time.AfterFunc(t.due.Sub(now), func() {
		if t := s.Get(id); t != nil {
			t.expire()
		}
	})
	t.appendAt(now, core.Opened{Task: t.id, From: t.from, Request: t.request, Hops: t.chain.Hops, Chain: t.chain.Agents, Trace: t.trace}, nil)
}

// Get returns a task that is in memory, or nil.
func (s *Store) Get(id core.TaskID) *Task {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tasks[id]
}

// Find returns a task, in memory or from the journal, for which it may wait. It
// returns an unknown_task Fault, or the error of the journal.
func (s *Store) Find(ctx context.Context, id core.TaskID) (*Task, error) {
	if t := s.Get(id); t != nil {
		return t, nil
	}
	events, err := s.journal.Read(ctx, id, 0, 0)
	var gap *journal.GapError
	isGap := errors.As(err, &gap)
	switch {
	case isGap && len(events) > 0:
	case isGap || errors.Is(err, journal.ErrUnknown) || err == nil && len(events) == 0:
		return nil, core.NewFault(core.CodeUnknownTask, "no task %s is known here: it never was, or it is no longer kept", id)
	case err != nil:
		return nil, err
	}
	last := events[len(events)-1]
	t := &Task{store: s, id: id, log: LogOf(events), loaded: true, state: Ended, epoch: last.Epoch}
	if gap != nil {
		t.lost = events[0].Seq - 1
		for i := range events[1:] {
			t.holed = t.holed || events[i+1].Seq > events[i].End()+1
		}
	}
	for _, e := range events {
		switch b := e.Body.(type) {
		case core.Opened:
			t.from, t.request, t.chain.Hops = b.From, b.Request, b.Hops
		case core.Assigned:
			t.agent = b.Agent
		}
	}
	t.recorded = t.last()
	t.receipt = core.Receipt{Task: id, Stage: core.StageRecorded, Agent: t.agent, At: last.At}
	return t, nil
}

// InMemory returns the tasks that are in memory, in no order.
func (s *Store) InMemory() []*Task {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*Task, 0, len(s.tasks))
	for _, t := range s.tasks {
		all = append(all, t)
	}
	return all
}

// What a task and an event take in memory beside what is said, in bytes.
const (
	Overhead      = 2 << 10
	eventOverhead = 128
)

// memory is about how many bytes of memory an ended task takes. Callers hold mu.
func (t *Task) memory() int { return Overhead + t.bytes + t.log.Len()*eventOverhead }

// Retain keeps a task that has ended in memory for a while, beside the journal. It is
// called once for each.
func (s *Store) Retain(t *Task) {
	t.mu.Lock()
	bytes := t.memory()
	t.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finished.Push(t)
	s.bytes += bytes
	s.trim()
}

// FinishedBytes returns how many bytes ended tasks have in memory, having dropped those
// that may go: what is more than the limit the journal does not have yet.
func (s *Store) FinishedBytes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trim()
	return s.bytes
}

// trim drops the oldest ended tasks beyond the limits, as far as the journal has
// them. Callers hold mu.
func (s *Store) trim() {
	for s.finished.Len() > s.limits.FinishedTasks || s.bytes > s.limits.FinishedBytes {
		oldest := s.finished.First()
		oldest.mu.Lock()
		size, recorded, last := oldest.memory(), oldest.recorded >= oldest.last(), oldest.log.Last()
		oldest.mu.Unlock()
		if !recorded {
			return // what comes next tries again
		}
		delete(s.tasks, oldest.id)
		s.catalog.settle(oldest.id, last)
		s.finished.Pop()
		s.bytes -= size
	}
}

// Recover takes note of a task that the journal has from before the start, with its end.
// It is called in the order of ids, before anything is opened.
func (s *Store) Recover(id core.TaskID, end core.Kind, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catalog.add(known{id, end, at.UnixNano()})
	s.noteID(id)
}
