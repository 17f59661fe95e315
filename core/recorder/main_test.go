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
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/usage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// disk is a journal in memory that can be slow, refuse and hang.
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

// stage is a recorder, its journal, and a store of tasks that it records. It is the host
// of the store.
type stage struct {
	*recorder.Recorder
	disk  *disk
	spent *ledger
	tasks *task.Store
	log   bytes.Buffer

	mu     sync.Mutex
	counts map[string]int
}

// ledger is a usage store that can refuse.
type ledger struct {
	coretest.MemoryUsage
	mu      sync.Mutex
	refuses error
}

func (l *ledger) Append(ctx context.Context, records ...usage.Record) error {
	l.mu.Lock()
	refuses := l.refuses
	l.mu.Unlock()
	if refuses != nil {
		return refuses
	}
	return l.MemoryUsage.Append(ctx, records...)
}

func (l *ledger) refuse(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refuses = why
}

// start starts a recorder. The test stops it.
func start(maxLag time.Duration) *stage {
	s := &stage{disk: &disk{Memory: journal.NewMemory(journal.Retention{})}, spent: &ledger{}, counts: map[string]int{}}
	s.tasks = task.NewStore(task.Limits{TaskBytes: 1 << 20, FinishedTasks: 100, FinishedBytes: 1 << 20}, s, s.disk)
	s.Recorder = recorder.Start(recorder.Options{
		Journal: s.disk, Usage: s.spent, Find: s.tasks.Get, MaxLag: maxLag, Count: s.Count, Log: slog.New(slog.NewTextHandler(&s.log, nil)),
	})
	return s
}

// run opens a task that is recorded, and gives it to a worker.
func (s *stage) run() (*task.Task, *worker) {
	t := s.tasks.New(core.Principal{ID: "ann"}, policy.Chain{}, core.Request{To: core.ToAny(), Deadline: time.Now().Add(time.Hour)}, core.Trace{})
	s.tasks.Open(t)
	s.Record(t)
	w := &worker{}
	t.Assign(task.Assignment{Worker: w, Agent: "bob"})
	return t, w
}

// report reports what has to be accepted.
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

// stop stops the recorder, which has to have written everything.
func (s *stage) stop(t *testing.T) {
	t.Helper()
	if err := s.Stop(s.unrecorded); err != nil {
		t.Errorf("stopping: got %v, want no error", err)
	}
}

// unrecorded returns how many tasks the journal does not have.
func (s *stage) unrecorded() (n int) {
	for _, t := range s.tasks.InMemory() {
		if !t.IsRecorded() {
			n++
		}
	}
	return n
}

// read returns what the journal has of a task.
func (s *stage) read(t *testing.T, one *task.Task) []core.Event {
	t.Helper()
	events, err := s.disk.Read(t.Context(), one.ID(), 0, 0)
	if err != nil {
		t.Fatalf("reading task %s: %v", one.ID(), err)
	}
	return events
}

func (s *stage) counted(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[name]
}

// The host of the store.

func (s *stage) Count(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[name]++
}

func (s *stage) Spend(t *task.Task, r usage.Record, late bool) []usage.BudgetStatus {
	if late {
		s.SpentLate(t, r)
	}
	return nil
}

func (s *stage) JournalBehind() bool                           { return s.Behind() }
func (s *stage) Appended(core.TaskID, core.Event)              {}
func (s *stage) Answered(core.Request, core.TaskID, *task.Log) {}
func (s *stage) Recorded(core.TaskID, uint64)                  {}
func (s *stage) BudgetsCrossed([]usage.BudgetStatus)           {}
func (s *stage) Ended(*task.Task, task.Worker)                 {}
func (s *stage) CancelUnanswered(*task.Task)                   {}

// worker is an agent that reads nothing.
type worker struct{}

func (*worker) Ready(*task.Reader)        {}
func (*worker) Features() core.Features   { return 0 }
func (*worker) Principal() core.Principal { return core.Principal{ID: "bob"} }
