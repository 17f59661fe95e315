package lru_test

import (
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core/lru"
)

// pair is a value that is as large as it says.
type pair struct{ Key, Size int }

// model is a Cache in its simplest form.
type model struct {
	opts    lru.Options[int, int]
	kept    []pair // oldest first
	owners  []int  // those with values, in the order in which they came
	at      map[int]time.Time
	evicted []pair
}

func (m *model) remove(key int) (pair, bool) {
	i := slices.IndexFunc(m.kept, func(p pair) bool { return p.Key == key })
	if i < 0 {
		return pair{}, false
	}
	p := m.kept[i]
	m.kept = slices.Delete(m.kept, i, i+1)
	m.owners = slices.DeleteFunc(m.owners, func(o int) bool { n, _ := m.has(o); return n == 0 })
	return p, true
}

// ownerOf returns whose a key is.
func ownerOf(key int) int { return key % 3 }

// has returns how many values an owner has, and how many bytes.
func (m *model) has(owner int) (values, bytes int) {
	for _, p := range m.kept {
		if ownerOf(p.Key) == owner {
			values, bytes = values+1, bytes+p.Size
		}
	}
	return values, bytes
}

// first returns the index of what a bound drops first.
func (m *model) first() int {
	if m.opts.Owner == nil {
		return 0
	}
	most := slices.MaxFunc(m.owners, func(a, b int) int { // the first of several
		manyA, bytesA := m.has(a)
		manyB, bytesB := m.has(b)
		if m.opts.Count > 0 && len(m.kept) > m.opts.Count {
			return manyA - manyB
		}
		return bytesA - bytesB
	})
	return slices.IndexFunc(m.kept, func(p pair) bool { return ownerOf(p.Key) == most })
}

func (m *model) put(p pair) {
	m.remove(p.Key)
	m.kept = append(m.kept, p)
	if !slices.Contains(m.owners, ownerOf(p.Key)) {
		m.owners = append(m.owners, ownerOf(p.Key))
	}
	m.at[p.Key] = time.Now()
	own := func(o pair) bool { return ownerOf(o.Key) == ownerOf(p.Key) }
	if all := slices.DeleteFunc(slices.Clone(m.kept), func(o pair) bool { return !own(o) }); m.opts.Each > 0 && len(all) > m.opts.Each {
		m.drop(slices.IndexFunc(m.kept, own))
	}
	for m.over() {
		m.drop(m.first())
	}
}

func (m *model) over() bool {
	bytes := 0
	for _, p := range m.kept {
		bytes += p.Size
	}
	return m.opts.Count > 0 && len(m.kept) > m.opts.Count || m.opts.Bytes > 0 && bytes > m.opts.Bytes && len(m.kept) > 1
}

func (m *model) drop(i int) {
	p, _ := m.remove(m.kept[i].Key)
	m.evicted = append(m.evicted, p)
}

func (m *model) expire() {
	for m.opts.Age > 0 && len(m.kept) > 0 && time.Since(m.at[m.kept[0].Key]) >= m.opts.Age {
		m.drop(0)
	}
}

func TestACacheKeepsTheNewestWithinItsBoundsAndTellsWhatItDrops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Without its deadline, which a bubble does not have.
		rapid.Check(struct{ rapid.TB }{t}, func(t *rapid.T) {
			var evicted []pair
			opts := lru.Options[int, int]{
				Count: rapid.IntRange(0, 5).Draw(t, "count"), Bytes: rapid.IntRange(0, 20).Draw(t, "bytes"), Age: time.Duration(rapid.IntRange(0, 5).Draw(t, "age")) * time.Second,
				Size:    func(_, size int) int { return size },
				Evicted: func(key, size int) { evicted = append(evicted, pair{key, size}) },
			}
			if rapid.Bool().Draw(t, "owners") {
				opts.Owner = func(key, _ int) string { return strconv.Itoa(ownerOf(key)) }
				opts.Each = rapid.IntRange(0, 3).Draw(t, "each")
			}
			c, m := lru.New(opts), &model{opts: opts, at: map[int]time.Time{}}
			key, size := rapid.IntRange(0, 8), rapid.IntRange(0, 10)
			check := func(what string, got, want any) {
				t.Helper()
				if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
					t.Fatalf("%s (-want +got):\n%s", what, d)
				}
			}
			t.Repeat(map[string]func(*rapid.T){
				"put": func(t *rapid.T) {
					p := pair{key.Draw(t, "key"), size.Draw(t, "size")}
					m.expire()
					m.put(p)
					c.Put(p.Key, p.Size)
				},
				"get": func(t *rapid.T) {
					k := key.Draw(t, "key")
					m.expire()
					i := slices.IndexFunc(m.kept, func(p pair) bool { return p.Key == k })
					got, ok := c.Get(k)
					check("found", ok, i >= 0)
					if ok {
						check("value", got, m.kept[i].Size)
					}
				},
				"remove": func(t *rapid.T) {
					k := key.Draw(t, "key")
					m.expire()
					want, wantOK := m.remove(k)
					got, ok := c.Remove(k)
					check("removed", []any{got, ok}, []any{want.Size, wantOK})
				},
				"wait": func(t *rapid.T) { time.Sleep(time.Duration(rapid.IntRange(1, 3).Draw(t, "seconds")) * time.Second) },
				"": func(*rapid.T) {
					m.expire()
					c.Expire()
					check("length", c.Len(), len(m.kept))
					var kept []pair
					for k, v := range c.All() {
						kept = append(kept, pair{k, v})
					}
					check("kept", kept, m.kept)
					check("evicted", evicted, m.evicted)
				},
			})
		})
	})
}

func TestWhatIsYieldedMayBeRemoved(t *testing.T) {
	c := lru.New(lru.Options[int, int]{})
	for i := range 5 {
		c.Put(i, i)
	}
	var seen []int
	for k := range c.All() {
		seen = append(seen, k)
		if c.Remove(k); k == 3 {
			break
		}
	}
	if !slices.Equal(seen, []int{0, 1, 2, 3}) || c.Len() != 1 {
		t.Errorf("got %v and %d left, want 0 to 3 and one", seen, c.Len())
	}
}

// BenchmarkPut puts into a full cache.
func BenchmarkPut(b *testing.B) {
	c := lru.New(lru.Options[int, int]{Count: 10_000, Age: time.Hour})
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		c.Put(i, i)
		i++
	}
}

func BenchmarkGet(b *testing.B) {
	c := lru.New(lru.Options[int, int]{Count: 10_000, Age: time.Hour})
	for i := range 10_000 {
		c.Put(i, i)
	}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		c.Get(i % 10_000)
		i++
	}
}
