package fifo

import (
	"context"
	"sync"
)

// Mailbox is a queue for goroutines that work off what others put there. It is safe for concurrent use.
type Mailbox[T any] struct {
	limit int
	size  func(T) int
	ready chan struct{} // has a token while there are values
	room  chan struct{} // has a token when there is room again

	mu     sync.Mutex
	queue  Queue[T]
	bytes  int
	closed bool
}

// NewMailbox returns an empty Mailbox. limit bounds the sizes of what waits together; the first value always has
// room. Without size nothing is bounded.
func NewMailbox[T any](limit int, size func(T) int) *Mailbox[T] {
	m := &Mailbox[T]{limit: limit, size: size, ready: make(chan struct{}, 1)}
	if size != nil {
		m.room = make(chan struct{}, 1)
	}
	return m
}

// Signal wakes the receiver of a channel with room for one token, now or when it receives next.
func Signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Put adds a value, whatever waits. It reports false once the Mailbox is closed.
func (m *Mailbox[T]) Put(v T) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.add(v)
}

// Offer adds a value if there is room, and reports whether it did.
func (m *Mailbox[T]) Offer(v T) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fits(v) && m.add(v)
}

// PutWithin adds a value once there is room. It reports false if ctx or the Mailbox ends before. One goroutine
// at a time may call it.
func (m *Mailbox[T]) PutWithin(ctx context.Context, v T) bool {
	for {
		m.mu.Lock()
		if m.closed || m.fits(v) {
			defer m.mu.Unlock()
			return m.add(v)
		}
		m.mu.Unlock()
		select {
		case <-m.room:
		case <-ctx.Done():
			return false
		}
	}
}

// fits reports whether there is room. Callers hold mu.
func (m *Mailbox[T]) fits(v T) bool {
	return m.size == nil || m.bytes == 0 || m.bytes+m.size(v) <= m.limit
}

func (m *Mailbox[T]) add(v T) bool {
	if m.closed {
		return false
	}
	if m.size != nil {
		m.bytes += m.size(v)
	}
	m.queue.Push(v)
	Signal(m.ready)
	return true
}

// Ready has a token when there may be values that nobody has taken.
func (m *Mailbox[T]) Ready() <-chan struct{} { return m.ready }

// Poll takes the first value, and reports whether there was one.
func (m *Mailbox[T]) Poll() (T, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.queue.Pop()
	if ok {
		m.freed(v)
	}
	if m.queue.Len() > 0 {
		Signal(m.ready) // for another goroutine that takes
	}
	return v, ok
}

// freed gives back the room of a value. Callers hold mu.
func (m *Mailbox[T]) freed(v T) {
	if m.size != nil {
		m.bytes -= m.size(v)
		Signal(m.room)
	}
}

// PollAll takes all values.
func (m *Mailbox[T]) PollAll() []T {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.queue.Items()
	m.queue, m.bytes = Queue[T]{}, 0
	if m.size != nil {
		Signal(m.room)
	}
	return all
}

// Take waits for the first value and takes it. It returns the cause of the context that ends first: that of the
// caller, or of what the Mailbox belongs to.
func (m *Mailbox[T]) Take(ctx, owner context.Context) (v T, err error) {
	for {
		if v, ok := m.Poll(); ok {
			return v, nil
		}
		select {
		case <-m.ready:
		case <-ctx.Done():
			return v, context.Cause(ctx)
		case <-owner.Done():
			return v, context.Cause(owner)
		}
	}
}

// Remove removes the first value for which match returns true, and reports whether there was one.
func (m *Mailbox[T]) Remove(match func(T) bool) (removed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queue.DeleteFirst(1, func(v T) bool {
		if match(v) {
			m.freed(v)
			removed = true
		}
		return removed
	})
	return removed
}

// Len returns how many values wait.
func (m *Mailbox[T]) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.queue.Len()
}

// Close returns what waits, and drops all that is put later.
func (m *Mailbox[T]) Close() []T {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	return m.PollAll()
}
