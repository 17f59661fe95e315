package hub_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// slow is a journal with slow writes.
type slow struct {
	journal.Journal
	takes time.Duration
}

func (s *slow) Append(ctx context.Context, records ...journal.Record) error {
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.Journal.Append(ctx, records...)
}

// onSlowDisk runs a test with a journal that takes the given time for each write.
func onSlowDisk(t *testing.T, takes, lag time.Duration, test func(*testHub, *slow)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		disk := &slow{journal.NewMemory(journal.Retention{}), takes}
		test(&testHub{t, coretest.NewHub(t, hub.Options{Journal: disk, Limits: hub.Limits{JournalLag: lag}})}, disk)
	})
}

func TestAnEndWaitsForItsRecordOnceTheJournalIsBehind(t *testing.T) {
	onSlowDisk(t, time.Second, 200*time.Millisecond, func(g *testHub, _ *slow) {
		agent, asker, caller := g.agent("a", 0, func(c *core.Card) { c.MaxConcurrent = 3 }), g.connect("asker"), g.agent("caller", able)
		first := g.ask(asker, "a")
		g.assigned(agent)
		g.sleep(10 * time.Millisecond) // the journal is writing the first events until 1.002 s
		g.report(agent, first, core.Text{Text: "early"}, core.Done{})
		g.wantKinds("within the limit", g.events(asker), "opened", "assigned", "text", "done")

		g.sleep(300 * time.Millisecond)
		second := g.ask(asker, "a")
		caller.CallTool("c", "agent_ask", []byte(`{"to":"a","content":"go"}`))
		g.assigned(agent)
		g.report(agent, second, core.Text{Text: "late"}, core.Done{})
		g.report(agent, g.assigned(agent), core.Done{Text: "shown"})
		g.wantKinds("beyond the limit", g.events(asker), "opened", "assigned", "text")
		if got := second.State(); got != task.Running {
			t.Errorf("beyond the limit: got the task %s, want running", got)
		}
		if got := second.Answer(); got.End != 0 || got.Text != "late" {
			t.Errorf("beyond the limit: got the answer %q with the end %s, want only the text", got.Text, got.End)
		}
		if got := first.State(); got != task.Ended {
			t.Errorf("an end that was shown: got the task %s, want ended", got)
		}
		if b, ok := g.batch(caller); ok {
			t.Errorf("beyond the limit: got %+v for the tool, want nothing", b)
		}

		g.sleep(3 * time.Second)
		g.wantKinds("once it is recorded", g.events(asker), "done")
		if got := second.State(); got != task.Ended {
			t.Errorf("once it is recorded: got the task %s, want ended", got)
		}
		if o := g.tool(caller); o.Fault != nil {
			t.Errorf("once it is recorded: got %+v for the tool, want its answer", o.Fault)
		}
	})
}

func TestEveryEndWaitsForItsRecordIfSet(t *testing.T) {
	onSlowDisk(t, 20*time.Millisecond, -1, func(g *testHub, _ *slow) {
		agent, asker := g.agent("a", 0), g.connect("asker")
		task := g.ask(asker, "a")
		g.report(agent, task, core.Text{Text: "x"}, core.Done{})
		g.wantKinds("before it is recorded", g.events(asker), "opened", "assigned", "text")
		late := g.connect("asker")
		if err := late.Watch(task, core.Cursor{}, nil); err != nil {
			t.Fatal(err)
		}
		g.wantKinds("the late reader", g.events(late), "opened", "assigned", "text")
		g.sleep(100 * time.Millisecond)
		g.wantKinds("once it is recorded", g.events(asker), "done")
		g.wantKinds("the late reader", g.events(late), "done")
	})
}

func TestAnEndThatIsNeverRecordedIsNeverShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &slow{journal.NewMemory(journal.Retention{}), time.Hour}
		h := hub.New(hub.Options{Journal: disk})
		g := &testHub{t, h}
		agent, asker := g.agent("a", 0), g.connect("asker")
		task := g.ask(asker, "a")
		g.sleep(time.Second)
		g.report(agent, task, core.Text{Text: "x"}, core.Done{})
		if err := h.Close(t.Context(), "over"); err == nil {
			t.Error("closing: got no error, want that of the journal")
		}
		var shown []core.Event
		for {
			b, err := asker.Next(t.Context())
			if err != nil {
				break
			}
			shown = append(shown, b.Events...)
		}
		g.wantKinds("shown", shown, "opened", "assigned", "text")
	})
}

