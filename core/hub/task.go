package hub

import (
	"context"
	"slices"
	"sort"
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

// Task is a unit of work: one requester, one cause, one sequence of events and
// exactly one end (promises P1 and P2). It is safe for concurrent use.
type Task struct {
	hub    *Hub
	opener *Session // nil of a task that was read from the journal
	id     core.TaskID
	from   core.Principal
	chain  policy.Chain

	mu      sync.Mutex
	request core.Request
	told    int // how many turns of its history the requester sent
	log     eventLog
	lost    uint64 // up to here the events fell to retention
	holed   bool   // of those that were read from the journal, some in between were damaged; it does not change
	bytes   int
	epoch   uint32
	state   State
	// loaded says that the task was read from the journal: it has ended, and its
	// text may be merged. It does not change.
	loaded   bool
	shown    bool // its end was told, or may be: see endWaits
	output   bool // the agent has answered something
	asked    bool // a cancel was requested
	readers  *reader
	lastRead *reader   // the last of the readers
	few      [4]reader // the journal, who answers and two who asked or look on: most tasks have no others
	worker   *Session
	agent    core.AgentID
	attempt  int
	tried    []attempt
	receipt  core.Receipt
	deadline *time.Timer   // rings when the task is due
	due      time.Time     // the deadline, or when an agent has had its time
	within   time.Duration // how long that is; 0 where the deadline comes first
	cancel   *time.Timer
	waiting  *Session
	recorded uint64
	waiters  []recordWaiter
	warned   []usage.BudgetStatus // the budgets of which the agent was told
	late     uint64               // how many usage events came behind the end
	approvals
}

// ID names the task.
func (t *Task) ID() core.TaskID { return t.id }

// From is who asked.
func (t *Task) From() core.Principal { return t.from }

// Hops is how many tasks stand above it in its chain of causes.
func (t *Task) Hops() int { return t.chain.Hops }

// Request returns what was asked, with the history that its agent should have.
func (t *Task) Request() core.Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.request
}

// Agent returns who works or worked on it; "" before it was assigned.
func (t *Task) Agent() core.AgentID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.agent
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

// hasEnded reports whether the log has its end, told or not.
func (t *Task) hasEnded() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state == Ended
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
	a := log.fold(n)
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

// last returns the last sequence number. Callers hold mu.
func (t *Task) last() uint64 {
	if t.log.len() > 0 {
		return t.log.last().End()
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
		t.hub.questions.taskEnded(t.id)
	}
	if k == core.KindDone && t.request.Intent != core.IntentNotify {
		t.hub.addTurns(t.request, t.id, &t.log) // before anybody hears of the end, and asks on
	}
	if o := t.hub.observer; o != nil {
		o.Appended(t.id, e)
	}
	for r := t.readers; r != nil; r = r.after {
		if r.wants(k) {
			t.wake(r)
		}
	}
}

// attach adds a reader that goes on behind next. Callers hold mu.
func (t *Task) attach(s *Session, role Role, tag any, next uint64) *reader {
	r := t.room()
	*r = reader{task: t, sess: s, role: role, tag: tag, next: next}
	if next < t.lost {
		r.gap, r.next = &Gap{From: next + 1, To: t.lost}, t.lost
	}
	if r.before = t.lastRead; r.before == nil {
		t.readers = r
	} else {
		r.before.after = r
	}
	t.lastRead = r
	if role == Viewer && !s.records {
		s.mu.Lock()
		s.viewed.put(t, r)
		s.mu.Unlock()
	}
	if r.gap != nil || (r.next < t.last() && (role != caller || t.state == Ended)) {
		t.wake(r)
	}
	return r
}

// room is for one more reader. Callers hold mu.
func (t *Task) room() *reader {
	for i := range t.few {
		if t.few[i].task == nil {
			return &t.few[i]
		}
	}
	return new(reader)
}

// detach removes the reader of a session in a role that is not Viewer, of which there
// are few and which stand in front. Callers hold mu.
func (t *Task) detach(s *Session, role Role) {
	for r := t.readers; r != nil; r = r.after {
		if r.sess == s && r.role == role {
			t.drop(r)
			return
		}
	}
}

// drop removes a reader. Callers hold mu. Its room stays as long as the task does, and
// keeps nothing of whose it was.
func (t *Task) drop(r *reader) {
	r.gone, r.sess, r.tag = true, nil, nil
	if r.before == nil {
		t.readers = r.after
	} else {
		r.before.after = r.after
	}
	if r.after == nil {
		t.lastRead = r.before
	} else {
		r.after.before = r.before
	}
	r.before, r.after = nil, nil
}

