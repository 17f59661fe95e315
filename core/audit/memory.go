package audit

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// Memory is a core.RecordLog in memory, for hubs that store nothing. It keeps what its
// retention allows.
type Memory struct {
	keep journal.Retention

	mu    sync.Mutex
	kept  fifo.Queue[record] // oldest first
	bytes int64
}

type record struct {
	at   time.Time
	data []byte
}

// recordCost is what a record costs beside its bytes.
const recordCost = 64

var _ core.RecordLog = (*Memory)(nil)

// NewMemory returns an empty Memory.
func NewMemory(keep journal.Retention) *Memory { return &Memory{keep: keep.Or()} }

// Append implements core.RecordLog.
func (m *Memory) Append(_ context.Context, records ...[]byte) error {
	if err := core.CheckRecords(records); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for _, r := range records {
		m.kept.Push(record{now, bytes.Clone(r)})
		m.bytes += int64(len(r)) + recordCost
	}
	m.trim(now)
	return nil
}

// trim drops the oldest records beyond the retention. Callers hold mu.
func (m *Memory) trim(now time.Time) {
	for m.kept.Len() > 0 && (m.bytes > m.keep.Bytes || now.Sub(m.kept.First().at) > m.keep.Age) {
		r, _ := m.kept.Pop()
		m.bytes -= int64(len(r.data)) + recordCost
	}
}

// Replay implements core.RecordLog.
func (m *Memory) Replay(_ context.Context, yield func(time.Time, []byte) bool) error {
	m.mu.Lock()
	m.trim(time.Now())
	all := slices.Clone(m.kept.Items())
	m.mu.Unlock()
	for _, r := range all {
		if !yield(r.at, bytes.Clone(r.data)) {
			break
		}
	}
	return nil
}
