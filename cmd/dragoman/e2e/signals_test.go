package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// signals are named values that a test and what it started wait for. The zero value has none.
type signals struct {
	mu      sync.Mutex
	values  map[string]any
	changed chan struct{} // closed at the next signal; nil while nothing waits
}

// signal sets a value and wakes those who wait for it. A value that is set stays until reset.
func (b *signals) signal(fact string, value any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.values[fact]; known {
		return
	}
	if b.values == nil {
		b.values = map[string]any{}
	}
	b.values[fact] = value
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// reset removes a value.
func (b *signals) reset(fact string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.values, fact)
}

// signalled returns a value, and whether it is set.
func (b *signals) signalled(fact string) (any, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v, ok := b.values[fact]
	return v, ok
}

// wait waits for a value.
func (b *signals) wait(ctx context.Context, fact string) (any, error) {
	for {
		b.mu.Lock()
		v, ok := b.values[fact]
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		news := b.changed
		b.mu.Unlock()
		if ok {
			return v, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			b.mu.Lock()
			defer b.mu.Unlock()
			return nil, fmt.Errorf("waited for %q (%w); what happened: %q", fact, context.Cause(ctx), slices.Sorted(maps.Keys(b.values)))
		}
	}
}
