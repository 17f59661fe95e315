package task

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/memory"
	"github.com/dragoman-hub/dragoman/core/quota"
	"github.com/dragoman-hub/dragoman/core/redact"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// Limits are the limits of tasks. They have no defaults here.
type Limits struct {
	// TaskBytes bounds the events of a task, RequestBytes injected context.
	TaskBytes, RequestBytes int
	// QuestionTimeout is how long a person may take to decide.
	QuestionTimeout time.Duration
	// Silence is how long an agent may say nothing, and MaxDeadline how long after its beginning a
	// task ends, however long people are waited for: both of tasks with a default deadline. A Silence
	// that is not positive is no limit.
	Silence, MaxDeadline time.Duration
	// CancelGrace is how long an agent may take to answer a cancel.
	CancelGrace time.Duration
	// Retries is how often a task that fails before any output goes to another agent.
	Retries int
	// FinishedTasks and FinishedBytes bound the ended tasks in memory.
	FinishedTasks, FinishedBytes int
	// Owner is the index of the hub among those of its cluster, at most [MaxOwner]. It stands in
	// the ids of its tasks.
	Owner int
	// Cluster says that there are other hubs, whose tasks the store is told of: see [Store.Learn].
	Cluster bool
	// Memory counts the logs, and refuses new tasks when it is full; nil counts nothing.
	Memory *memory.Budget
}

// Host is what tasks need from the hub. Its methods are called with the lock of the task
// held, unless they say otherwise, so they return at once and do not call the task.
type Host interface {
	// Appended gets every event of every task that the hub owns, in order.
	Appended(core.TaskID, core.Event)
	// Answered is called for a task that is done, before any reader is notified. The log is
	// read only.
	Answered(req core.Request, id core.TaskID, log *Log)
	// Recorded is called when the journal has a task up to seq.
	Recorded(id core.TaskID, seq uint64)
	// Dropped is called when a task leaves memory that no journal has: see [Task.SetUnstored].
	Dropped(id core.TaskID, thread core.ThreadID)
	// JournalBehind reports whether readers get ends only once they are recorded.
	JournalBehind() bool
	// Priced returns usage with its cost, as far as that is known. It does not wait.
	Priced(core.Usage) core.Usage
	// Spend counts usage, late if the task has ended, and returns the budgets that are
	// nearly spent.
	Spend(t *Task, r usage.Record, late bool) []usage.BudgetStatus
	// Count adds one to a named counter.
	Count(name string)
	// Redactor returns what is taken out of the redacted form of tasks; nil for nothing.
	Redactor() *redact.Redactor

	// BudgetsCrossed is called without a lock for budgets that became nearly spent, or
	// spent.
	BudgetsCrossed([]usage.BudgetStatus)
	// Ended is called without a lock, once for each task that was not ended by its agent.
	// The worker, if there is one, may still work on it.
	Ended(t *Task, worker Worker)
	// CancelUnanswered is called without a lock for a task that ended because its agent did
	// not answer a cancel in time.
	CancelUnanswered(t *Task)
}

// Store has the tasks of a hub. It is safe for concurrent use.
type Store struct {
	limits  Limits
	host    Host
	journal journal.Journal
	search  chan struct{} // holds a token while a page is searched

	mu       sync.Mutex
	tasks    map[core.TaskID]*Task // those that run, and the latest that ended
	finished fifo.Queue[*Task]     // the ended ones of those, oldest first
	bytes    atomic.Int64          // of the finished ones
	newest   core.TaskID           // the task that was opened last
	lines    map[Line]uint64       // the place of the newest task of each line; nil for a hub alone
	catalog  catalog
}

// NewStore returns an empty Store.
func NewStore(l Limits, h Host, j journal.Journal) *Store {
	s := &Store{limits: l, host: h, journal: j, search: make(chan struct{}, 1), tasks: map[core.TaskID]*Task{}, catalog: catalog{share: memory.Of(l.Memory, memory.Catalog)}}
	if l.Cluster {
		s.lines, s.catalog.lostIn = map[Line]uint64{}, map[Line]uint64{}
	}
	return s
}

// Open adds a task to the store: it gets its id and its first event, and from now on it is
// sure to end. A task without a thread begins one. Open returns an overloaded Fault if there is
// no memory for it, even without the ended tasks that the journal has. The work is what the task
// counts for its requester until it ends; it may be nil.
func (s *Store) Open(t *Task, work *quota.Work) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.enter(t, s.limits.Owner, work); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	s.begin(t, now)
	t.appendAt(now, t.opened(), nil)
	return nil
}

