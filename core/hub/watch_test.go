package hub_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/task"
)

func TestReconnectLosesOrRepeatsEvents(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		g.report(agent, task, core.Text{Text: "one "}, core.Text{Text: "two "})
		seen := g.events(asker)
		cursor := seen[len(seen)-1].Cursor()
		g.report(agent, task, core.Text{Text: "three "})

		back := g.connect("r")
		if err := back.Watch(task, cursor, nil); err != nil {
			t.Fatal(err)
		}
		g.report(agent, task, core.Text{Text: "four"}, core.Done{})
		missed := g.events(back)
		g.wantKinds("what was missed", missed, "text", "text", "done")
		if got := text(seen) + text(missed); got != "one two three four" {
			t.Errorf("got %q, want %q", got, "one two three four")
		}
	})
}

func TestATaskReleasesItsReaders(t *testing.T) {
	type page [1 << 10]byte
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		watch := func(read bool) weak.Pointer[page] {
			viewer, p := g.operator("v"), new(page)
			if err := viewer.Watch(task, core.Cursor{}, p); err != nil {
				t.Fatal(err)
			}
			if read {
				g.events(viewer)
			}
			viewer.Close(nil)
			return weak.Make(p)
		}
		for name, p := range map[string]weak.Pointer[page]{"a reader of all events": watch(true), "a reader of none": watch(false)} {
			runtime.GC()
			if p.Value() != nil {
				t.Errorf("%s: got the tag of the reader in memory, want it released", name)
			}
		}
		g.report(agent, task, core.Done{})
	})
}

func TestACursorOfAnotherTaskIsRefused(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		g.agent("a", able)
		asker := g.connect("r")
		task := g.ask(asker, "a")
		for _, c := range []core.Cursor{{Epoch: 1, Seq: 99}, {Epoch: 7, Seq: 1}} {
			g.wantFault("cursor "+c.String(), asker.Watch(task, c, nil), core.CodeInvalid)
		}
	})
}

func TestOneSlowReaderNeverSlowsAnother(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker, slow := g.agent("a", able), g.connect("r"), g.connect("r")
		task := g.ask(asker, "a")
		if err := slow.Watch(task, core.Cursor{}, nil); err != nil {
			t.Fatal(err)
		}
		for range 2000 {
			g.report(agent, task, core.Text{Text: "x"})
		}
		g.report(agent, task, core.Done{})
		if got := len(text(g.events(asker))); got != 2000 {
			t.Errorf("the fast reader: got %d bytes, want 2000", got)
		}
		if got := len(text(g.events(slow))); got != 2000 {
			t.Errorf("the slow reader: got %d bytes, want 2000", got)
		}
	})
}

func TestARereadFromTheJournalMayStartInsideMergedText(t *testing.T) {
	withHub(t, hub.Limits{FinishedTasks: 1}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		g.report(agent, task, core.Text{Text: "aa"}, core.Text{Text: "bbb"}, core.Text{Text: "c"}, core.Done{})
		g.sleep(time.Second) // it is recorded
		for range 2 {        // and dropped from memory
			g.report(agent, g.ask(asker, "a"), core.Done{})
			g.sleep(time.Second)
		}
		g.events(asker)
		again, err := g.hub.Task(g.t.Context(), asker.Identity().Principal, task.ID())
		if err != nil {
			t.Fatal(err)
		}
		if again == task {
			t.Fatal("got the task from memory, want it from the journal")
		}
		if err := asker.Watch(again, core.Cursor{Epoch: 1, Seq: 3}, nil); err != nil { // after "aa"
			t.Fatal(err)
		}
		rest := g.events(asker)
		g.wantKinds("the rest", rest, "text", "done")
		if got := text(rest); got != "bbbc" {
			t.Errorf("got %q, want %q", got, "bbbc")
		}
		if rest[0].Seq != 4 || rest[0].End() != 5 {
			t.Errorf("got sequence %d to %d, want 4 to 5", rest[0].Seq, rest[0].End())
		}
	})
}

func TestATaskCutOffByAKilledHubIsFoundFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := journal.NewMemory(journal.Retention{})
		killed := coretest.NewHub(t, hub.Options{Journal: kept})
		agent := killed.Connect(hub.Identity{Principal: core.Principal{ID: "a"}})
		if err := agent.Join(core.Card{ID: "a"}, hub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
		asker := killed.Connect(hub.Identity{Principal: core.Principal{ID: "r"}})
		asked, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := agent.Report(asked.ID(), core.Text{Text: "so far"}, nil); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Second) // recorded
		snapshot := journal.NewMemory(journal.Retention{})
		events, err := kept.Read(t.Context(), asked.ID(), 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if err := snapshot.Append(t.Context(), journal.Record{Task: asked.ID(), Event: e}); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := killed.Close(ctx, "the end of the first life"); err != nil {
			t.Fatal(err)
		}

		h := coretest.NewHub(t, hub.Options{Journal: snapshot})
		if err := h.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		back := h.Connect(hub.Identity{Principal: core.Principal{ID: "r"}})
		defer back.Close(nil)
		found, err := h.Task(t.Context(), back.Identity().Principal, asked.ID())
		if err != nil {
			t.Fatal(err)
		}
		a := found.Answer()
		if a.Text != "so far" || a.Fault == nil || a.Fault.Code != core.CodeUnreachable || !a.Fault.Retryable {
			t.Errorf("got %q and %+v, want the text so far and a retryable unreachable fault", a.Text, a.Fault)
		}
		// A reader of the first process had read more than was recorded.
		if err := back.Watch(found, core.Cursor{Epoch: 1, Seq: 9}, nil); err != nil {
			t.Fatal(err)
		}
		b, err := back.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if want := (task.Gap{From: 4, To: 9}); b.Gap == nil || *b.Gap != want {
			t.Errorf("got %+v, want the gap %+v", b.Gap, want)
		}
		if b, err = back.Next(t.Context()); err != nil || len(b.Events) != 1 || b.Events[0].Body.Kind() != core.KindFailed {
			t.Errorf("got %v and %v, want the end after the gap", kinds(b.Events), err)
		}
	})
}

