package pi

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"weak"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// TestTenThousandSessionsLeaveNothingBehind measures what 10,000 sessions that are
// made, prompted and deleted add to the heap. What a server or a hub remembers within
// a bound (outcomes, history, ended tasks, threads) is full before.
func TestTenThousandSessionsLeaveNothingBehind(t *testing.T) {
	const warm, many, most = 1_000, 10_000, 4 << 20
	h := hub.New(hub.Options{ // without the checker of promises, which forgets nothing
		Limits:  hub.Limits{FinishedTasks: 100, FinishedBytes: 1 << 20, Threads: 100},
		Journal: journal.NewMemory(journal.Retention{Bytes: 1 << 20}),
	})
	t.Cleanup(func() {
		if err := h.Close(context.Background(), "the test is over"); err != nil {
			t.Error(err)
		}
	})
	s := NewServer(h, Options{MaxOutcomes: 100, Rates: unlimited})
	t.Cleanup(s.Close)
	join(t, h, core.Card{ID: "a"}, echo)
	c := dial(t, s, ConnOptions{Snapshots: SnapshotsNone})
	var sessions []weak.Pointer[session]
	cycle := func(n int) {
		for i := range n {
			id := fmt.Sprint("session-", i)
			c.ok(`{"type":"create_session","sessionId":"` + id + `","agent":"a"}`)
			if i%10 == 0 {
				c.ok(`{"type":"switch_session","sessionId":"` + id + `"}`)
			}
			c.ok(`{"type":"prompt","sessionId":"` + id + `","message":"` + id + `"}`)
			if i%100 == 0 {
				s.mu.Lock()
				sessions = append(sessions, weak.Make(s.sessions[sessionKey{"", id}]))
				s.mu.Unlock()
			}
			c.ok(`{"type":"delete_session","sessionId":"` + id + `"}`)
			c.mu.Lock()
			c.frames, c.times = nil, nil
			c.mu.Unlock()
		}
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	cycle(warm)
	before := heap()
	cycle(many)
	after := heap()
	t.Logf("heap after %d sessions: %d KiB, after %d more: %d KiB", warm, before>>10, many, after>>10)
	if after > before+most {
		t.Errorf("%d sessions have left %d bytes behind, want at most %d", many, after-before, most)
	}
	kept := 0
	for _, w := range sessions {
		if w.Value() != nil {
			kept++
		}
	}
	// The hub remembers the latest tasks, and a history of commands the latest of those.
	if kept > 5 {
		t.Errorf("got %d of %d sessions in memory still, want at most the latest", kept, len(sessions))
	}
	s.mu.Lock()
	left := map[string]int{"sessions": len(s.sessions), "lanes": len(s.lanes), "runs": len(s.runs), "threads": len(s.companies), "commands": len(s.flying)}
	for k := range s.clients {
		k.mu.Lock()
		left["readings"] += len(k.reading) + len(k.views) + k.pending
		k.mu.Unlock()
	}
	s.mu.Unlock()
	for what, n := range left {
		if n != 0 {
			t.Errorf("got %d %s left, want none", n, what)
		}
	}
}