func TestNoEndWaitsWhileTheJournalKeepsUp(t *testing.T) {
	onSlowDisk(t, 0, time.Millisecond, func(g *testHub, _ *slow) {
		agent, asker := g.agent("a", 0), g.connect("asker")
		for range 20 {
			task := g.ask(asker, "a")
			g.report(agent, task, core.Done{Text: "x"})
			g.wantKinds("shown", g.events(asker), "opened", "assigned", "done")
			g.sleep(10 * time.Millisecond)
		}
	})
}

// A journal that makes progress is less far behind, even before it has the end.
func TestAnEndThatOneReaderGetsReachesAllReaders(t *testing.T) {
	onSlowDisk(t, time.Second, 200*time.Millisecond, func(g *testHub, _ *slow) {
		agent, asker, caller := g.agent("a", 0, func(c *core.Card) { c.MaxConcurrent = 3 }), g.connect("asker"), g.agent("caller", able)
		g.ask(asker, "a") // the journal is writing it until 1.002 s
		g.assigned(agent)
		g.sleep(900 * time.Millisecond)
		g.events(asker)
		asked := g.ask(asker, "a")
		caller.CallTool("c", "agent_ask", []byte(`{"to":"a","content":"go"}`))
		g.assigned(agent)
		g.report(agent, asked, core.Done{Text: "x"})
		g.report(agent, g.assigned(agent), core.Done{Text: "shown"})
		g.wantKinds("beyond the limit", g.events(asker), "opened", "assigned")

		g.sleep(150 * time.Millisecond) // the journal writes events of that age
		if got := asked.State(); got != task.Ended {
			t.Fatalf("within the limit: got the task %s, want ended", got)
		}
		g.wantKinds("the waiting reader", g.events(asker), "done")
	})
}

func TestWatchingAllIncludesEndsThatWaitForTheJournal(t *testing.T) {
	onSlowDisk(t, 20*time.Millisecond, -1, func(g *testHub, _ *slow) {
		agent, asker, late := g.agent("a", 0), g.connect("asker"), g.operator("late")
		task := g.ask(asker, "a")
		g.report(agent, task, core.Text{Text: "x"}, core.Done{})
		g.watchAll(late)
		g.wantKinds("before it is recorded", g.events(late))
		g.sleep(100 * time.Millisecond)
		g.wantKinds("once it is recorded", g.events(late), "done")
	})
}

// slowStore is a usage store with slow writes.
type slowStore struct {
	usage.Store
	takes time.Duration
}

func (s *slowStore) Append(ctx context.Context, all ...usage.Record) error {
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.Store.Append(ctx, all...)
}

func TestAnEndWaitsForAJournalThatWaitsForLateUsage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{&coretest.MemoryUsage{}, time.Second}
		g := &testHub{t, coretest.NewHub(t, hub.Options{UsageStore: store, Limits: hub.Limits{JournalLag: 200 * time.Millisecond}})}
		agent, asker := g.agent("a", 0, func(c *core.Card) { c.MaxConcurrent = 2 }), g.connect("asker")
		left := g.ask(asker, "a")
		if err := asker.Cancel(left.ID(), "never mind"); err != nil {
			t.Fatal(err)
		}
		g.sleep(100 * time.Millisecond)
		g.wantFault("usage after the end", agent.Report(left.ID(), core.Usage{Input: 1}, nil), core.CodeConflict)
		g.sleep(500 * time.Millisecond) // the store writes it
		g.events(asker)
		task := g.ask(asker, "a")
		g.report(agent, task, core.Done{Text: "x"})
		g.wantKinds("while the journal waits", g.events(asker), "opened", "assigned")
		g.sleep(time.Second)
		g.wantKinds("once it is recorded", g.events(asker), "done")
	})
}
