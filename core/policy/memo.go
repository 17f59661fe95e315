package policy

import (
	"hash/maphash"
	"slices"
	"sync/atomic"

	"github.com/dragoman-hub/dragoman/core"
)

// memo remembers which rules match a principal or a receiver. It is bounded in bytes and in
// entries, safe for concurrent use, and never blocks: each slot is replaced as a whole.
type memo struct {
	seed  maphash.Seed
	slots []atomic.Pointer[memory]
	turn  atomic.Uint32
	bytes atomic.Int64
}

// The sizes of memos. A question to everybody asks about every agent with the hub's lock held,
// so that 10,000 agents have to find room with 10,000 rules, too.
const (
	principalSlots = 8192
	agentSlots     = 32768
	packSlots      = 1024
	memoWays       = 8
	// memoBytes bounds what one memo keeps, the lists of names of its keys included.
	memoBytes = 32 << 20
	// memoryBytes is about the size of an entry without its lists.
	memoryBytes = 160
)

// key is what a memo finds rules by: the id of a principal with its roles and a right, the id
// of an agent with what it declares, or the id of a pack.
type key struct {
	id    string
	right core.Right
	a, b  []string
}

// undeclared stands for the right in the key of an agent of which nothing else is known.
const undeclared = core.RightOperate

// memory is an entry of a memo.
type memory struct {
	key
	rules lines
	bytes int64
}

func newMemo(slots int) *memo {
	return &memo{seed: maphash.MakeSeed(), slots: make([]atomic.Pointer[memory], slots)}
}

// find returns the rules of the key, nil if they are not known.
func (m *memo) find(k *key) lines {
	at := m.at(k)
	for i := at; i < at+memoWays; i++ {
		if e := m.slots[i].Load(); e != nil && e.right == k.right && e.id == k.id && same(e.a, k.a) && same(e.b, k.b) {
			return e.rules
		}
	}
	return nil
}

// at returns the first of the slots that a key may have.
func (m *memo) at(k *key) int {
	return int((maphash.String(m.seed, k.id)+uint64(k.right))%uint64(len(m.slots)/memoWays)) * memoWays
}

// keep remembers the rules of a key, in place of those of another key if need be.
func (m *memo) keep(k key, rules lines) {
	e := &memory{key: k, rules: rules, bytes: memoryBytes + int64(len(k.id)+8*len(rules))}
	for _, list := range [][]string{k.a, k.b} {
		for _, name := range list {
			e.bytes += int64(len(name)) + 16
		}
	}
	if m.bytes.Load()+e.bytes > memoBytes {
		m.clear()
	}
	at := m.at(&k)
	slot := &m.slots[at+int(m.turn.Add(1)%memoWays)]
	for i := range memoWays {
		if m.slots[at+i].Load() == nil {
			slot = &m.slots[at+i]
			break
		}
	}
	m.replace(slot, e)
}

func (m *memo) clear() {
	for i := range m.slots {
		m.replace(&m.slots[i], nil)
	}
}

func (m *memo) replace(slot *atomic.Pointer[memory], e *memory) {
	if e != nil {
		m.bytes.Add(e.bytes)
	}
	if old := slot.Swap(e); old != nil {
		m.bytes.Add(-old.bytes)
	}
}

// same reports whether two lists are equal: at once if they are one list in memory.
func same(a, b []string) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}
