package coretest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// SharedMemory is the journal of several hubs in memory: the reference of [journal.Shared]. Its hooks
// simulate a network that loses writes and acknowledgements. They are set before the first
// Open, may wait, and are called concurrently.
type SharedMemory struct {
	// Before is called before a write; if it returns an error, nothing is stored, and the
	// writer gets the error. nil does nothing.
	Before func(Write) error
	// After is called after a write that was stored; the writer gets its error. nil does
	// nothing.
	After func(Write) error
	// Reading is called before a life reads; if it returns an error, the reader gets that. nil does
	// nothing.
	Reading func(by journal.Life) error

	keep  journal.Retention
	mu    sync.Mutex
	parts map[string]*sharedPart // by hub
}

// Write is a write to a SharedMemory.
type Write struct {
	// By is the life that writes, and Hub the hub whose part it writes to.
	By  journal.Life
	Hub string
	// Records is what is appended; empty for the message that takes a life over.
	Records []journal.Record
}

// reading calls the hook.
func (m *SharedMemory) reading(by journal.Life) error {
	if m.Reading == nil {
		return nil
	}
	return m.Reading(by)
}

// sharedPart is the part of a hub.
type sharedPart struct {
	records *journal.Memory
	life    journal.Life // the last one
	by      journal.Life // who took it over
}

// NewSharedMemory returns an empty SharedMemory. Each hub keeps as much as keep says.
func NewSharedMemory(keep journal.Retention) *SharedMemory {
	return &SharedMemory{keep: keep, parts: map[string]*sharedPart{}}
}

// Open begins the next life of a hub, which takes over the one before.
func (m *SharedMemory) Open(hub string) *MemoryLife {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.parts[hub]
	if p == nil {
		p = &sharedPart{records: journal.NewMemory(m.keep)}
		m.parts[hub] = p
	}
	p.life, p.by = journal.Life{Hub: hub, Epoch: p.life.Epoch + 1}, journal.Life{}
	return &MemoryLife{Memory: p.records, shared: m, life: p.life, deposed: make(chan struct{})}
}

// append appends to the part of a hub, if its holder is still of, or by, which took of over.
func (m *SharedMemory) append(ctx context.Context, w Write, of, by journal.Life) error {
	if m.Before != nil {
		if err := m.Before(w); err != nil {
			return err
		}
	}
	m.mu.Lock()
	p := m.parts[w.Hub]
	if p.life != of || p.by != by {
		err := &takenOverError{of: of, by: p.holder()}
		m.mu.Unlock()
		return err
	}
	err := p.records.Append(ctx, w.Records...)
	m.mu.Unlock()
	if err == nil && m.After != nil {
		err = m.After(w)
	}
	return err
}

// holder returns the life that may write.
func (p *sharedPart) holder() journal.Life {
	if p.by.Hub != "" {
		return p.by
	}
	return p.life
}

// takenOverError reports who has taken over the part that a life, or its heir, wrote to.
type takenOverError struct{ of, by journal.Life }

// Error implements error.
func (e *takenOverError) Error() string {
	return fmt.Sprintf("the journal of %s was taken over by %s", e.of, e.by)
}

// Unwrap returns ErrFenced.
func (e *takenOverError) Unwrap() error { return journal.ErrFenced }

// MemoryLife is a life of a hub over a SharedMemory.
type MemoryLife struct {
	*journal.Memory
	shared  *SharedMemory
	life    journal.Life
	mu      sync.Mutex
	why     error // why the life is over; nil before it knows
	deposed chan struct{}
}

var _ journal.Shared = (*MemoryLife)(nil)

// Append implements [journal.Journal].
func (l *MemoryLife) Append(ctx context.Context, records ...journal.Record) error {
	if err := l.Health(); err != nil {
		return err
	}
	err := l.shared.append(ctx, Write{By: l.life, Hub: l.life.Hub, Records: records}, l.life, journal.Life{})
	var over *takenOverError
	if errors.As(err, &over) {
		l.depose(over)
	}
	return err
}

// Read implements Journal.
func (l *MemoryLife) Read(ctx context.Context, task core.TaskID, after uint64, limit int) ([]core.Event, error) {
	return l.ReadOf(ctx, l.life.Hub, task, after, limit)
}

