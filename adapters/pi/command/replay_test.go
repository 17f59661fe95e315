package command

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// What is remembered keeps to its bounds, and every name leads to what has it.
func TestTheMemoryOfCommandsKeepsItsBoundsAndItsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newReplayCache(Options{MaxOutcomes: 5, OutcomeBytes: 20 * OutcomeOverhead, KeyTTL: 10 * time.Second})
		now := time.Unix(0, 0)
		var inFlight []*tracked
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "seconds")) * time.Second)
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				m.forgetNamespace(Namespace{Conn: rapid.Uint64Range(1, 3).Draw(t, "leaves")})
			case 1, 2, 3:
				id, key := rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e", "f", "g", "h"}).Draw(t, "id"), rapid.SampledFrom([]string{"", "", "k", "l"}).Draw(t, "key")
				k := &tracked{commandInfo: commandInfo{name: id, key: key}, ids: appendIDs(nil, Namespace{Conn: rapid.Uint64Range(0, 3).Draw(t, "conn")}, id, key), x: &Execution{}}
				if key != "" {
					k.keyed = scopedKey{"", "s", key}
				}
				if before, conflict := m.find(k, now); before == nil && conflict == "" {
					m.add(k)
					inFlight = append(inFlight, k)
				}
			default:
				if len(inFlight) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(inFlight)-1).Draw(t, "finishes")
				m.settle(inFlight[i], response{data: []byte(strings.Repeat("x", rapid.IntRange(0, 9*OutcomeOverhead).Draw(t, "bytes")))}, now)
				inFlight = slices.Delete(inFlight, i, i+1)
			}
			checkMemory(t, &m)
		}
	})
}

func checkMemory(t *rapid.T, m *replayCache) {
	held, outcomes := 0, map[*tracked]bool{}
	for e := m.order.Front(); e != nil; e = e.Next() {
		k := e.Value.(*tracked)
		held, outcomes[k] = held+k.size, true
		if len(k.ids) == 0 && k.keyed == (scopedKey{}) {
			t.Fatalf("%+v is kept, and nothing leads to it", k.commandInfo)
		}
	}
	if held != m.bytes || held > m.maxBytes {
		t.Fatalf("got %d bytes held and %d said, want them alike and at most %d", held, m.bytes, m.maxBytes)
	}
	for of, line := range m.namespaces {
		if line.Len() > m.maxIDs || line.Len() == 0 {
			t.Fatalf("got %d outcomes of %v, want 1 to %d", line.Len(), of, m.maxIDs)
		}
	}
	for _, k := range slices.Concat(slices.Collect(maps.Values(m.ids)), slices.Collect(maps.Values(m.keys))) {
		if k.x == nil && !outcomes[k] {
			t.Fatalf("a name leads to %+v, which is not kept", k.commandInfo)
		}
	}
}
