package lru_test

import (
	"slices"
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
	return p, true
}

func (m *model) put(p pair) {
	m.remove(p.Key)
	m.kept = append(m.kept, p)
	m.at[p.Key] = time.Now()
	for m.over() {
		m.evict()
	}
}

func (m *model) over() bool {
	bytes := 0
	for _, p := range m.kept {
		bytes += p.Size
	}
	return m.opts.Count > 0 && len(m.kept) > m.opts.Count || m.opts.Bytes > 0 && bytes > m.opts.Bytes && len(m.kept) > 1
}

func (m *model) evict() {
	if len(m.kept) > 0 {
		m.evicted, m.kept = append(m.evicted, m.kept[0]), m.kept[1:]
	}
}

func (m *model) expire() {
	for m.opts.Age > 0 && len(m.kept) > 0 && time.Since(m.at[m.kept[0].Key]) >= m.opts.Age {
		m.evict()
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
				"evict": func(*rapid.T) {
					m.evict()
					c.Evict()
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