// Heads implements Journal.
func (l *MemoryLife) Heads(ctx context.Context, yield func(journal.Head) bool) error {
	return l.HeadsOf(ctx, l.life.Hub, yield)
}

// CompleteTasks implements Journal.
func (l *MemoryLife) CompleteTasks(ctx context.Context, wanted []core.TaskID, yield func(core.TaskID, []core.Event) bool) error {
	if err := l.shared.reading(l.life); err != nil {
		return err
	}
	return l.Memory.CompleteTasks(ctx, wanted, yield)
}

func (l *MemoryLife) depose(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why == nil {
		l.why = why
		close(l.deposed)
	}
}

// Health implements Journal.
func (l *MemoryLife) Health() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

// Life implements Shared.
func (l *MemoryLife) Life() journal.Life { return l.life }

// Deposed implements Shared.
func (l *MemoryLife) Deposed() <-chan struct{} { return l.deposed }

// TakeOver implements Shared.
func (l *MemoryLife) TakeOver(_ context.Context, of journal.Life) (journal.Estate, error) {
	m, w := l.shared, Write{By: l.life, Hub: of.Hub}
	if m.Before != nil {
		if err := m.Before(w); err != nil {
			return nil, err
		}
	}
	e, err := m.takeOver(of, l.life)
	if err == nil && m.After != nil {
		err = m.After(w)
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

func (m *SharedMemory) takeOver(of, by journal.Life) (*memoryEstate, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.parts[of.Hub]
	switch {
	case p == nil:
		return nil, fmt.Errorf("no hub %s is known", of.Hub)
	case p.life.Epoch > of.Epoch:
		return nil, &journal.TakenError{Of: of, By: p.life}
	case p.by.Hub != "" && p.by != by:
		if heir := m.parts[p.by.Hub]; heir.life == p.by && heir.by.Hub == "" {
			return nil, &journal.TakenError{Of: of, By: p.by}
		}
	}
	p.by = by
	return &memoryEstate{shared: m, records: p.records, life: of, by: by}, nil
}

// LifeOf implements Shared.
func (l *MemoryLife) LifeOf(_ context.Context, hub string) (life, by journal.Life, err error) {
	if err := l.shared.reading(l.life); err != nil {
		return life, by, err
	}
	l.shared.mu.Lock()
	defer l.shared.mu.Unlock()
	if p := l.shared.parts[hub]; p != nil {
		life, by = p.life, p.by
	}
	return life, by, nil
}

// ReadOf implements Shared.
func (l *MemoryLife) ReadOf(ctx context.Context, hub string, task core.TaskID, after uint64, limit int) ([]core.Event, error) {
	if err := l.shared.reading(l.life); err != nil {
		return nil, err
	}
	l.shared.mu.Lock()
	p := l.shared.parts[hub]
	l.shared.mu.Unlock()
	if p == nil {
		return nil, journal.ErrUnknown
	}
	return p.records.Read(ctx, task, after, limit)
}

// HeadsOf implements Shared.
func (l *MemoryLife) HeadsOf(ctx context.Context, hub string, yield func(journal.Head) bool) error {
	if err := l.shared.reading(l.life); err != nil {
		return err
	}
	l.shared.mu.Lock()
	p := l.shared.parts[hub]
	l.shared.mu.Unlock()
	if p == nil {
		return nil
	}
	return p.records.Heads(ctx, yield)
}

// memoryEstate is an Estate of a SharedMemory.
type memoryEstate struct {
	shared   *SharedMemory
	records  *journal.Memory
	life, by journal.Life
}

// Life implements Estate.
func (e *memoryEstate) Life() journal.Life { return e.life }

// Heads implements Estate.
func (e *memoryEstate) Heads(ctx context.Context, yield func(journal.Head) bool) error {
	if err := e.shared.reading(e.by); err != nil {
		return err
	}
	return e.records.Heads(ctx, func(h journal.Head) bool { return h.End != 0 || yield(h) })
}

// Append implements Estate.
func (e *memoryEstate) Append(ctx context.Context, records ...journal.Record) error {
	return e.shared.append(ctx, Write{By: e.by, Hub: e.life.Hub, Records: records}, e.life, e.by)
}
