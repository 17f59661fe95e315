package task

import (
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/memory"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/quota"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// Worker is the connection of the agent that a task was given to. Values are compared
// with ==.
type Worker interface {
	Inbox
	// Features returns what the agent declared.
	Features() core.Features
}

// Task is a unit of work: one requester, one cause, one sequence of events and
// exactly one end (promises P1 and P2). It is safe for concurrent use.
//
// A Task is one of two forms of the same work: as it was said, for who asked, who works on it and who
// opens it by its id; or redacted, which is all that lists and streams hand out of the tasks of
// others: see [Task.Redacted].
type Task struct {
	*life
	hides bool // it is the redacted form
}

// life is what both forms of a task share.
type life struct {
	plain, redacted Task

	store *Store
	id    core.TaskID
	from  core.Principal
	chain policy.Chain
	trace core.Trace
	key   string

	mu       sync.Mutex
	request  core.Request
	ownTurns int         // how many turns of its history the requester sent
	handed   []core.File // attachments of earlier turns, for its agent
	handedOf []core.TaskID
	log      Log
	lost     uint64 // retention dropped the events up to this one
	holed    bool   // the journal lacks events in between; it does not change
	bytes    int
	share    memory.Share // while the store or a reader holds it
	stored   bool         // the store holds it
	retained bool         // as one that has ended
	work     *quota.Work  // what it counts for its requester until it ends; may be nil
	machine
	// loaded says that the task was read from the journal: it has ended, and its text may
	// be merged. It does not change.
	loaded    bool
	remote    bool        // another hub owns it
	unstored  bool        // and has stored nothing of it
	dropped   bool        // the content of its request was dropped
	beyond    uint64      // the first event that came behind a hole, for which the owner was asked; 0 if none did
	sparse    bool        // it was loaded, is condensed, or has been a remote: its text may be merged, and numbers missing
	leaving   *core.Event // the record of a move that is prepared
	moved     uint64      // the number of the record by which it has left this hub; 0 if it has not
	endShown  bool        // readers may see its end: see endWaits
	readers   *Reader
	lastRead  *Reader   // the last of the readers
	few       [4]Reader // memory for the first readers; most tasks have no others
	worker    Worker
	alarm     *time.Timer   // has the hub act, and may do so early; nil for a remote task
	within    time.Duration // the maximum time of the agent; 0 for none
	limit     time.Time     // when that is over
	grace     time.Time     // when that of a cancel is over; zero for none
	recorded  uint64
	waiters   []recordWaiter
	warned    []usage.BudgetStatus // the budgets of which the agent was warned
	late      uint64               // how many usage events came after the end
	byDefault bool                 // the deadline is a default
	began     time.Time            // when it was opened
	decideIn  time.Duration        // how long a decision is waited for
	waiting   bool                 // patience knows that people are waited for
	patience  patience
}

// newTask returns the form of a task as it was said.
func newTask(l *life) *Task {
	l.machine, l.decideIn = newMachine(), l.store.limits.QuestionTimeout
	l.plain, l.redacted = Task{life: l}, Task{life: l, hides: true}
	return &l.plain
}

// shortTask is how many events a task is expected to have at least.
const shortTask = 6

// New returns a task that waits for an agent, with the key of its [core.Opened]. [Store.Open] opens it.
func (s *Store) New(from core.Principal, chain policy.Chain, req core.Request, trace core.Trace, key string) *Task {
	return newTask(&life{store: s, from: from, chain: chain, trace: trace, key: key, request: req, ownTurns: len(req.History), log: newLog(shortTask), share: memory.Of(s.limits.Memory, memory.Logs)})
}

// ID names the task.
func (t *Task) ID() core.TaskID { return t.id }

// From returns the requester.
func (t *Task) From() core.Principal { return t.from }

// Hops returns the number of tasks above it in its chain of causes.
func (t *Task) Hops() int { return t.chain.Hops }

// Chain returns its chain of causes. For a task that was read from the journal it has only
// the number of hops.
func (t *Task) Chain() policy.Chain { return t.chain }

// Trace returns its trace; zero for a task that was read from the journal.
func (t *Task) Trace() core.Trace { return t.trace }

// Key returns the mark of a request that may be repeated; "" for none, and for a task that was not
// opened here.
func (t *Task) Key() string { return t.key }

// Request returns the request, with the history for its agent.
func (t *Task) Request() core.Request {
	t.mu.Lock()
	r := t.request
	t.mu.Unlock()
	return t.redactor().Request(r)
}

// AgentRequest returns the request as its agent gets it: also with the files of earlier turns.
func (t *Task) AgentRequest() core.Request {
	r := t.Request()
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.handed) > 0 {
		r.Attachments, r.Handed = slices.Concat(r.Attachments, t.handed), t.handedOf
	}
	return r
}

