package task_test

import (
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/redact"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/usage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// host is the host of a Store in tests. It records its calls.
type host struct {
	mu       sync.Mutex
	appended map[core.TaskID][]core.Event
	answered []core.TaskID
	recorded map[core.TaskID]uint64
	ended    []core.TaskID
	ignored  []core.TaskID // tasks whose agents did not answer a cancel
	spent    []usage.Record
	counts   map[string]int
	behind   bool
	near     []usage.BudgetStatus // what Spend returns
	crossed  []usage.BudgetStatus
	redactor *redact.Redactor // nil redacts nothing
}

func (h *host) Appended(id core.TaskID, e core.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.appended[id] = append(h.appended[id], e)
}

func (h *host) Answered(_ core.Request, id core.TaskID, _ *task.Log) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answered = append(h.answered, id)
}

func (h *host) Recorded(id core.TaskID, seq uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recorded[id] = seq
}

func (*host) Dropped(core.TaskID, core.ThreadID) {}

func (h *host) JournalBehind() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.behind
}

func (h *host) setBehind(behind bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.behind = behind
}

func (h *host) Priced(u core.Usage) core.Usage { return u }

func (h *host) Spend(_ *task.Task, r usage.Record, _ bool) []usage.BudgetStatus {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.spent = append(h.spent, r)
	return slices.Clone(h.near)
}

func (h *host) Count(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[name]++
}

func (h *host) counted(name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.counts[name]
}

func (h *host) Redactor() *redact.Redactor { return h.redactor }

func (h *host) BudgetsCrossed(b []usage.BudgetStatus) { h.crossed = append(h.crossed, b...) }

func (h *host) Ended(t *task.Task, _ task.Worker) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = append(h.ended, t.ID())
}

func (h *host) CancelUnanswered(t *task.Task) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ignored = append(h.ignored, t.ID())
}

// inbox collects the readers that are ready.
type inbox struct {
	mu    sync.Mutex
	ready []*task.Reader
	calls int
}

func (in *inbox) Ready(r *task.Reader) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.ready = append(in.ready, r)
	in.calls++
	return true
}

func (*inbox) Principal() core.Principal { return core.Principal{ID: "reader"} }

func (in *inbox) pop() *task.Reader {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.ready) == 0 {
		return nil
	}
	r := in.ready[0]
	in.ready = in.ready[1:]
	return r
}

// take returns the pieces that the ready readers have.
func (in *inbox) take() (pieces []task.Piece) {
	for r := in.pop(); r != nil; r = in.pop() {
		if p, ok := r.Take(); ok {
			pieces = append(pieces, p)
		}
	}
	return pieces
}

// read returns the sequence numbers, the gaps and the ends that the ready readers have,
// as text: "1 2 gap 3-4 5 over".
func (in *inbox) read() string {
	var b []byte
	add := func(s string) {
		if len(b) > 0 {
			b = append(b, ' ')
		}
		b = append(b, s...)
	}
	number := func(n uint64) string { return strconv.FormatUint(n, 10) }
	for _, p := range in.take() {
		if p.Gap != nil {
			add("gap " + number(p.Gap.From) + "-" + number(p.Gap.To))
		}
		for _, e := range p.Events {
			if e.End() == e.Seq {
				add(number(e.Seq))
			} else {
				add(number(e.Seq) + "-" + number(e.End()))
			}
		}
		if p.Over {
			add("over")
		}
	}
	return string(b)
}

// worker is the connection of an agent.
type worker struct {
	inbox
	features core.Features
}

func (w *worker) Features() core.Features { return w.features }

const day = 24 * time.Hour

var limits = task.Limits{
	TaskBytes: 1 << 20, RequestBytes: 1 << 10, QuestionTimeout: time.Minute, CancelGrace: 5 * time.Second,
	Retries: 2, FinishedTasks: 100, FinishedBytes: 1 << 20,
}

// newStore returns a Store with the limits of the tests and a journal in memory.
func newStore() (*task.Store, *host, *journal.Memory) { return newStoreWith(limits) }

func newStoreWith(l task.Limits) (*task.Store, *host, *journal.Memory) {
	h := &host{appended: map[core.TaskID][]core.Event{}, recorded: map[core.TaskID]uint64{}, counts: map[string]int{}}
	j := journal.NewMemory(journal.Retention{})
	return task.NewStore(l, h, j), h, j
}

// open opens a task for any agent, with a deadline of a day.
func open(s *task.Store) *task.Task {
	return openRequest(s, core.Request{Intent: core.IntentAsk, To: core.ToAny(), Content: "why?"})
}

func openRequest(s *task.Store, r core.Request) *task.Task {
	if r.Deadline.IsZero() {
		r.Deadline = time.Now().Add(day)
	}
	t := s.New(core.Principal{ID: "ann"}, policy.Chain{}, r, core.Trace{}, "")
	s.Open(t, nil)
	return t
}

// assign gives a task to a new worker of the agent "bob" with all features.
func assign(t *task.Task) *worker {
	w := &worker{features: core.FeatureCancellation | core.FeatureInjection}
	t.Assign(task.Assignment{Worker: w, Agent: "bob"})
	return w
}

// run opens a task and assigns it: its log has the sequence numbers 1 and 2.
func run(s *task.Store) (*task.Task, *worker) {
	t := open(s)
	return t, assign(t)
}

// report reports events that must be accepted.
func report(t *testing.T, one *task.Task, w task.Worker, bodies ...core.Body) {
	t.Helper()
	for _, b := range bodies {
		if err := one.Report(w, b, nil); err != nil {
			t.Fatalf("reporting %s: %v", b.Kind(), err)
		}
	}
}

// conclude ends a task as its agent does.
func conclude(t *testing.T, one *task.Task, w task.Worker, end core.Body) {
	t.Helper()
	if err := one.Conclude(w, time.Now(), end, nil); err != nil {
		t.Fatalf("concluding with %s: %v", end.Kind(), err)
	}
}

// record writes the events of a task so far to the journal.
func record(t *testing.T, j journal.Journal, one *task.Task) {
	t.Helper()
	log := one.Log()
	for e := range log.All() {
		if err := j.Append(t.Context(), journal.Record{Task: one.ID(), Event: e}); err != nil {
			t.Fatal(err)
		}
	}
	last := log.Last()
	one.SetRecorded(last.End())
}

// kinds returns the kinds of a task's log, in order.
func kinds(one *task.Task) (all []string) {
	log := one.Log()
	for e := range log.All() {
		all = append(all, e.Body.Kind().String())
	}
	return all
}

// wantKinds checks the kinds of a task's log.
func wantKinds(t *testing.T, one *task.Task, want ...string) {
	t.Helper()
	if got := kinds(one); !slices.Equal(got, want) {
		t.Errorf("log: got %q, want %q", got, want)
	}
}

// wantFault checks the code of an error.
func wantFault(t *testing.T, what string, err error, code core.Code) {
	t.Helper()
	if err == nil || core.AsFault(err).Code != code {
		t.Errorf("%s: got %v, want a Fault %s", what, err, code)
	}
}

// wantRead checks what an inbox reads.
func wantRead(t *testing.T, who string, in *inbox, want string) {
	t.Helper()
	if got := in.read(); got != want {
		t.Errorf("%s reads %q, want %q", who, got, want)
	}
}

// askPeople has the agent ask people a question in the task.
func askPeople(t *testing.T, one *task.Task, w task.Worker, id string) {
	t.Helper()
	if err := one.Ask(w, core.QuestionAsked{ID: id, Text: "which way?"}); err != nil {
		t.Fatalf("asking %s: %v", id, err)
	}
}
