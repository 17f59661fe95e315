package policy

import (
	"slices"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/lru"
)

// memo remembers which rules match principals, or receivers. It is safe for concurrent use.
type memo struct {
	mu   sync.Mutex
	sets *lru.Cache[key, memory]
}

// The bounds of a memo. A question to everybody asks about every agent with the hub's lock held,
// so that 10,000 agents have to find room with 10,000 rules, too.
const (
	memoEntries = 32768
	memoBytes   = 32 << 20 // with the lists of names
	memoryBytes = 256      // about the size of an entry without its lists
)

// key is the id of a principal with a right, of an agent, or of a pack.
type key struct {
	id    string
	right core.Right
	// pack says that it is a pack, and undeclared an agent of which nothing else is known.
	pack, undeclared bool
}

// memory is the rules that match a key together with lists of names: the roles of a principal, or
// what an agent declares. It has the lists that were used last.
type memory struct {
	a, b  []string
	rules lines
}

func newMemo() *memo {
	return &memo{sets: lru.New(lru.Options[key, memory]{Count: memoEntries, Bytes: memoBytes, Size: func(k key, m memory) int {
		bytes := memoryBytes + len(k.id) + 8*len(m.rules)
		for _, name := range slices.Concat(m.a, m.b) {
			bytes += len(name) + 16
		}
		return bytes
	}})}
}

// find returns the rules of a key with two lists, nil if they are not known.
func (m *memo) find(k key, a, b []string) lines {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.sets.Get(k); ok && same(known.a, a) && same(known.b, b) {
		return known.rules
	}
	return nil
}

// keep remembers the rules of a key with two lists.
func (m *memo) keep(k key, a, b []string, rules lines) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sets.Put(k, memory{a, b, rules})
}

// same reports whether two lists are equal: at once if they are one list in memory.
func same(a, b []string) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}