// To returns its address.
func (t *Task) To() core.Address { return t.request.To }

// Intent returns its intent.
func (t *Task) Intent() core.Intent { return t.request.Intent }

// IsNotice reports whether it is a notice, which needs no answer.
func (t *Task) IsNotice() bool { return t.request.Intent == core.IntentNotify }

// Options returns the options that its agent is to set.
func (t *Task) Options() core.Options { return t.request.Options }

// Thread returns its conversation; its own id if it shares none.
func (t *Task) Thread() core.ThreadID { return t.request.Thread }

// IsTurn reports whether it is a turn of a thread that it shares with others. Notices are
// not part of a thread.
func (t *Task) IsTurn() bool { return !t.IsNotice() && t.SharedThread() != "" }

// SharedThread returns the thread that it shares with others; "" if it shares none.
func (t *Task) SharedThread() core.ThreadID {
	if t.request.Thread == core.ThreadID(t.id) {
		return ""
	}
	return t.request.Thread
}

// IsBranch reports whether it begins its thread as a branch of another one.
func (t *Task) IsBranch() bool { return t.request.Branch != "" }

// Topic returns its topic if it is a notice, else "".
func (t *Task) Topic() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.request.Notice == nil {
		return ""
	}
	return t.request.Notice.Topic
}

// Size estimates the memory of the request in bytes.
func (t *Task) Size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.request.Size()
}

// Last returns the last event, even if readers may not see it yet.
func (t *Task) Last() core.Event {
	log := t.Log()
	return log.Last()
}

// Cursor returns the place of its latest event: the zero Cursor before there is one.
func (t *Task) Cursor() core.Cursor {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last() == 0 {
		return core.Cursor{}
	}
	return core.Cursor{Epoch: t.epoch, Seq: t.last()}
}

// Priority returns its priority.
func (t *Task) Priority() core.Priority { return t.request.Priority }

// Agent returns the agent that works or worked on it; "" before it was assigned.
func (t *Task) Agent() core.AgentID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.agent
}

// Worker returns the connection of that agent, or nil.
func (t *Task) Worker() Worker {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.worker
}

// State returns its state. It is Ended only once readers may see the end.
func (t *Task) State() State {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.endWaits() {
		return Running
	}
	return t.state
}

// IsCancelling reports whether a cancel was requested, whether or not the task has ended since.
func (t *Task) IsCancelling() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cancelling
}

// HasEnded reports whether the log has its end, even if readers may not see it yet.
func (t *Task) HasEnded() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state == Ended
}

// IsDone reports whether the task has succeeded.
func (t *Task) IsDone() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state == Ended && t.log.Last().Body.Kind() == core.KindDone
}

// Receipt returns its receipt (promise P4).
func (t *Task) Receipt() core.Receipt {
	t.mu.Lock()
	r := t.progress()
	t.mu.Unlock()
	return t.redactor().Receipt(r)
}

// progress is Receipt. Callers hold mu.
func (t *Task) progress() core.Receipt {
	r := t.receipt
	r.Task = t.id
	return r
}

// Answer returns the outcome so far.
func (t *Task) Answer() core.Answer {
	t.mu.Lock()
	n := t.known()
	log := t.log
	t.mu.Unlock()
	if t.hides {
		log = LogOf(t.said(log.slice(n)))
		n = log.Len()
	}
	a := log.Fold(n)
	a.Truncated = a.Truncated || t.holed
	return a
}

