package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// board is where those who take part in a test say what has happened, and others
// wait for it. The zero board is empty.
type board struct {
	mu    sync.Mutex
	facts map[string]any
	news  chan struct{} // closed at the next fact; nil while nobody waits
}

// post says that something has happened. What was said first stands.
func (b *board) post(fact string, value any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.facts[fact]; known {
		return
	}
	if b.facts == nil {
		b.facts = map[string]any{}
	}
	b.facts[fact] = value
	if b.news != nil {
		close(b.news)
		b.news = nil
	}
}

// strike takes back a fact that is so no longer.
func (b *board) strike(fact string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.facts, fact)
}

// posted returns what was said of a fact, and whether it is one.
func (b *board) posted(fact string) (any, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v, ok := b.facts[fact]
	return v, ok
}

// wait waits for a fact and returns what was said of it.
func (b *board) wait(ctx context.Context, fact string) (any, error) {
	for {
		b.mu.Lock()
		v, ok := b.facts[fact]
		if b.news == nil {
			b.news = make(chan struct{})
		}
		news := b.news
		b.mu.Unlock()
		if ok {
			return v, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			b.mu.Lock()
			defer b.mu.Unlock()
			return nil, fmt.Errorf("waited in vain for %q (%w); what happened: %q", fact, context.Cause(ctx), slices.Sorted(maps.Keys(b.facts)))
		}
	}
}
