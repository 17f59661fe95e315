package usage_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/usage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var groupings = []usage.By{usage.ByAgent, usage.ByThread, usage.ByRequester, usage.ByDay, usage.ByTask}

func totals(t *testing.T, l *usage.Ledger, by usage.By) []usage.Total {
	t.Helper()
	got, err := l.Totals(by)
	if err != nil {
		t.Fatalf("by %s: got %v, want no error", by, err)
	}
	return got
}

func TestTokensAddUpInEveryGrouping(t *testing.T) {
	l := usage.NewLedger()
	monday := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	one := core.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Thinking: 5}
	ten := core.Usage{Input: 10, Output: 20, CacheRead: 30, CacheWrite: 40, Thinking: 50}
	l.Add(usage.Record{Task: "1", Agent: "ben", Thread: "t", Requester: "ana", At: monday, Tokens: one})
	l.Add(usage.Record{Task: "1", Agent: "ben", Thread: "u", Requester: "ana", At: monday.AddDate(0, 0, 1), Tokens: ten})
	l.Add(usage.Record{Task: "2", Agent: "ali", Thread: "t", Requester: "cem", At: monday, Tokens: ten})
	both := one.Add(ten)
	for by, want := range map[usage.By][]usage.Total{
		usage.ByAgent:     {{Key: "ali", Tokens: ten, Events: 1, Unpriced: 1}, {Key: "ben", Tokens: both, Events: 2, Unpriced: 2}},
		usage.ByThread:    {{Key: "t", Tokens: both, Events: 2, Unpriced: 2}, {Key: "u", Tokens: ten, Events: 1, Unpriced: 1}},
		usage.ByRequester: {{Key: "ana", Tokens: both, Events: 2, Unpriced: 2}, {Key: "cem", Tokens: ten, Events: 1, Unpriced: 1}},
		usage.ByDay:       {{Key: "2026-01-05", Tokens: both, Events: 2, Unpriced: 2}, {Key: "2026-01-06", Tokens: ten, Events: 1, Unpriced: 1}},
		usage.ByTask:      {{Key: "1", Tokens: both, Events: 2, Unpriced: 2}, {Key: "2", Tokens: ten, Events: 1, Unpriced: 1}},
	} {
		if d := cmp.Diff(want, totals(t, l, by)); d != "" {
			t.Errorf("by %s (-want +got):\n%s", by, d)
		}
	}
}