func TestAFailingJournalDelaysNoTaskAndLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &moody{Memory: journal.NewMemory(journal.Retention{})}
		j.refuse.Store(true)
		h := coretest.NewHub(t, hub.Options{Journal: j})
		agent := h.Connect(hub.Identity{Principal: core.Principal{ID: "a"}})
		defer agent.Close(nil)
		if err := agent.Join(core.Card{ID: "a"}, hub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
		asker := h.Connect(hub.Identity{Principal: core.Principal{ID: "r"}})
		defer asker.Close(nil)
		asked, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := agent.Report(asked.ID(), core.Done{Text: "quick"}, nil); err != nil {
			t.Fatal(err)
		}
		if got := asked.State(); got != task.Ended {
			t.Errorf("got %s, want ended while the journal refuses", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := asked.Recorded(ctx, 3); err == nil {
			t.Error("got the receipt recorded before the journal had the task, want a wait")
		}
		j.allow()
		if err := asked.Recorded(t.Context(), 3); err != nil {
			t.Errorf("got %v, want it recorded", err)
		}
	})
}

func TestAFailingJournalLeadsToRefusalsWhenMemoryIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &moody{Memory: journal.NewMemory(journal.Retention{})}
		j.refuse.Store(true)
		limits := hub.Limits{FinishedBytes: 1000, UnrecordedBytes: 15_000}
		g := &testHub{t, coretest.NewHub(t, hub.Options{Journal: j, Limits: limits})}
		agent, asker := g.agent("a", able), g.connect("r")
		answer := core.Done{Text: strings.Repeat("x", 1000)}
		req, n := core.Request{To: core.ToAgent("a"), Content: "go"}, 0
		for {
			task, err := asker.Open(req, hub.OpenOptions{})
			if err != nil {
				g.wantFault("a request that cannot be recorded", err, core.CodeOverloaded)
				break
			}
			if g.report(agent, task, answer); n > 10 {
				t.Fatalf("got %d answers of 1000 bytes in memory, want a refusal", n)
			}
			n++
		}
		j.allow()
		g.sleep(time.Second)
		g.report(agent, g.ask(asker, "a"), answer)
	})
}

// moody is a journal that fails until allow is called.
type moody struct {
	*journal.Memory
	refuse atomic.Bool
}

func (m *moody) Append(ctx context.Context, records ...journal.Record) error {
	if m.refuse.Load() {
		return errors.New("the disk is full")
	}
	return m.Memory.Append(ctx, records...)
}

func (m *moody) allow() {
	m.refuse.Store(false)
}

func TestAnAnswerBeyondTheLimitOfATaskEndsIt(t *testing.T) {
	withHub(t, hub.Limits{TaskBytes: 4096}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		g.report(agent, task, core.Text{Text: strings.Repeat("x", 5000)})
		g.wantFault("the byte too many", agent.Report(task.ID(), core.Text{Text: "y"}, nil), core.CodeTooLarge)
		if f := task.Answer().Fault; f == nil || f.Code != core.CodeTooLarge {
			t.Errorf("got %v, want too_large", f)
		}
	})
}

func TestAStoppingHubInformsSessionsAndLetsTasksFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &testHub{t, coretest.NewHub(t, hub.Options{})}
		agent, asker := g.agent("a", able), g.connect("r")
		task, other := g.ask(asker, "a"), g.ask(asker, "a")
		g.events(asker)
		closed := make(chan error)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			closed <- g.hub.Close(ctx, "maintenance")
		}()
		synctest.Wait()
		if b, ok := g.batch(asker); !ok || b.Draining != "maintenance" {
			t.Errorf("got %+v, want the maintenance", b)
		}
		_, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "one more"}, hub.OpenOptions{})
		g.wantFault("a request to a stopping hub", err, core.CodeUnreachable)
		g.report(agent, task, core.Done{})
		if err := <-closed; err != nil {
			t.Errorf("got %v, want no error", err)
		}
		if f := other.Answer().Fault; f == nil || f.Code != core.CodeUnreachable {
			t.Errorf("an unfinished task: got %v, want unreachable", f)
		}
	})
}

// A session may end while a task is being looked up.
func TestAnEndedSessionReadsNothing(t *testing.T) {
	type page [1 << 10]byte
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		watch := func() weak.Pointer[page] {
			viewer, p := g.operator("v"), new(page)
			viewer.Close(nil)
			g.wantFault("watching", viewer.Watch(task, core.Cursor{}, p), core.CodeUnreachable)
			return weak.Make(p)
		}
		p := watch()
		runtime.GC()
		if p.Value() != nil {
			t.Error("got a reader of an ended session, want none")
		}
		g.report(agent, task, core.Done{})
	})
}
