package journal

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
)

// Retention bounds what a journal keeps. The bound that is reached first applies.
type Retention struct {
	// Age is how long a record is kept; zero means 7 days.
	Age time.Duration
	// Bytes is the size of all records; zero means 1 GiB, and [MemoryBytes] in memory.
	Bytes int64
}

// MemoryBytes is the default of Bytes for a journal in memory, which competes with the rest of
// the process.
const MemoryBytes = 128 << 20

// Or returns the retention with defaults in place of zeros.
func (r Retention) Or() Retention {
	return Retention{Age: cmp.Or(r.Age, 7*24*time.Hour), Bytes: cmp.Or(r.Bytes, 1<<30)}
}

// Memory is a Journal in memory. Its records are lost with the process.
type Memory struct {
	keep Retention

	mu    sync.Mutex
	tasks map[core.TaskID]*kept
	order fifo.Queue[mark] // every record, oldest first
	bytes int64
}

type kept struct {
	events []core.Event
	lost   uint64 // the last sequence number that retention dropped
}

type mark struct {
	task core.TaskID
	at   time.Time
	size int64
}

// NewMemory returns an empty Memory.
func NewMemory(keep Retention) *Memory {
	keep.Bytes = cmp.Or(keep.Bytes, MemoryBytes)
	return &Memory{keep: keep.Or(), tasks: map[core.TaskID]*kept{}}
}

// Append implements Journal.
func (m *Memory) Append(_ context.Context, records ...Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range records {
		k := m.tasks[r.Task]
		if k == nil {
			k = &kept{lost: r.Event.Seq - 1} // all of the task was dropped before
			m.tasks[r.Task] = k
		}
		if n := len(k.events); n > 0 && k.events[n-1].End() >= r.Event.Seq {
			continue // written before
		}
		k.events = append(k.events, r.Event)
		size := int64(r.Event.Size())
		m.order.Push(mark{r.Task, time.Now(), size})
		m.bytes += size
	}
	m.trim()
	return nil
}

// trim drops the oldest records beyond the retention. Callers hold mu.
func (m *Memory) trim() {
	oldest := time.Now().Add(-m.keep.Age)
	for m.order.Len() > 0 && (m.bytes > m.keep.Bytes || m.order.First().at.Before(oldest)) {
		o, _ := m.order.Pop()
		k := m.tasks[o.task]
		k.lost = k.events[0].End()
		k.events[0] = core.Event{}
		if k.events = k.events[1:]; len(k.events) == 0 {
			delete(m.tasks, o.task)
		}
		m.bytes -= o.size
	}
}

// Read implements Journal.
func (m *Memory) Read(_ context.Context, task core.TaskID, after uint64, limit int) ([]core.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trim()
	k := m.tasks[task]
	if k == nil {
		return nil, ErrUnknown
	}
	var gap error
	if after < k.lost {
		gap = &GapError{Task: task, From: after + 1, To: k.lost}
	}
	var out []core.Event
	for _, e := range k.events {
		if rest, ok := e.AfterSeq(after); ok {
			out = append(out, rest)
			if limit > 0 && len(out) == limit {
				break
			}
		}
	}
	return out, gap
}

// Heads implements Journal.
func (m *Memory) Heads(_ context.Context, yield func(Head) bool) error {
	m.mu.Lock()
	m.trim()
	heads := make([]Head, 0, len(m.tasks))
	for id, k := range m.tasks {
		head := Head{Task: id, Thread: ThreadOf(k.events[0])}
		if o, ok := k.events[0].Body.(core.Opened); ok && o.Key != "" {
			head.Key, head.From = o.Key, o.From.ID
		}
		head.ThreadTask = m.tasks[core.TaskID(head.Thread)] != nil
		if last := k.events[len(k.events)-1]; last.Body.Kind().Ends() {
			head.End, head.At = last.Body.Kind(), last.At
		} else {
			head.Last = last
		}
		heads = append(heads, head)
	}
	m.mu.Unlock()
	slices.SortFunc(heads, func(a, b Head) int { return cmp.Compare(a.Task, b.Task) })
	for _, h := range heads {
		if !yield(h) {
			break
		}
	}
	return nil
}

// CompleteTasks implements Journal.
func (m *Memory) CompleteTasks(ctx context.Context, tasks []core.TaskID, yield func(core.TaskID, []core.Event) bool) error {
	for _, task := range tasks {
		events, err := m.Read(ctx, task, 0, 0)
		if err == nil && events[0].Seq == 1 && events[len(events)-1].Body.Kind().Ends() && !yield(task, events) {
			break
		}
	}
	return nil
}

// Health implements Journal.
func (m *Memory) Health() error { return nil }

// Close implements Journal.
func (m *Memory) Close() error { return nil }
