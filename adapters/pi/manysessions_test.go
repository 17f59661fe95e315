package pi

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"testing"
	"weak"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/link"
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
	end := plainClient(t, s)
	var sessions []weak.Pointer[session]
	cycle := func(n int) {
		for i := range n {
			id := fmt.Sprint("session-", i)
			end.send(`{"type":"create_session","sessionId":"`+id+`","agent":"a"}`, `{"type":"switch_session","sessionId":"`+id+`"}`,
				`{"type":"prompt","sessionId":"`+id+`","message":"hello"}`)
			end.until(`"command":"prompt","success":true`)
			if i%100 == 0 {
				s.engine.Lock()
				sessions = append(sessions, weak.Make(s.sessions[command.Key{Scope: "", ID: id}]))
				s.engine.Unlock()
			}
			end.send(`{"type":"delete_session","sessionId":"` + id + `"}`)
			end.until(`"session_deleted"`)
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
	s.engine.Lock()
	left := map[string]int{"sessions": len(s.sessions), "lanes": s.engine.Counts().Lanes, "runs": len(s.runs), "threads": len(s.threads), "commands": s.engine.Counts().InFlight}
	for _, k := range s.clients {
		k.mu.Lock()
		left["readings"] += len(k.reading) + len(k.views) + k.Pending
		k.mu.Unlock()
	}
	s.engine.Unlock()
	for what, n := range left {
		if n != 0 {
			t.Errorf("got %d %s left, want none", n, what)
		}
	}
}

// plain is a client that looks at the text of frames alone: it costs little.
type plain struct {
	t    *testing.T
	conn link.Conn[[]byte, []byte]
}

func plainClient(t *testing.T, s *Server) plain {
	t.Helper()
	hubs, clients := coretest.Pipe[[]byte, []byte](64)
	served := make(chan link.Reason, 1)
	go func() { served <- s.Serve(context.Background(), hubs, ConnOptions{Snapshots: render.SnapshotsNone}) }()
	t.Cleanup(func() {
		clients.Close(link.Reason{Cause: link.Normal})
		<-served
	})
	return plain{t, clients}
}

func (p plain) send(frames ...string) {
	p.t.Helper()
	for _, f := range frames {
		if err := p.conn.Send(context.Background(), []byte(f)); err != nil {
			p.t.Fatal(err)
		}
	}
}

// until reads up to the frame that has the text.
func (p plain) until(text string) {
	p.t.Helper()
	for {
		f, err := p.conn.Receive(context.Background())
		switch {
		case err != nil:
			p.t.Fatal(err)
		case bytes.Contains(f, []byte(`"success":false`)):
			p.t.Fatalf("got %s", f)
		case bytes.Contains(f, []byte(text)):
			return
		}
	}
}