// enter adds a task that the hub with an index owns, if there is memory for it. Callers hold mu.
func (s *Store) enter(t *Task, owner int, work *quota.Work) error {
	if need := OverheadBytes + t.request.Size(); !t.share.TryTake(need) {
		if s.trim(0, 0); !t.share.TryTake(need) {
			return s.full("what runs goes on; ask again once some of it has ended")
		}
	}
	t.id = s.nextID(owner)
	if t.request.Thread == "" {
		t.request.Thread = core.ThreadID(t.id)
	}
	s.put(t, work)
	return nil
}

// put adds a task. Callers hold mu.
func (s *Store) put(t *Task, work *quota.Work) {
	t.stored, t.work = true, work
	t.patience.begin()
	s.tasks[t.id] = t
	s.noteID(t.id)
	s.catalog.add(t.from.Account(), known{id: t.id})
	s.catalog.bound(s.tasks)
}

// begin sets the alarm of a task that the hub owns. Callers hold the locks of both.
func (s *Store) begin(t *Task, now time.Time) {
	if t.began.IsZero() { // it has not come from another hub
		t.began = now
	}
	id := t.id // not the task: the runtime keeps stopped timers for a while
	t.alarm = time.AfterFunc(time.Until(t.wakes(time.Now())), func() {
		if t := s.Get(id); t != nil {
			t.act()
		}
	})
}

// opened returns the body of its first event.
func (t *Task) opened() core.Opened {
	return core.Opened{Task: t.id, From: t.from, Request: t.request, Hops: t.chain.Hops, Chain: t.chain.Agents, Trace: t.trace, Key: t.key, DefaultDeadline: t.byDefault}
}

// full returns the Fault of new work for which there is no memory, and counts it.
func (s *Store) full(advice string) error {
	m := s.limits.Memory
	m.Refuse()
	f := core.NewFault(core.CodeOverloaded, "the hub holds %d bytes for tasks and messages, its limit is %d (limits.memory): %s", m.Held(), m.Limit(), advice)
	f.RetryAfter = core.Seconds(time.Second)
	return f
}

// Get returns a task that is in memory, or nil.
func (s *Store) Get(id core.TaskID) *Task {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tasks[id]
}

// Find returns a task from memory or, by what read returns of it as [journal.Journal.Read] does, from the
// journal. It returns an unknown_task Fault, an overloaded Fault if the task would have to be read and
// there is no memory for it, or the error of read.
func (s *Store) Find(id core.TaskID, read func() ([]core.Event, error)) (*Task, error) {
	if t := s.Get(id); t != nil {
		return t, nil
	}
	if s.limits.Memory.IsFull() {
		s.relieve()
		if s.limits.Memory.IsFull() {
			return nil, s.full("this task would be read from the journal; read it again once what runs has ended")
		}
	}
	events, err := read()
	if t := s.Get(id); t != nil { // it came meanwhile: what was read may be only its beginning
		return t, nil
	}
	var gap *journal.GapError
	isGap := errors.As(err, &gap)
	switch {
	case isGap && len(events) > 0:
	case isGap || errors.Is(err, journal.ErrUnknown) || err == nil && len(events) == 0:
		return nil, Unknown(id)
	case err != nil:
		return nil, err
	}
	return s.taskOf(id, events, gap), nil
}

// Unknown returns what is said of a task to somebody for whom there is none of that id: whether it is
// somebody else's or was never opened is not to be told apart.
func Unknown(id core.TaskID) *core.Fault {
	return core.NewFault(core.CodeUnknownTask, "no task %s is here for you: it never was, it is no longer kept, or it is somebody else's", id)
}

// taskOf returns a task that has ended, as the journal has its events. gap is what is lost of it, nil for nothing.
func (s *Store) taskOf(id core.TaskID, events []core.Event, gap *journal.GapError) *Task {
	last := events[len(events)-1]
	t := newTask(&life{store: s, id: id, log: LogOf(events), loaded: true, sparse: true, share: memory.Of(s.limits.Memory, memory.Ended)})
	if gap != nil {
		t.lost = events[0].Seq - 1
		for i := range events[1:] {
			t.holed = t.holed || events[i+1].Seq > events[i].End()+1
		}
	}
	for _, e := range events {
		t.bytes += e.Size()
		t.machine.apply(e)
		if b, ok := e.Body.(core.Opened); ok {
			t.from, t.request, t.chain.Hops = b.From, b.Request, b.Hops
		}
	}
	t.recorded, t.state = t.last(), Ended
	t.reach(core.StageRecorded, last.At)
	return t
}

// Newest returns the task that was opened last; "" if there was none.
func (s *Store) Newest() core.TaskID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest
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

// The memory of a task and of an event beside their content, in bytes.
const (
	OverheadBytes = 2 << 10
	eventOverhead = 128
)

