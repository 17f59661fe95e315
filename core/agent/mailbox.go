package agent

import (
	"context"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
)

// Mailbox holds what an agent is told about one task until it takes it: see [Turn.Next]. The hub
// bounds what a task says, and so what a Mailbox holds.
type Mailbox struct {
	news chan struct{}

	mu    sync.Mutex
	queue []core.Body
}

// NewMailbox returns an empty Mailbox.
func NewMailbox() *Mailbox { return &Mailbox{news: make(chan struct{}, 1)} }

// Put adds a body. It never waits.
func (m *Mailbox) Put(b core.Body) {
	m.mu.Lock()
	m.queue = append(m.queue, b)
	m.mu.Unlock()
	select {
	case m.news <- struct{}{}:
	default:
	}
}

// Take waits for the next body, and returns the cause of the context that ends first: one of the
// caller, or that of the task.
func (m *Mailbox) Take(ctx, task context.Context) (core.Body, error) {
	for {
		m.mu.Lock()
		if len(m.queue) > 0 {
			b := m.queue[0]
			m.queue = m.queue[1:]
			m.mu.Unlock()
			return b, nil
		}
		m.mu.Unlock()
		select {
		case <-m.news:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-task.Done():
			return nil, context.Cause(task)
		}
	}
}
