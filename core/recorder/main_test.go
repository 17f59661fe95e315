package recorder_test

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/recorder"
	"github.com/dragoman-hub/dragoman/core/redact"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/usage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// disk is an in-memory journal that can be slow, fail and hang.
type disk struct {
	*journal.Memory
	mu      sync.Mutex
	takes   time.Duration
	refuses error
	failure error // what Health returns
	writes  [][]journal.Record
}

func (d *disk) Append(ctx context.Context, records ...journal.Record) error {
	d.mu.Lock()
	takes, refuses := d.takes, d.refuses
	d.mu.Unlock()
	if refuses != nil {
		return refuses
	}
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return ctx.Err()
	}
	d.mu.Lock()
	d.writes = append(d.writes, append([]journal.Record{}, records...))
	d.mu.Unlock()
	return d.Memory.Append(ctx, records...)
}

func (d *disk) Health() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failure
}

func (d *disk) set(change func(*disk)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(d)
}

// written returns how many writes the journal took.
func (d *disk) written() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.writes)
}

// fixture is a recorder with its journal and the task store that it records. It is the host
// of the store.
type fixture struct {
	*recorder.Recorder
	disk  *disk
	spent *usageStore
	tasks *task.Store
	log   bytes.Buffer

	mu     sync.Mutex
	counts map[string]int
}

// usageStore is a usage store that can fail.
type usageStore struct {
	coretest.MemoryUsage
	mu      sync.Mutex
	refuses error
}

func (l *usageStore) Append(ctx context.Context, records ...usage.Record) error {
	l.mu.Lock()
	refuses := l.refuses
	l.mu.Unlock()
	if refuses != nil {
		return refuses
	}
	return l.MemoryUsage.Append(ctx, records...)
}

func (l *usageStore) refuse(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refuses = why
}

// start starts a recorder, which the test must stop.
func start(maxLag time.Duration) *fixture { return startWith(maxLag, nil) }

// startWith is start for a recorder that redacts.
func startWith(maxLag time.Duration, now func() *redact.Redactor) *fixture {
	s := &fixture{disk: &disk{Memory: journal.NewMemory(journal.Retention{})}, spent: &usageStore{}, counts: map[string]int{}}
	s.tasks = task.NewStore(task.Limits{TaskBytes: 1 << 20, FinishedTasks: 100, FinishedBytes: 1 << 20}, s, s.disk)
	s.Recorder = recorder.Start(recorder.Options{
		Journal: s.disk, Usage: s.spent, Redact: now, Find: s.tasks.Get, MaxLag: maxLag, Count: s.Count, Log: slog.New(slog.NewTextHandler(&s.log, nil)),
	})
	return s
}

// run opens a recorded task and assigns it to a worker.
func (s *fixture) run() (*task.Task, *worker) {
	t := s.tasks.New(core.Principal{ID: "ann"}, policy.Chain{}, core.Request{To: core.ToAny(), Deadline: time.Now().Add(time.Hour)}, core.Trace{}, "")
	s.tasks.Open(t, nil)
	s.Record(t)
	w := &worker{}
	t.Assign(task.Assignment{Worker: w, Agent: "bob"})
	return t, w
}

// report reports events that must be accepted.
func report(t *testing.T, one *task.Task, w *worker, bodies ...core.Body) {
	t.Helper()
	for _, b := range bodies {
		var err error
		if b.Kind().Ends() {
			err = one.Conclude(w, time.Now(), b, nil)
		} else {
			err = one.Report(w, b, nil)
		}
		if err != nil {
			t.Fatalf("reporting %s: %v", b.Kind(), err)
		}
	}
}

// stop stops the recorder, which must have written everything.
func (s *fixture) stop(t *testing.T) {
	t.Helper()
	if err := s.Stop(s.unrecorded); err != nil {
		t.Errorf("stopping: got %v, want no error", err)
	}
}

// unrecorded returns the number of tasks that the journal lacks.
func (s *fixture) unrecorded() (n int) {
	for _, t := range s.tasks.InMemory() {
		if !t.IsRecorded() {
			n++
		}
	}
	return n
}

// read returns the events of a task in the journal.
func (s *fixture) read(t *testing.T, one *task.Task) []core.Event {
	t.Helper()
	events, err := s.disk.Read(t.Context(), one.ID(), 0, 0)
	if err != nil {
		t.Fatalf("reading task %s: %v", one.ID(), err)
	}
	return events
}

func (s *fixture) counted(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[name]
}

// The host of the store.

func (s *fixture) Count(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[name]++
}

func (s *fixture) Priced(u core.Usage) core.Usage { return u }

func (s *fixture) Spend(t *task.Task, r usage.Record, late bool) []usage.BudgetStatus {
	if late {
		s.SpentLate(t, r)
	}
	return nil
}

func (s *fixture) JournalBehind() bool                           { return s.Behind() }
func (s *fixture) Appended(core.TaskID, core.Event)              {}
func (s *fixture) Answered(core.Request, core.TaskID, *task.Log) {}
func (s *fixture) Recorded(core.TaskID, uint64)                  {}
func (s *fixture) BudgetsCrossed([]usage.BudgetStatus)           {}
func (s *fixture) Dropped(core.TaskID, core.ThreadID)            {}
func (s *fixture) Ended(*task.Task, task.Worker)                 {}
func (s *fixture) CancelUnanswered(*task.Task)                   {}
func (s *fixture) Redactor() *redact.Redactor                    { return nil }

// worker is an agent that reads nothing.
type worker struct{}

func (*worker) Ready(*task.Reader) bool   { return true }
func (*worker) Features() core.Features   { return 0 }
func (*worker) Principal() core.Principal { return core.Principal{ID: "bob"} }