// memory estimates the memory of an ended task in bytes. Callers hold mu.
func (t *Task) memory() int { return OverheadBytes + t.bytes + t.log.Len()*eventOverhead }

// count counts the log of a task that is not in the store, for its readers. Callers hold mu.
func (t *Task) count() {
	if !t.stored && t.share.Held() == 0 {
		t.share.Add(t.memory())
	}
}

// uncount gives back the memory of a task that neither the store nor a reader holds. Callers
// hold mu.
func (t *Task) uncount() {
	if !t.stored && t.readers == nil {
		t.share.Release()
	}
}

// Retain keeps an ended task in memory for a while. It is called once for each.
func (s *Store) Retain(t *Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.mu.Lock()
	t.retained = true
	s.bytes.Add(int64(t.memory()))
	t.condense()
	t.mu.Unlock()
	s.finished.Push(t)
	s.trim(s.limits.FinishedTasks, s.limits.FinishedBytes)
}

// condense joins the text of a long task that has ended and that nobody reads, as the journal does, once that has all
// of it: in many pieces it takes more memory than it has content. Callers hold mu.
func (t *Task) condense() {
	if t.state != Ended || t.readers != nil || !t.retained || !t.stored || t.sparse || t.recorded < t.last() || t.log.Len() <= segmentEvents {
		return
	}
	before := t.memory()
	t.log, t.sparse, t.bytes = t.log.joined(), true, 0
	for e := range t.log.All() {
		t.bytes += e.Size()
	}
	less := before - t.memory()
	t.share.Add(-less)
	t.store.bytes.Add(int64(-less))
}

// FinishedBytes returns the memory of ended tasks in bytes, after dropping those that may
// go: tasks beyond the limits are not in the journal yet.
func (s *Store) FinishedBytes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trim(s.limits.FinishedTasks, s.limits.FinishedBytes)
	return int(s.bytes.Load())
}

// minShare is what a task that runs may always have, in bytes.
const minShare = 64 << 10

// taskBytes returns how much memory a task that runs may take now. While what runs has grown far
// beyond the budget, that is what those tasks have on average: the largest end, so that the others
// and the hub go on.
func (s *Store) taskBytes() int {
	if m := s.limits.Memory; m.IsOver() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.trim(0, 0); m.IsOver() {
			running := max(1, len(s.tasks)-s.finished.Len())
			return max(minShare, int(m.HeldAs(memory.Logs))/running)
		}
	}
	return math.MaxInt
}

// tooMuch returns the Fault of a task that takes more than the hub has, and counts it.
func (s *Store) tooMuch(bytes int) *core.Fault {
	s.host.Count("task.memory")
	m := s.limits.Memory
	f := core.NewFault(core.CodeOverloaded, "the hub holds %d bytes for tasks and messages, its limit is %d (limits.memory), and this task has %d of them, more than others: ask for less at a time, or again later",
		m.Held(), m.Limit(), bytes)
	f.RetryAfter = core.Seconds(time.Second)
	return f
}

// relieve drops all ended tasks that the journal has.
func (s *Store) relieve() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trim(0, 0)
}

// trim drops the oldest ended tasks beyond a number of tasks or bytes that the journal has.
// Callers hold mu.
func (s *Store) trim(tasks, bytes int) {
	for s.finished.Len() > tasks || s.bytes.Load() > int64(bytes) {
		oldest := s.finished.First()
		oldest.mu.Lock()
		size, recorded, last, cause := oldest.memory(), oldest.recorded >= oldest.last(), oldest.log.Last(), oldest.request.Cause
		if !oldest.stored { // it was forgotten, and is never recorded
			oldest.mu.Unlock()
			s.finished.Pop()
			s.bytes.Add(int64(-size))
			continue
		}
		unstored := oldest.unstored
		w := parties{from: oldest.from.ID, agent: oldest.agent}
		if w.agent == "" {
			w.to = oldest.request.To.Agent()
		}
		if recorded {
			oldest.stored = false
			oldest.uncount()
			if unstored {
				s.host.Dropped(oldest.id, oldest.request.Thread)
			}
		}
		oldest.mu.Unlock()
		if !recorded {
			return // the next call tries again
		}
		delete(s.tasks, oldest.id)
		if unstored {
			s.catalog.remove(oldest.id)
		} else if !oldest.remote { // the journal of this hub has it
			s.catalog.settle(oldest.id, last, w, cause)
		}
		s.finished.Pop()
		s.bytes.Add(int64(-size))
	}
}

// Recover adds an ended task from the journal to the catalog. It is called in the order of
// ids, before any task is opened.
func (s *Store) Recover(id core.TaskID, end core.Kind, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catalog.add("", known{id: id, end: end, at: at.UnixNano()})
	s.catalog.bound(s.tasks)
	s.noteID(id)
}
