package hub_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// searched is a journal that records the missing tasks that were looked up.
type searched struct {
	*journal.Memory
	missed []core.TaskID
}

func (j *searched) Read(ctx context.Context, task core.TaskID, after uint64, limit int) ([]core.Event, error) {
	events, err := j.Memory.Read(ctx, task, after, limit)
	if errors.Is(err, journal.ErrUnknown) {
		j.missed = append(j.missed, task)
	}
	return events, err
}

func (j *searched) CompleteTasks(ctx context.Context, tasks []core.TaskID, yield func(core.TaskID, []core.Event) bool) error {
	for _, task := range tasks {
		if _, err := j.Read(ctx, task, 0, 0); err != nil {
			return err
		}
	}
	return j.Memory.CompleteTasks(ctx, tasks, yield)
}

// Looking up a missing task may be expensive for a journal.
func TestAStartReadsOnlyTasksThatAreInTheJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &searched{Memory: journal.NewMemory(journal.Retention{})}
		before := &testHub{t, coretest.NewHub(t, hub.Options{Journal: kept})}
		a, asker := before.agent("a", able), before.connect("r")
		session := core.NewID() // a thread id that looks like a task id
		before.talk(asker, a, "a", session, "one", "1")
		before.sleep(time.Second)

		h := coretest.NewHub(t, hub.Options{Journal: kept})
		if err := h.Recover(t.Context()); err != nil {
			t.Error(err)
		}
		if len(kept.missed) > 0 {
			t.Errorf("got lookups of the missing tasks %v, want none", kept.missed)
		}
		if got, want := turns(h.Turns(t.Context(), core.Principal{Operator: true}, core.ThreadID(session))), "user: one | assistant: 1"; got != want {
			t.Errorf("got the thread %q, want %q", got, want)
		}
	})
}

func TestAConversationOfOneQuestionGoesOnAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := journal.NewMemory(journal.Retention{})
		before := &testHub{t, coretest.NewHub(t, hub.Options{Journal: kept})}
		a, asker := before.agent("a", able|core.FeatureNotices), before.connect("r")
		first, read := before.talk(asker, a, "a", "", "one?", "1"), before.talk(asker, a, "a", "", "read?", "yes")
		failed := before.ask(asker, "a")
		before.report(a, failed, core.Text{Text: "half"}, core.Failed{Fault: core.NewFault(core.CodeInternal, "broke")})
		notice := before.open(asker, core.Request{To: core.ToAgent("a"), Intent: core.IntentNotify, Notice: &core.Notice{Topic: "tea"}})
		a.Delivered(notice.ID())
		before.sleep(time.Second)

		after := &testHub{t, coretest.NewHub(t, hub.Options{Journal: kept})}
		if err := after.hub.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		after.agent("b", able, func(c *core.Card) { c.MaxConcurrent = 8 })
		asker = after.connect("r")
		next := after.open(asker, core.Request{To: core.ToAgent("b"), Thread: first.Thread(), Content: "two?"})
		none := after.open(asker, core.Request{To: core.ToAgent("b"), Thread: failed.Thread(), Content: "again?"})
		noticed := after.open(asker, core.Request{To: core.ToAgent("b"), Thread: core.ThreadID(notice.ID()), Content: "tea?"})
		after.sleep(time.Second)
		after.history("another agent", next, "user: one? | assistant: 1")
		if got, want := handover(next), "handed over from a with 2 turns"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		after.history("behind a task that failed", none, "")
		after.history("in a thread with the name of a notice", noticed, "")
		if got, want := turns(after.hub.Turns(t.Context(), core.Principal{Operator: true}, read.Thread())), "user: read? | assistant: yes"; got != want {
			t.Errorf("a conversation that is only read: got %q, want %q", got, want)
		}
	})
}

func TestAConversationThatMemoryHasNoRoomForIsReadAgain(t *testing.T) {
	withHub(t, hub.Limits{Threads: 1, FinishedTasks: 1, HistoryBytes: 1000}, func(g *testHub) {
		a, asker := g.agent("a", able), g.connect("r")
		long := g.talk(asker, a, "a", "", "one?", "1")
		for range 20 {
			g.talk(asker, a, "a", string(long.ID()), strings.Repeat("q", 100), strings.Repeat("a", 200))
		}
		short := g.talk(asker, a, "a", "", "short?", "yes")
		g.talk(asker, a, "a", string(short.ID()), "still?", "no")
		g.talk(asker, a, "a", "", "another?", "yes")
		g.sleep(time.Second) // the journal has them
		g.report(a, g.ask(asker, "a"), core.Done{})
		g.sleep(time.Second)

		next := g.open(asker, core.Request{To: core.ToAgent("a"), Thread: short.Thread(), Content: "go on"})
		g.sleep(time.Second)
		g.history("a short one", next, "user: short? | assistant: yes | user: still? | assistant: no")
		g.report(a, next, core.Done{})
		next = g.open(asker, core.Request{To: core.ToAgent("a"), Thread: long.Thread(), Content: "go on"})
		g.sleep(time.Second)
		if got := next.Request().History; len(got) < 4 || got[len(got)-1].Text != strings.Repeat("a", 200) || got[0].Text == "one?" {
			t.Errorf("a long one: got the history %q, want its latest turns", turns(got))
		}
	})
}
