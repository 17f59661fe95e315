package task

import (
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// State says where a task stands. The zero State is unset.
type State uint8

// The states.
const (
	_       State = iota
	Queued        // it waits for an agent
	Running       // an agent works on it
	Ended         // its last event is its end
)

// String returns the state in a word.
func (s State) String() string { return [...]string{"", "queued", "running", "ended"}[s] }

// MarshalText implements encoding.TextMarshaler.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Worker is the connection of the agent that a task was given to. Values are compared
// with ==.
type Worker interface {
	Inbox
	// Features returns what the agent declared.
	Features() core.Features
}

// Task is a unit of work: one requester, one cause, one sequence of events and
// exactly one end (promises P1 and P2). It is safe for concurrent use.
type Task struct {
	store *Store
	id    core.TaskID
	from  core.Principal
	chain policy.Chain
	trace core.Trace

	mu      sync.Mutex
	request core.Request
	told    int // how many turns of its history the requester sent
	log     Log
	lost    uint64 // up to here the events fell to retention
	holed   bool   // events in between are missing, of a task that was read from the journal; it does not change
	bytes   int
	epoch   uint32
	state   State
	// loaded says that the task was read from the journal: it has ended, and its
	// text may be merged. It does not change.
	loaded   bool
	shown    bool // its end was told, or may be: see endWaits
	output   bool // the agent has answered something
	asked    bool // a cancel was requested
	readers  *Reader
	lastRead *Reader   // the last of the readers
	few      [4]Reader // the journal, who answers and two more: most tasks have no others
	worker   Worker
	agent    core.AgentID
	attempt  int
	receipt  core.Receipt
	deadline *time.Timer   // rings when the task is due
	due      time.Time     // the deadline, or when an agent has had its time
	within   time.Duration // how long that is; 0 where the deadline comes first
	cancel   *time.Timer
	recorded uint64
	waiters  []recordWaiter
	warned   []usage.BudgetStatus // the budgets of which the agent was told
	late     uint64               // how many usage events came behind the end
	approvals
}

// shortTask is how many events a task is expected to have at least.
const shortTask = 6

// New makes a task that waits for an agent. [Store.Open] takes it in.
func (s *Store) New(from core.Principal, chain policy.Chain, req core.Request, trace core.Trace) *Task {
	return &Task{store: s, from: from, chain: chain, trace: trace, request: req, told: len(req.History), epoch: 1, state: Queued, log: newLog(shortTask)}
}

// ID names the task.
func (t *Task) ID() core.TaskID { return t.id }

// From is who asked.
func (t *Task) From() core.Principal { return t.from }

// Hops is how many tasks stand above it in its chain of causes.
func (t *Task) Hops() int { return t.chain.Hops }

// Chain is its chain of causes. Of a task that was read from the journal it has the
// number of hops alone.
func (t *Task) Chain() policy.Chain { return t.chain }

// Request returns what was asked, with the history that its agent should have.
func (t *Task) Request() core.Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.request
}

// To is whom it is for.
func (t *Task) To() core.Address { return t.request.To }

// Intent is what is wanted.
func (t *Task) Intent() core.Intent { return t.request.Intent }

// IsNotice reports whether it tells something, and asks for nothing.
func (t *Task) IsNotice() bool { return t.request.Intent == core.IntentNotify }

// Thread is the conversation that it belongs to: its own id where it is on its own.
func (t *Task) Thread() core.ThreadID { return t.request.Thread }

// IsTurn reports whether it is a turn of a thread that it shares with others. Notices
// are no part of a thread.
func (t *Task) IsTurn() bool { return !t.IsNotice() && t.SharedThread() != "" }

// SharedThread is the thread that it shares with others: "" of a task on its own.
func (t *Task) SharedThread() core.ThreadID {
	if t.request.Thread == core.ThreadID(t.id) {
		return ""
	}
	return t.request.Thread
}

// Notice is what it tells, if it is a notice.
func (t *Task) Notice() *core.Notice { return t.request.Notice }

// Size is how many bytes the request has.
func (t *Task) Size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.request.Size()
}

// Last returns the last event, told or not.
func (t *Task) Last() core.Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.log.Last()
}

// Priority is how urgent it is.
func (t *Task) Priority() core.Priority { return t.request.Priority }

// Agent returns who works or worked on it; "" before it was assigned.
func (t *Task) Agent() core.AgentID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.agent
}

// Worker returns who works or worked on it, or nil.
func (t *Task) Worker() Worker {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.worker
}

// State returns where it stands, as far as that may be told: see [Limits.JournalLag].
func (t *Task) State() State {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.endWaits() {
		return Running
	}
	return t.state
}

// HasEnded reports whether the log has its end, told or not.
func (t *Task) HasEnded() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state == Ended
}

// IsDone reports whether the task has ended well.
func (t *Task) IsDone() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state == Ended && t.log.Last().Body.Kind() == core.KindDone
}

// Receipt returns how far it got (promise P4).
func (t *Task) Receipt() core.Receipt {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.receipt
}

// Answer puts the task together as far as it went.
func (t *Task) Answer() core.Answer {
	t.mu.Lock()
	log, n := t.log, t.readable()
	t.mu.Unlock()
	a := log.Fold(n)
	a.Truncated = a.Truncated || t.holed
	return a
}

// Events returns the events so far. They may share memory with the log: read only. Of a
// task with very many it copies them.
func (t *Task) Events() []core.Event {
	t.mu.Lock()
	log, n := t.log, t.readable()
	t.mu.Unlock()
	return log.slice(n)
}

// Log returns the events so far, the end among them even where it may not be told yet.
func (t *Task) Log() Log {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.log
}

// last returns the last sequence number. Callers hold mu.
func (t *Task) last() uint64 {
	if t.log.Len() > 0 {
		return t.log.Last().End()
	}
	return t.lost
}

// append adds an event to the log and wakes its readers. Callers hold mu and
// have seen that the task has not ended.
func (t *Task) append(body core.Body, foreign *core.Foreign) { t.appendAt(time.Now(), body, foreign) }

// appendAt is append for who has looked at the clock. Callers have held mu since then.
func (t *Task) appendAt(now time.Time, body core.Body, foreign *core.Foreign) {
	e := core.Event{Seq: t.last() + 1, Epoch: t.epoch, At: now, Body: body, Foreign: foreign}
	t.log.append(e)
	t.bytes += e.Size()
	k := body.Kind()
	if k.Ends() {
		t.state = Ended
		t.deadline.Stop()
		if t.cancel != nil {
			t.cancel.Stop()
		}
		t.approvals.stop()
	}
	if k == core.KindDone && t.request.Intent != core.IntentNotify {
		t.store.host.Answered(t.request, t.id, &t.log)
	}
	t.store.host.Appended(t.id, e)
	for r := t.readers; r != nil; r = r.after {
		if r.wants(k) {
			t.wake(r)
		}
	}
}

// End ends the task in the name of the hub. It reports false when the task had ended
// before.
func (t *Task) End(body core.Body) bool {
	t.mu.Lock()
	if t.state == Ended {
		t.mu.Unlock()
		return false
	}
	t.append(body, nil)
	worker := t.worker
	t.mu.Unlock()
	t.store.host.Ended(t, worker)
	return true
}

// Refuse ends a task that nobody gets.
func (t *Task) Refuse(f *core.Fault) {
	t.mu.Lock()
	t.receipt.Stage, t.receipt.Fault = core.StageRefused, f
	t.mu.Unlock()
	t.End(core.Failed{Fault: f})
}
