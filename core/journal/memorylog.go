package journal

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
)

// MemoryLog is a core.RecordLog in memory. Its records are lost with the process.
type MemoryLog struct {
	keep Retention

	mu    sync.Mutex
	kept  fifo.Queue[logged] // oldest first
	bytes int64
}

type logged struct {
	at   time.Time
	data []byte
}

var _ core.RecordLog = (*MemoryLog)(nil)

// NewMemoryLog returns an empty MemoryLog.
func NewMemoryLog(keep Retention) *MemoryLog { return &MemoryLog{keep: keep.Or()} }

// Append implements core.RecordLog.
func (m *MemoryLog) Append(_ context.Context, records ...[]byte) error {
	if err := core.CheckRecords(records); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range records {
		m.kept.Push(logged{time.Now(), bytes.Clone(r)})
		m.bytes += int64(len(r))
	}
	m.trim()
	return nil
}

// trim drops the oldest records beyond the retention. Callers hold mu.
func (m *MemoryLog) trim() {
	oldest := time.Now().Add(-m.keep.Age)
	for m.kept.Len() > 0 && (m.bytes > m.keep.Bytes || m.kept.First().at.Before(oldest)) {
		r, _ := m.kept.Pop()
		m.bytes -= int64(len(r.data))
	}
}

// Replay implements core.RecordLog.
func (m *MemoryLog) Replay(_ context.Context, yield func(time.Time, []byte) bool) error {
	m.mu.Lock()
	m.trim()
	kept := slices.Clone(m.kept.Items())
	m.mu.Unlock()
	for _, r := range kept {
		if !yield(r.at, bytes.Clone(r.data)) {
			break
		}
	}
	return nil
}
