package pi

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/render"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// answersOf is an agent that answers everything with so many bytes, and every question
// for a summary with the bodies.
func answersOf(size int, summary ...core.Body) func(*joined, hub.Batch) {
	return func(a *joined, b hub.Batch) {
		switch {
		case !assigned(b):
		case asksForSummary(b.Task.Request()):
			a.say(b.Task, summary...)
		default:
			a.say(b.Task, core.Text{Text: strings.Repeat("long ", size/5)}, core.Done{})
		}
	}
}

const promptIt = `{"type":"prompt","sessionId":"s","message":"more"}`

// heldUp keeps the worker that prepares questions busy until release is called.
func heldUp(t *testing.T, s *Server) (release func()) {
	t.Helper()
	begun, until := make(chan struct{}), make(chan struct{})
	s.engine.Lock()
	s.summaries.Add(func(context.Context) { close(begun); <-until })
	s.engine.Unlock()
	<-begun
	return func() { close(until) }
}

func TestANeighbourIsAnsweredWhileACompactionIsPrepared(t *testing.T) {
	h, s := newStage(t, Options{CompactAt: -1})
	join(t, h, core.Card{ID: "a"}, answersOf(100_000, inShort...))
	c, other := dial(t, s, ConnOptions{}), dial(t, s, ConnOptions{})
	c.open("s", "a")
	c.ok(promptIt)
	c.ok(promptIt)
	release := heldUp(t, s)
	c.send(compactIt)
	other.until("command_started", `"commandId":"c"`)
	other.open("t", "a")
	other.ok(`{"type":"prompt","sessionId":"t","message":"hello"}`)
	other.ok(`{"type":"get_state","sessionId":"s"}`)
	if got := c.count(`"response"`, `"id":"c"`); got != 0 {
		t.Errorf("got %d responses to compact, want it still under way", got)
	}
	release()
	c.until(`"response"`, `"id":"c"`, `"success":true`)
}

func TestWhatIsPreparedForASummaryIsStoppedByAbort(t *testing.T) {
	h, s := newStage(t, Options{CompactAt: -1})
	join(t, h, core.Card{ID: "a", Features: core.FeatureCancellation}, answersOf(100_000))
	c := dial(t, s, ConnOptions{})
	c.open("s", "a")
	c.ok(promptIt)
	c.ok(promptIt)
	release := heldUp(t, s)
	c.send(compactIt)
	c.until("command_started", `"commandId":"c"`)
	c.ok(`{"type":"abort_compaction","sessionId":"s"}`)
	release()
	c.until(`"response"`, `"id":"c"`, `"success":false`, `"error":"`+compactionCancelled+`"`)
}

// underLock returns how many bytes do allocates while the server's lock is held.
func underLock(s *Server, do func()) uint64 {
	var before, after runtime.MemStats
	s.engine.Lock()
	defer s.engine.Unlock()
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// What is decoded or copied is allocated.
func TestACompactionReadsNoConversationUnderTheServersLock(t *testing.T) {
	h, s := newStage(t, Options{CompactAt: -1})
	join(t, h, core.Card{ID: "a"}, answersOf(200_000, inShort...))
	c := dial(t, s, ConnOptions{})
	c.open("s", "a")
	for range 4 {
		c.ok(promptIt)
	}
	const most = 64 << 10
	release := heldUp(t, s)
	over := make(chan struct{})
	defer func() { release(); <-over }()
	x := &request{client: s.clients[0], on: s.sessions[command.Key{Scope: "", ID: "s"}]}
	began := underLock(s, func() {
		if !x.on.contextFull() {
			t.Error("got room in the context, want it full")
		}
		divided, problem := s.cutFor(x.on.tree.Leaf, true)
		if problem != "" {
			t.Fatal(problem)
		}
		c := &compaction{Cut: divided, x: x}
		if err := c.start(x.on.summaryBudget(), "", time.Now().Add(time.Minute), func(string, *core.Fault) { close(over) }); err != nil {
			t.Fatal(err)
		}
	})
	if began > most {
		t.Errorf("got %d bytes allocated to begin a compaction of 800,000, want %d at most", began, most)
	}
	ended := underLock(s, func() {
		divided, _ := s.cutFor(x.on.tree.Leaf, true)
		(&compaction{Cut: divided, x: x}).apply("in short")
	})
	if ended > most {
		t.Errorf("got %d bytes allocated to end a compaction of 800,000, want %d at most", ended, most)
	}
}

func TestACompactionThatFailedIsNotTriedBehindTheNextAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := newStage(t, Options{})
		summary := []core.Body{core.Failed{Fault: core.NewFault(core.CodeInvalid, "no idea")}}
		join(t, h, core.Card{ID: "a"}, func(a *joined, b hub.Batch) { answersOf(400_000, summary...)(a, b) })
		join(t, h, core.Card{ID: "b"}, answersOf(400_000, inShort...))
		c := dial(t, s, ConnOptions{Snapshots: render.SnapshotsNone})
		c.open("s", "a")
		tries := func(n, want int, when string) {
			t.Helper()
			for range n {
				c.ok(promptIt)
			}
			synctest.Wait()
			if got := c.count(fmt.Sprintf(startedFor, "threshold")); got != want {
				t.Errorf("%s: got %d compactions tried, want %d", when, got, want)
			}
		}
		tries(5, 1, "behind the first answers")
		time.Sleep(shortestPause)
		tries(2, 2, "a minute later")
		time.Sleep(shortestPause)
		tries(2, 2, "another minute later, when the pause is twice as long")
		time.Sleep(shortestPause)
		tries(2, 3, "when that is over")
		c.ok(`{"type":"set_model","sessionId":"s","provider":"coven","modelId":"b"}`)
		tries(1, 4, "with another agent")
		c.until(inShortEnd)
	})
}
