package coretest

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// MemoryLog is a core.RecordLog in memory, which keeps every record. The zero MemoryLog
// is empty.
type MemoryLog struct {
	mu   sync.Mutex
	kept []logged
}

type logged struct {
	at   time.Time
	data []byte
}

// Append implements core.RecordLog.
func (m *MemoryLog) Append(_ context.Context, records ...[]byte) error {
	if err := core.CheckRecords(records); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range records {
		m.kept = append(m.kept, logged{time.Now(), bytes.Clone(r)})
	}
	return nil
}

// Replay implements core.RecordLog.
func (m *MemoryLog) Replay(_ context.Context, yield func(time.Time, []byte) bool) error {
	m.mu.Lock()
	kept := slices.Clone(m.kept)
	m.mu.Unlock()
	for _, r := range kept {
		if !yield(r.at, bytes.Clone(r.data)) {
			break
		}
	}
	return nil
}

// MemoryUsage is a usage.Store in memory, which keeps every record. The zero MemoryUsage
// is empty.
type MemoryUsage struct {
	mu   sync.Mutex
	kept []usage.Record
}

// Append implements usage.Store.
func (m *MemoryUsage) Append(_ context.Context, records ...usage.Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range records {
		r.At = r.At.Truncate(time.Millisecond)
		m.kept = append(m.kept, r)
	}
	return nil
}

// Replay implements usage.Store.
func (m *MemoryUsage) Replay(_ context.Context, yield func(usage.Record) bool) error {
	m.mu.Lock()
	kept := slices.Clone(m.kept)
	m.mu.Unlock()
	first := usage.Once(yield)
	for _, r := range kept {
		if !first(r) {
			break
		}
	}
	return nil
}
