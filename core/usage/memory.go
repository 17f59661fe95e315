package usage

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core/fifo"
)

// Memory is a Store in memory. Its records are lost with the process.
type Memory struct {
	keep Retention

	mu   sync.Mutex
	kept fifo.Queue[Record] // oldest first
	size int64
	add  func(Record) bool
}

// NewMemory returns an empty Memory.
func NewMemory(keep Retention) *Memory {
	m := &Memory{keep: keep.Or()}
	m.add = Once(func(s Record) bool {
		s.At = s.At.Truncate(time.Millisecond)
		m.kept.Push(s)
		m.size += s.bytes()
		return true
	})
	return m
}

// bytes estimates the memory that a record takes.
func (s Record) bytes() int64 {
	const header = 80
	return int64(header + len(s.Task) + len(s.Agent) + len(s.Requester) + len(s.Thread))
}

// Append implements Store.
func (m *Memory) Append(_ context.Context, records ...Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range records {
		m.add(s)
	}
	m.trim()
	return nil
}

// trim drops the oldest records beyond the retention. Callers hold mu.
func (m *Memory) trim() {
	oldest := time.Now().Add(-m.keep.Age)
	for m.kept.Len() > 0 && (m.size > m.keep.Bytes || m.kept.First().At.Before(oldest)) {
		s, _ := m.kept.Pop()
		m.size -= s.bytes()
	}
}

// Replay implements Store.
func (m *Memory) Replay(_ context.Context, yield func(Record) bool) error {
	m.mu.Lock()
	m.trim()
	kept := slices.Clone(m.kept.Items())
	m.mu.Unlock()
	for _, s := range kept {
		if !yield(s) {
			break
		}
	}
	return nil
}