func TestDaysAreInUTC(t *testing.T) {
	l := usage.NewLedger()
	east := time.FixedZone("east", 9*60*60)
	west := time.FixedZone("west", -8*60*60)
	for _, at := range []time.Time{
		time.Date(2026, 1, 6, 3, 0, 0, 0, east),          // the evening before in UTC
		time.Date(2026, 1, 5, 20, 0, 0, 0, west),         // the morning after in UTC
		time.Date(2026, 1, 5, 23, 59, 59, 999, time.UTC), // the last moment
		time.Date(2026, 1, 6, 0, 0, 0, 0, time.UTC),      // the first
	} {
		l.Add(usage.Record{At: at, Tokens: core.Usage{Input: 1}})
	}
	want := []usage.Total{
		{Key: "2026-01-05", Tokens: core.Usage{Input: 2}, Events: 2, Unpriced: 2},
		{Key: "2026-01-06", Tokens: core.Usage{Input: 2}, Events: 2, Unpriced: 2},
	}
	if d := cmp.Diff(want, totals(t, l, usage.ByDay)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestAnUnknownGroupingIsRefused(t *testing.T) {
	for _, by := range []usage.By{"", "agents", "Agent", "model"} {
		got, err := usage.NewLedger().Totals(by)
		if !errors.Is(err, &core.Fault{Code: core.CodeInvalid}) || got != nil {
			t.Errorf("by %q: got %v and %v, want an invalid fault", by, got, err)
			continue
		}
		if !strings.Contains(err.Error(), "use agent, thread, requester, day or task") {
			t.Errorf("by %q: got %q, want it to say what to use", by, err)
		}
	}
}

func TestAnEmptyLedgerHasNoTotals(t *testing.T) {
	l := usage.NewLedger()
	for _, by := range groupings {
		if got := totals(t, l, by); got == nil || len(got) != 0 {
			t.Errorf("by %s: got %v, want an empty list", by, got)
		}
	}
}

func TestEveryGroupingHasTheSameTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := usage.NewLedger()
		name := rapid.SampledFrom([]string{"", "a", "b", "c"})
		tokens := rapid.Int64Range(0, 1<<40)
		var want core.Usage
		n := int64(rapid.IntRange(0, 20).Draw(t, "events"))
		for range n {
			u := core.Usage{Input: tokens.Draw(t, "input"), Output: tokens.Draw(t, "output"), Thinking: tokens.Draw(t, "thinking")}
			want = want.Add(u)
			l.Add(usage.Record{
				Agent: core.AgentID(name.Draw(t, "agent")), Thread: core.ThreadID(name.Draw(t, "thread")), Requester: name.Draw(t, "requester"),
				At: time.Unix(rapid.Int64Range(0, 1<<20).Draw(t, "at"), 0), Tokens: u,
			})
		}
		for _, by := range groupings {
			all, err := l.Totals(by)
			if err != nil {
				t.Fatal(err)
			}
			var got core.Usage
			var events int64
			last := ""
			for i, total := range all {
				got, events = got.Add(total.Tokens), events+total.Events
				if i > 0 && total.Key <= last {
					t.Fatalf("by %s: got %q after %q, want them in order", by, total.Key, last)
				}
				last = total.Key
			}
			if got != want || events != n {
				t.Fatalf("by %s: got %+v of %d events, want %+v of %d", by, got, events, want, n)
			}
		}
	})
}

func TestConcurrentRecordsAreAllCounted(t *testing.T) {
	l := usage.NewLedger()
	const writers, each = 8, 250
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for range each {
				l.Add(usage.Record{Agent: "a", Tokens: core.Usage{Output: 1}})
				if _, err := l.Totals(usage.ByAgent); err != nil {
					t.Errorf("reading: got %v, want no error", err)
				}
			}
		})
	}
	group.Wait()
	if got := totals(t, l, usage.ByAgent)[0].Tokens.Output; got != writers*each {
		t.Errorf("got %d tokens, want %d", got, writers*each)
	}
}

func TestTheLeastRecentOfTooManyKeysAreCountedAsOthers(t *testing.T) {
	l := usage.NewLedger()
	one := core.Usage{Input: 1}
	spend := func(agent string) { l.Add(usage.Record{Agent: core.AgentID(agent), Tokens: one}) }
	spend("first")
	spend("busy")
	spend("busy")
	for i := range usage.MaxKeys - 2 {
		spend(fmt.Sprintf("agent-%05d", i))
	}
	spend("busy")
	spend("new")   // evicts first
	spend("newer") // evicts the oldest of the many
	all := totals(t, l, usage.ByAgent)
	if len(all) != usage.MaxKeys+1 {
		t.Fatalf("got %d keys, want %d and the others", len(all), usage.MaxKeys)
	}
	got := map[string]int64{}
	var events int64
	for _, x := range all {
		got[x.Key], events = x.Events, events+x.Events
	}
	if got[usage.OtherKey] != 2 || got["busy"] != 3 || got["new"] != 1 || got["newer"] != 1 || got["first"] != 0 || got["agent-00000"] != 0 || got["agent-00001"] != 1 {
		t.Errorf("got %d others, busy %d, new %d, newer %d, first %d, want 2, 3, 1, 1 and 0", got[usage.OtherKey], got["busy"], got["new"], got["newer"], got["first"])
	}
	if want := int64(usage.MaxKeys + 4); events != want {
		t.Errorf("got %d events in all, want %d: none is lost", events, want)
	}
}