// take returns what is new for a reader that was ready; false if nothing is.
func (t *Task) take(r *reader) (Batch, bool) {
	if r.role == caller {
		return t.takeEnd(r)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r.queued = false
	if r.gone {
		return Batch{}, false
	}
	b := Batch{Task: t, Role: r.role, Tag: r.tag}
	if r.gap != nil {
		b.Gap, r.gap = r.gap, nil
		t.goOn(r)
		return b, true
	}
	i, end := t.index(r.next), t.log.len()
	if r.waitsForRecord() {
		end = t.readable()
		r.held = end < t.log.len()
	}
	if i >= end {
		return Batch{}, false
	}
	b.Events = t.log.from(i)
	b.Events = b.Events[:min(len(b.Events), end-i)]
	behind := r.next
	if t.holed {
		if first := b.Events[0].Seq; first > behind+1 {
			b.Events, b.Gap, r.next = nil, &Gap{From: behind + 1, To: first - 1}, first-1
			t.goOn(r)
			return b, true
		}
		for k := 1; k < len(b.Events); k++ {
			if b.Events[k].Seq > b.Events[k-1].End()+1 {
				b.Events = b.Events[:k:k]
			}
		}
	}
	r.next = b.Events[len(b.Events)-1].End()
	if rest, ok := b.Events[0].After(behind); ok && rest.Seq != b.Events[0].Seq {
		b.Events = append([]core.Event{rest}, b.Events[1:]...)
	}
	if r.role == Agent {
		b.Events = forAgent(b.Events, r.sess.features())
	}
	t.goOn(r)
	return b, len(b.Events) > 0
}

// goOn makes a reader ready once more if there is more for it, and lets go of one
// that has read all there will ever be. Callers hold mu.
func (t *Task) goOn(r *reader) {
	switch {
	case r.held && t.index(r.next) == t.log.len()-1: // the end comes once it is recorded
	case r.next < t.last():
		t.wake(r)
	case t.state == Ended:
		r.sess.seenToTheEnd(r)
		t.drop(r)
	}
}

// takeEnd returns what waited for the task to end: the output of a tool, or the news.
func (t *Task) takeEnd(r *reader) (Batch, bool) {
	t.mu.Lock()
	r.queued = false
	r.held = t.state == Ended && !r.gone && t.endWaits()
	done, tag := t.state == Ended && !r.gone && !r.held, r.tag
	if done {
		t.drop(r)
	}
	t.mu.Unlock()
	if !done {
		return Batch{}, false
	}
	then, isCall := tag.(func(*Task) *ToolOutput)
	if !isCall {
		return Batch{Task: t, Role: Requester, Tag: tag}, true
	}
	o := then(t)
	return Batch{Tool: o}, o != nil
}

// index returns the place in events of the first that says something beyond the
// sequence number next. Callers hold mu.
func (t *Task) index(next uint64) int {
	if !t.loaded {
		return int(next - t.lost) // sequence numbers have no holes
	}
	return sort.Search(t.log.len(), func(i int) bool { return t.log.at(i).End() > next })
}

// forAgent keeps the events that are said to an agent with these features. Where these
// stand in a row it copies none.
func forAgent(events []core.Event, f core.Features) []core.Event {
	said := func(e core.Event) bool {
		switch k := e.Body.Kind(); {
		case k == core.KindCancelRequested && !f.Has(core.FeatureCancellation),
			k == core.KindInjected && !f.Has(core.FeatureInjection):
			return false
		default:
			return k.ForAgent() || k.Ends()
		}
	}
	from := slices.IndexFunc(events, said)
	if from < 0 {
		return nil
	}
	to := from + 1
	for to < len(events) && said(events[to]) {
		to++
	}
	out := events[from:to:to]
	for _, e := range events[to:] {
		if said(e) {
			out = append(out, e)
		}
	}
	return out
}

type recordWaiter struct {
	seq  uint64
	done chan struct{}
}

// Recorded waits until the journal has the task up to seq: then it survives what
// the journal's sync policy says. It returns the context's error.
func (t *Task) Recorded(ctx context.Context, seq uint64) error {
	t.mu.Lock()
	if t.recorded >= seq || t.loaded {
		t.mu.Unlock()
		return nil
	}
	w := recordWaiter{seq, make(chan struct{})}
	t.waiters = append(t.waiters, w)
	t.mu.Unlock()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// noteRecorded tells the waiters how far the journal has got.
func (t *Task) noteRecorded(seq uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recorded = max(t.recorded, seq)
	if t.state == Ended && t.recorded >= t.last() {
		t.showEnd()
	}
	left := t.waiters[:0]
	for _, w := range t.waiters {
		if w.seq <= seq {
			close(w.done)
		} else {
			left = append(left, w)
		}
	}
	t.waiters = left
	if o := t.hub.observer; o != nil {
		o.Recorded(t.id, seq)
	}
}
