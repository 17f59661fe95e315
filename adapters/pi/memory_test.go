package pi

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/link"
)

// TestTenThousandSessionsLeakNothing measures how much the heap grows with 10,000 sessions that
// are created, prompted and deleted. The bounded caches of the server and the hub (outcomes,
// history, ended tasks, threads) are filled before.
func TestTenThousandSessionsLeakNothing(t *testing.T) {
	tier.Full(t, "it opens 10,000 sessions")
	const warm, many, most = 1_000, 10_000, 4 << 20
	h := hub.New(hub.Options{ // without the promise checker, which keeps everything
		Limits:  hub.Limits{FinishedTasks: 100, FinishedBytes: 1 << 20, Threads: 100},
		Journal: journal.NewMemory(journal.Retention{Bytes: 1 << 20}),
	})
	t.Cleanup(func() {
		if err := h.Close(context.Background(), "the test is over"); err != nil {
			t.Error(err)
		}
	})
	s := bareServer(t, h, Options{Commands: command.Options{MaxOutcomes: 100}})
	answerAll(t, h, "a", func(core.Request) string { return "hello" })
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
		t.Errorf("%d sessions leaked %d bytes, want at most %d", many, after-before, most)
	}
	kept := 0
	for _, w := range sessions {
		if w.Value() != nil {
			kept++
		}
	}
	// The hub keeps the latest tasks, and the history the latest commands.
	if kept > 5 {
		t.Errorf("got %d of %d sessions in memory, want at most the latest", kept, len(sessions))
	}
	for what, n := range s.Left() {
		if n != 0 {
			t.Errorf("got %d %s left, want none", n, what)
		}
	}
}

// underLock returns the bytes that do allocates in a turn of the engine. The numbers are those
// of the process: it begins once nothing else allocates, such as what still handles an answer.
func underLock(s *Server, do func()) uint64 {
	var before, after runtime.MemStats
	s.engine.Lock()
	defer s.engine.Unlock()
	for runtime.ReadMemStats(&before); before.TotalAlloc != after.TotalAlloc; runtime.ReadMemStats(&before) {
		after = before
		runtime.GC() // takes longer than such work
	}
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Decoding or copying a conversation would allocate.
func TestACompactionReadsNoConversationInATurnOfTheEngine(t *testing.T) {
	h := coretest.NewHub(t, hub.Options{})
	s := bareServer(t, h, Options{CompactAt: -1})
	answerAll(t, h, "a", func(r core.Request) string {
		if strings.HasPrefix(r.Content, compactionQuestion) {
			return "in short"
		}
		return strings.Repeat("long ", 40_000)
	})
	c := plainClient(t, s)
	c.send(`{"type":"create_session","sessionId":"s","agent":"a"}`)
	for range 4 {
		c.send(`{"type":"prompt","sessionId":"s","message":"more"}`)
		c.until(`"command":"prompt","success":true`)
	}
	const most = 64 << 10
	begun, until, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	s.summaries.Add(func(context.Context) { close(begun); <-until })
	<-begun
	busy := make(chan struct{})
	for range command.Workers { // none of them writes the last answer into its file meanwhile
		s.jobs.Add(func(context.Context) { busy <- struct{}{}; <-until })
	}
	for range command.Workers {
		<-busy
	}
	defer func() { close(until); <-over }()
	x := &request{client: s.clients[0], target: s.sessions[command.Key{Scope: "", ID: "s"}]}
	began := underLock(s, func() {
		if !x.target.contextFull() {
			t.Error("got room in the context, want it full")
		}
		divided, problem := s.cutFor(x.target.tree.Leaf, true)
		if problem != "" {
			t.Fatal(problem)
		}
		c := &compaction{Cut: divided, x: x}
		if err := c.start(x.target.summaryBudget(), "", time.Now().Add(time.Minute), func(string, *core.Fault) { close(over) }); err != nil {
			t.Fatal(err)
		}
	})
	if began > most {
		t.Errorf("got %d bytes allocated to start a compaction of 800,000, want %d at most", began, most)
	}
	ended := underLock(s, func() {
		divided, _ := s.cutFor(x.target.tree.Leaf, true)
		(&compaction{Cut: divided, x: x}).apply("in short")
	})
	if ended > most {
		t.Errorf("got %d bytes allocated to end a compaction of 800,000, want %d at most", ended, most)
	}
}

// bareServer returns a server without rate limits.
func bareServer(t *testing.T, h *hub.Hub, opts Options) *Server {
	t.Helper()
	opts.Commands.Rates = command.Rates{Client: -1, Session: -1, Server: -1, Answers: -1}
	s := NewServer(h, opts)
	t.Cleanup(s.Close)
	return s
}

// answerAll joins an agent that answers every request with a text.
func answerAll(t *testing.T, h *hub.Hub, id core.AgentID, answer func(core.Request) string) {
	t.Helper()
	a := h.Connect(hub.Identity{Principal: core.Principal{ID: string(id)}, Dialect: "coven"})
	if err := a.Join(core.Card{ID: id, Dialect: "coven"}, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	var working sync.WaitGroup
	working.Go(func() {
		for {
			b, err := a.Next(context.Background())
			if err != nil {
				return
			}
			for _, e := range b.Events {
				if e.Body.Kind() != core.KindAssigned {
					continue
				}
				for _, body := range []core.Body{core.Text{Text: answer(b.Task.Request())}, core.Done{}} {
					if err := a.Report(b.Task.ID(), body, nil); err != nil {
						t.Errorf("reporting %s: %v", body.Kind(), err)
					}
				}
			}
		}
	})
	t.Cleanup(func() {
		a.Close(nil)
		working.Wait()
	})
}

// plain is a cheap client, which does not decode frames.
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

// until reads up to a frame with the text.
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
