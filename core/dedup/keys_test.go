package dedup_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core/dedup"
)

// known is what a model has of a key.
type known struct {
	owner            string
	key, fingerprint int
	value            int
	settled          bool
	at               time.Time
}

// keysModel is Keys in its simplest form: what is pending, and then what is settled in the
// order in which it was.
type keysModel struct {
	opts   dedup.Options
	known  []known
	owners []string // those with settled keys, in the order in which they came
}

func (m *keysModel) expire() {
	m.known = slices.DeleteFunc(m.known, func(k known) bool {
		return m.opts.Age > 0 && k.settled && time.Since(k.at) >= m.opts.Age
	})
	m.owners = slices.DeleteFunc(m.owners, func(o string) bool { return m.count(o) == 0 })
}

func (m *keysModel) index(owner string, key int) int {
	return slices.IndexFunc(m.known, func(k known) bool { return k.owner == owner && k.key == key })
}

func (m *keysModel) find(owner string, key, fingerprint int) (int, dedup.Verdict) {
	m.expire()
	i := m.index(owner, key)
	if i < 0 {
		return 0, dedup.Fresh
	}
	switch k := m.known[i]; {
	case k.fingerprint != fingerprint:
		return k.value, dedup.Conflict
	case k.settled:
		return k.value, dedup.Settled
	default:
		return k.value, dedup.Pending
	}
}

func (m *keysModel) begin(owner string, key, fingerprint, value int) (int, dedup.Verdict) {
	before, verdict := m.find(owner, key, fingerprint)
	if verdict == dedup.Fresh {
		m.known = append(m.known, known{owner: owner, key: key, fingerprint: fingerprint, value: value})
	}
	return before, verdict
}

func (m *keysModel) settle(owner string, key, value int) {
	m.expire()
	i := m.index(owner, key)
	if i < 0 || m.known[i].settled {
		return
	}
	k := m.known[i]
	k.value, k.settled, k.at = value, true, time.Now()
	m.known = append(slices.Delete(m.known, i, i+1), k)
	if !slices.Contains(m.owners, owner) {
		m.owners = append(m.owners, owner)
	}
	if m.opts.Each > 0 && m.count(owner) > m.opts.Each {
		m.evict(owner)
	}
	if m.opts.All > 0 && m.all() > m.opts.All {
		most := m.owners[0]
		for _, o := range m.owners {
			if m.count(o) > m.count(most) {
				most = o
			}
		}
		m.evict(most)
	}
}

func (m *keysModel) count(owner string) (n int) {
	for _, k := range m.known {
		if k.owner == owner && k.settled {
			n++
		}
	}
	return n
}

func (m *keysModel) all() (n int) {
	for _, o := range m.owners {
		n += m.count(o)
	}
	return n
}

func (m *keysModel) evict(owner string) {
	i := slices.IndexFunc(m.known, func(k known) bool { return k.owner == owner && k.settled })
	m.known = slices.Delete(m.known, i, i+1)
	m.expire()
}

func (m *keysModel) forget(which func(known) bool) {
	m.expire()
	m.known = slices.DeleteFunc(m.known, which)
	m.expire()
}