// Events returns the events so far, at least the first one. They may share memory with the log: read only.
func (t *Task) Events() []core.Event {
	t.mu.Lock()
	n := t.known()
	log := t.log
	t.mu.Unlock()
	return t.said(log.slice(n))
}

// Log returns the events so far, and the end even if readers may not see it yet.
func (t *Task) Log() Log {
	t.mu.Lock()
	log := t.log
	t.mu.Unlock()
	if !t.hides {
		return log
	}
	return LogOf(t.said(log.slice(log.Len())))
}

// last returns the last sequence number. Callers hold mu.
func (t *Task) last() uint64 {
	if t.log.Len() > 0 {
		return t.log.Last().End()
	}
	return t.lost
}

// append adds an event to the log and wakes its readers. Callers hold mu and have checked
// that the task has not ended.
func (t *Task) append(body core.Body, foreign *core.Foreign) { t.appendAt(time.Now(), body, foreign) }

// appendAt is append with a given time. Callers have held mu since that time.
func (t *Task) appendAt(now time.Time, body core.Body, foreign *core.Foreign) {
	if body.Kind().Ends() {
		t.close(body)
	}
	t.take(core.Event{Seq: t.last() + 1, Epoch: t.epoch, At: now, Body: body, Foreign: foreign})
}

// take adds an event to the log and wakes its readers. Callers hold mu.
func (t *Task) take(e core.Event) {
	t.log.append(e)
	t.machine.apply(e)
	t.leaving = nil // its record would have the number of this event
	size := e.Size()
	t.bytes += size
	k := e.Body.Kind()
	if k != core.KindOpened { // Open has counted the request
		t.share.Add(size + eventOverhead)
		t.work.Add(size)
	}
	if k.Ends() {
		t.share.Become(memory.Ended)
		t.work.End()
		if t.alarm != nil {
			t.alarm.Stop()
		}
		t.handed, t.handedOf = nil, nil
		t.patience.end()
	} else {
		t.noteWaits()
	}
	if k == core.KindDone && t.request.Intent != core.IntentNotify {
		t.store.host.Answered(t.request, t.id, &t.log)
	}
	if !t.remote { // the owner's host has it
		t.store.host.Appended(t.id, e)
	}
	for r, next := t.readers, (*Reader)(nil); r != nil; r = next {
		next = r.after
		if r.wakes(k) {
			t.announce(r)
		}
	}
}

// End ends the task in the name of the hub. It reports false if the task had ended already, or if
// another hub owns it.
func (t *Task) End(body core.Body) bool { return t.end(body, nil) }

// Refuse ends a task that no agent gets. It reports false as [Task.End] does.
func (t *Task) Refuse(f *core.Fault) bool { return t.end(core.Failed{Fault: f}, f) }

// end is End, and for a refusal Refuse.
func (t *Task) end(body core.Body, refused *core.Fault) bool {
	t.mu.Lock()
	if t.state == Ended || t.remote {
		t.mu.Unlock()
		return false
	}
	if refused != nil {
		t.receipt.Stage, t.receipt.Fault = core.StageRefused, refused
	}
	t.append(body, nil)
	worker := t.worker
	t.mu.Unlock()
	t.store.host.Ended(t, worker)
	return true
}

// DropContent has a task to which nothing has happened yet, and which is to be refused, forget what was asked, and by
// which key: who is refused makes the hub keep nothing of any size. The journal must not have the task yet, and no
// reader at this hub.
func (t *Task) DropContent() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.log.Len() == 1 && !t.remote {
		t.dropContent()
	}
}

// dropContent is DropContent for a task whose log has the first event alone. Callers hold mu.
func (t *Task) dropContent() {
	before := t.request.Size()
	t.request.DropContent() // not the whole request: the rest is read without the lock
	t.key, t.dropped = "", true
	first := t.log.At(0)
	first.Body = t.opened()
	t.log = LogOf([]core.Event{first})
	freed := before - t.request.Size()
	t.bytes -= freed
	t.share.Add(-freed)
	t.work.Add(-freed)
}