func TestKeysTellWhatCameBeforeWithinItsBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Without its deadline, which a bubble does not have.
		rapid.Check(struct{ rapid.TB }{t}, func(t *rapid.T) {
			opts := dedup.Options{Each: rapid.IntRange(0, 4).Draw(t, "each")}
			// With both, which keys go depends on when their age is looked at.
			if rapid.Bool().Draw(t, "aging") {
				opts.Age = 3 * time.Second
			} else {
				opts.All = rapid.IntRange(0, 6).Draw(t, "all")
			}
			memory, m := dedup.New[int, int, int](opts), &keysModel{opts: opts}
			owner, key, fingerprint := rapid.SampledFrom([]string{"a", "b", "c"}), rapid.IntRange(0, 6), rapid.IntRange(0, 3)
			value := 0
			same := func(before int, verdict dedup.Verdict, want int, wantVerdict dedup.Verdict) {
				t.Helper()
				if before != want || verdict != wantVerdict {
					t.Fatalf("got %d, verdict %d, want %d, %d", before, verdict, want, wantVerdict)
				}
			}
			t.Repeat(map[string]func(*rapid.T){
				"find": func(t *rapid.T) {
					o, k, p := owner.Draw(t, "owner"), key.Draw(t, "key"), fingerprint.Draw(t, "fingerprint")%2
					want, wantVerdict := m.find(o, k, p)
					before, verdict := memory.Find(o, k, p)
					same(before, verdict, want, wantVerdict)
				},
				"begin": func(t *rapid.T) {
					o, k, p := owner.Draw(t, "owner"), key.Draw(t, "key"), fingerprint.Draw(t, "fingerprint")%2
					value++
					want, wantVerdict := m.begin(o, k, p, value)
					before, verdict := memory.Begin(o, k, p, value)
					same(before, verdict, want, wantVerdict)
				},
				"settle": func(t *rapid.T) {
					o, k := owner.Draw(t, "owner"), key.Draw(t, "key")
					value++
					m.settle(o, k, value)
					memory.Settle(o, k, value)
				},
				"forget": func(t *rapid.T) {
					o, k := owner.Draw(t, "owner"), key.Draw(t, "key")
					m.forget(func(x known) bool { return x.owner == o && x.key == k })
					memory.Forget(o, k)
				},
				"wait": func(*rapid.T) { time.Sleep(time.Second) },
				"": func(t *rapid.T) {
					for _, o := range []string{"a", "b", "c"} {
						for k := range 7 {
							want, wantVerdict := m.find(o, k, 0)
							before, verdict := memory.Find(o, k, 0)
							same(before, verdict, want, wantVerdict)
						}
					}
					if memory.Len() != m.all() {
						t.Fatalf("got %d settled, want %d", memory.Len(), m.all())
					}
				},
			})
		})
	})
}

func TestAnOwnerThatFloodsForgetsItsOwnKeys(t *testing.T) {
	m := dedup.New[int, int, string](dedup.Options{All: 100})
	settle := func(owner string, key int) {
		m.Begin(owner, key, 0, "")
		m.Settle(owner, key, "")
	}
	settle("quiet", 1)
	for key := range 1000 {
		settle("loud", key)
	}
	if _, verdict := m.Find("quiet", 1, 0); verdict != dedup.Settled {
		t.Errorf("the key of another: got verdict %d, want it settled", verdict)
	}
	if _, verdict := m.Find("loud", 900, 0); verdict != dedup.Fresh || m.Len() != 100 {
		t.Errorf("got verdict %d of an old key and %d keys, want it forgotten and 100", verdict, m.Len())
	}
}

func TestOfOwnersWithAKeyEachTheFirstIsForgotten(t *testing.T) {
	m := dedup.New[int, int, string](dedup.Options{All: 3})
	for i := range 5 {
		owner := fmt.Sprint(i)
		m.Begin(owner, 1, 0, "")
		m.Settle(owner, 1, "")
	}
	left := map[string]bool{}
	for i := range 5 {
		if _, verdict := m.Find(fmt.Sprint(i), 1, 0); verdict == dedup.Settled {
			left[fmt.Sprint(i)] = true
		}
	}
	if got := slices.Sorted(maps.Keys(left)); !slices.Equal(got, []string{"2", "3", "4"}) {
		t.Errorf("got %v left, want the last three", got)
	}
}

func TestKeysOfOwnersThatAreSilentAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := dedup.New[int, int, string](dedup.Options{Age: time.Minute})
		for i := range 10 {
			m.Begin(fmt.Sprint(i), 1, 0, "")
			m.Settle(fmt.Sprint(i), 1, "")
		}
		time.Sleep(time.Minute)
		if m.Begin("10", 1, 0, ""); m.Len() != 0 {
			t.Errorf("got %d settled keys, want none", m.Len())
		}
	})
}

// BenchmarkBeginAndSettle adds keys to a full memory.
func BenchmarkBeginAndSettle(b *testing.B) {
	m := dedup.New[int, int, int](dedup.Options{All: 10_000, Age: time.Hour})
	owners := []string{"a", "b", "c", "d"}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		owner := owners[i%len(owners)]
		m.Begin(owner, i, 0, i)
		m.Settle(owner, i, i)
		i++
	}
}
