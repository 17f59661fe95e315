package hub_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/task"
)

var addresses = cmpopts.EquateComparable(core.Address{})

// lists returns the pages of the tasks that a filter matches, with the names that the test
// gave them.
func (g *testHub) lists(names map[core.TaskID]string, p core.Principal, f task.Filter) (pages [][]string) {
	g.t.Helper()
	for {
		page, err := g.hub.Tasks(g.t.Context(), p, f)
		if err != nil {
			g.t.Fatal(err)
		}
		listed := []string{}
		for _, s := range page.Tasks {
			listed = append(listed, names[s.ID]+" "+s.State)
		}
		pages = append(pages, listed)
		if f.Before = page.Before; f.Before == "" {
			return pages
		}
	}
}

// The list does not depend on how many tasks are in memory.
func TestTasksAreListedNewestFirstFromMemoryAndTheJournal(t *testing.T) {
	for _, kept := range []int{1, 100} {
		withHub(t, hub.Limits{FinishedTasks: kept}, func(g *testHub) {
			a, b := g.agent("a", able, func(c *core.Card) { c.MaxConcurrent = 8 }), g.agent("b", able)
			ann, bob := g.connect("ann"), g.connect("bob")
			names := map[core.TaskID]string{}
			ask := func(name string, s *hub.Session, to core.AgentID, thread core.ThreadID) *task.Task {
				task := g.open(s, core.Request{To: core.ToAgent(to), Content: "do " + name, Thread: thread})
				names[task.ID()] = name
				return task
			}
			g.report(a, ask("first", ann, "a", "talk"), core.Text{Text: "x"}, core.Done{})
			g.report(a, ask("second", bob, "a", "talk"), core.Failed{Fault: core.NewFault(core.CodeInternal, "no")})
			g.report(b, ask("third", ann, "b", ""), core.Done{})
			g.sleep(time.Second) // the journal has them
			runs := ask("fourth", ann, "b", "talk")
			waits := ask("fifth", bob, "b", "")
			g.sleep(time.Second)
			all := []string{"fifth queued", "fourth running", "third done", "second failed", "first done"}
			list := func(what string, p core.Principal, f task.Filter, want ...[]string) {
				t.Helper()
				if d := cmp.Diff(want, g.lists(names, p, f), cmpopts.EquateEmpty()); d != "" {
					t.Errorf("%s, with %d kept in memory (-want +got):\n%s", what, kept, d)
				}
			}
			list("all", operator, task.Filter{}, all)
			list("in pages", operator, task.Filter{Limit: 2}, all[:2], all[2:4], all[4:])
			list("those of ann", core.Principal{ID: "ann"}, task.Filter{}, []string{all[1], all[2], all[4]})
			list("from bob", operator, task.Filter{From: "bob"}, []string{all[0], all[3]})
			list("from an unknown principal", operator, task.Filter{From: "unknown"}, nil)
			list("of agent a", operator, task.Filter{Agent: "a"}, all[3:])
			list("of agent b, also what waits for it", operator, task.Filter{Agent: "b"}, all[:3])
			list("done", operator, task.Filter{State: "done"}, []string{all[2], all[4]})
			list("running", operator, task.Filter{State: "running"}, all[1:2])
			list("queued", operator, task.Filter{State: "queued"}, all[:1])
			list("in a thread", operator, task.Filter{Thread: "talk"}, []string{all[1], all[3], all[4]})
			list("in a thread of its own", operator, task.Filter{Thread: core.ThreadID(waits.ID())}, all[:1])
			list("before the third", operator, task.Filter{Before: runs.ID()}, all[2:])
			list("ann's of b in the thread", core.Principal{ID: "ann"}, task.Filter{Agent: "b", Thread: "talk"}, all[1:2])

			got, err := g.hub.Tasks(t.Context(), operator, task.Filter{State: "running"})
			if err != nil || len(got.Tasks) != 1 {
				t.Fatalf("got %v and %v, want one", got, err)
			}
			if d := cmp.Diff(runs.Status(), got.Tasks[0], addresses); d != "" {
				t.Errorf("a task by itself and in the list:\n%s", d)
			}
			g.report(b, runs, core.Done{})
			g.report(b, waits, core.Done{})
		})
	}
}

func TestATaskThatNoAgentGotIsListedForTheOneThatWasAsked(t *testing.T) {
	for _, kept := range []int{1, 100} {
		withHub(t, hub.Limits{FinishedTasks: kept}, func(g *testHub) {
			ann, names := g.connect("ann"), map[core.TaskID]string{}
			for _, to := range []string{"gone", "capability:nothing", "away", "gone"} {
				address, err := core.ParseAddress(to)
				if err != nil {
					t.Fatal(err)
				}
				refused, err := ann.Open(core.Request{To: address, Content: "go"}, hub.OpenOptions{})
				if !errors.Is(err, &core.Fault{Code: core.CodeUnknownAgent}) {
					t.Fatalf("to %s: got %v, want unknown_agent", to, err)
				}
				names[refused.ID()] = fmt.Sprint(len(names), " to ", to)
			}
			g.sleep(time.Second) // the journal has them
			want := [][]string{{"3 to gone failed", "0 to gone failed"}}
			if d := cmp.Diff(want, g.lists(names, operator, task.Filter{Agent: "gone"})); d != "" {
				t.Errorf("with %d kept in memory (-want +got):\n%s", kept, d)
			}
		})
	}
}

// What a task has caused is found without the tasks themselves, once it was known.
func TestTheChildrenOfATaskAreListedWithTheirEnds(t *testing.T) {
	for _, kept := range []int{1, 100} {
		synctest.Test(t, func(t *testing.T) {
			disk := journal.NewMemory(journal.Retention{})
			g := &testHub{t, coretest.NewHub(t, hub.Options{Journal: disk, Limits: hub.Limits{FinishedTasks: kept}})}
			a, b := g.agent("a", able), g.agent("b", able)
			names, ends := map[core.TaskID]string{}, map[core.TaskID]time.Time{}
			name := func(name string, t *task.Task) *task.Task {
				names[t.ID()] = name
				return t
			}
			end := func(s *hub.Session, one *task.Task) {
				g.sleep(time.Second)
				g.report(s, one, core.Done{})
				ends[one.ID()] = one.Last().At
				g.sleep(time.Second)
			}
			parent := name("parent", g.ask(g.connect("ann"), "a"))
			g.assigned(a)
			child := name("child", g.ask(a, "b"))
			end(b, child)
			second := name("second", g.ask(a, "b"))
			end(b, second)
			lists := func(h *hub.Hub, what, cause string, want ...string) {
				t.Helper()
				at := (&testHub{t, h}).lists(names, operator, task.Filter{Cause: core.TaskID(cause)})
				if d := cmp.Diff([][]string{want}, at, cmpopts.EquateEmpty()); d != "" {
					t.Errorf("%s, with %d kept in memory (-want +got):\n%s", what, kept, d)
				}
			}
			lists(g.hub, "while it runs", string(parent.ID()), "second done", "child done")
			end(a, parent)
			other := name("other", g.ask(g.connect("ann"), "b"))
			end(b, other)
			lists(g.hub, "once it has ended", string(parent.ID()), "second done", "child done")
			lists(g.hub, "of one without children", string(child.ID()))
			if err := g.hub.Close(t.Context(), "restart"); err != nil {
				t.Fatal(err)
			}
			again := coretest.NewHub(t, hub.Options{Journal: disk})
			if err := again.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, what := range []string{"after a restart", "when they are known"} {
				lists(again, what, string(parent.ID()), "second done", "child done")
			}
			for _, h := range []*hub.Hub{g.hub, again} {
				all, err := h.Tasks(t.Context(), operator, task.Filter{})
				if err != nil || len(all.Tasks) != 4 {
					t.Fatalf("got %d tasks and %v, want 4", len(all.Tasks), err)
				}
				for _, s := range all.Tasks {
					if !s.EndedAt.Equal(ends[s.ID]) {
						t.Errorf("%s: got the end %v, want %v", names[s.ID], s.EndedAt, ends[s.ID])
					}
				}
			}
		})
	}
}

func TestTasksAreListedAfterARestart(t *testing.T) {
	kept := journal.NewMemory(journal.Retention{})
	names := map[core.TaskID]string{}
	want := map[core.TaskID]task.Status{}
	first := coretest.NewHub(t, hub.Options{Journal: kept})
	asker, agent := first.Connect(hub.Identity{Principal: core.Principal{ID: "ann"}}), first.Connect(hub.Identity{Principal: core.Principal{ID: "a"}})
	if err := agent.Join(core.Card{ID: "a", MaxConcurrent: 8}, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		task, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: fmt.Sprint("do ", i), Thread: "talk"}, hub.OpenOptions{Keep: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := agent.Report(task.ID(), core.Done{Text: "so"}, nil); err != nil {
			t.Fatal(err)
		}
		if err := task.Recorded(t.Context(), 3); err != nil {
			t.Fatal(err)
		}
		names[task.ID()], want[task.ID()] = fmt.Sprint(i), task.Status()
	}
	asker.Close(nil)
	agent.Close(nil)
	if err := first.Close(t.Context(), "restart"); err != nil {
		t.Fatal(err)
	}
	cut := core.TaskID(core.NewID()) // it ran when the hub was killed
	begun := core.Event{Seq: 1, Epoch: 1, At: time.Now(), Body: core.Opened{Task: cut, From: core.Principal{ID: "ann"}, Request: core.Request{Intent: core.IntentAsk, To: core.ToAgent("a"), Content: "cut", Thread: "talk"}}}
	if err := kept.Append(t.Context(), journal.Record{Task: cut, Event: begun}); err != nil {
		t.Fatal(err)
	}
	names[cut] = "cut"

	g := &testHub{t, coretest.NewHub(t, hub.Options{Journal: kept})}
	if err := g.hub.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	pages := [][]string{{"cut failed", "4 done"}, {"3 done", "2 done"}, {"1 done", "0 done"}}
	if d := cmp.Diff(pages, g.lists(names, core.Principal{ID: "ann"}, task.Filter{Thread: "talk", Limit: 2})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	all, err := g.hub.Tasks(t.Context(), operator, task.Filter{State: "done"})
	if err != nil || len(all.Tasks) != 5 {
		t.Fatalf("got %d tasks and %v, want 5", len(all.Tasks), err)
	}
	for _, got := range all.Tasks {
		w := want[got.ID]
		if r := got.Receipt; r.Stage != core.StageRecorded || r.Agent != "a" || r.Task != got.ID {
			t.Errorf("got the receipt %+v, want it recorded", r)
		}
		w.Receipt = got.Receipt
		if d := cmp.Diff(w, got, addresses); d != "" {
			t.Errorf("task %s before and after (-want +got):\n%s", names[got.ID], d)
		}
	}
}

// counting is a journal that counts its reads.
type counting struct {
	journal.Journal
	reads atomic.Int64
}

func (c *counting) Read(ctx context.Context, id core.TaskID, after uint64, limit int) ([]core.Event, error) {
	c.reads.Add(1)
	return c.Journal.Read(ctx, id, after, limit)
}

// sluggish is a journal that takes 300 ms to read a task.
type sluggish struct{ journal.Journal }

func (s sluggish) Read(ctx context.Context, id core.TaskID, after uint64, limit int) ([]core.Event, error) {
	time.Sleep(300 * time.Millisecond)
	return s.Journal.Read(ctx, id, after, limit)
}

func TestAPageOfASlowJournalIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := journal.NewMemory(journal.Retention{})
		first := coretest.NewHub(t, hub.Options{Journal: kept})
		g := &testHub{t, first}
		a, ann := g.agent("a", able), g.connect("ann")
		names := map[core.TaskID]string{}
		for n := range 70 {
			asked := g.ask(ann, "a")
			g.report(a, asked, core.Done{})
			names[asked.ID()] = fmt.Sprint(n)
		}
		if err := first.Close(t.Context(), "restart"); err != nil {
			t.Fatal(err)
		}
		again := &testHub{t, coretest.NewHub(t, hub.Options{Journal: sluggish{kept}})}
		if err := again.hub.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		pages := again.lists(names, operator, task.Filter{Limit: task.MostListed})
		if len(pages) != 2 || len(pages[0]) != 64 || len(pages[1]) != 6 { // 16 are read at once, for a second
			t.Fatalf("got the pages %q, want one of 64 tasks and one of 6", pages)
		}
		for i, got := range slices.Concat(pages...) {
			if want := fmt.Sprintf("%d done", 69-i); got != want {
				t.Errorf("got %q in place %d, want %q", got, i, want)
			}
		}
	})
}

// The cost of a list is bounded by the size of its page and by the number of tasks that one
// call may read. The hub knows the tasks of its own time without reading them.
func TestAPageReadsABoundedNumberOfTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &counting{Journal: journal.NewMemory(journal.Retention{})}
		first := coretest.NewHub(t, hub.Options{Journal: disk, Limits: hub.Limits{FinishedTasks: 1}})
		g := &testHub{t, first}
		a, ann, bob := g.agent("a", able), g.connect("ann"), g.connect("bob")
		oldest := g.ask(bob, "a")
		g.report(a, oldest, core.Done{})
		for range 600 {
			g.report(a, g.ask(ann, "a"), core.Done{})
		}
		g.sleep(time.Second)
		g.report(a, g.ask(ann, "a"), core.Done{}) // which removes all others from memory
		g.sleep(time.Second)
		names := map[core.TaskID]string{oldest.ID(): "oldest"}
		find := func(what string, p core.Principal, f task.Filter, mostPages, mostReads int) {
			t.Helper()
			disk.reads.Store(0)
			pages := g.lists(names, p, f)
			if len(pages) > mostPages || disk.reads.Load() > int64(mostReads) {
				t.Errorf("%s: got %d pages and %d reads, want at most %d and %d", what, len(pages), disk.reads.Load(), mostPages, mostReads)
			}
			if found := slices.Concat(pages...); len(found) != 1 || found[0] != "oldest done" {
				t.Errorf("%s: got %v, want the oldest task found", what, found)
			}
		}
		find("one among many", operator, task.Filter{From: "bob"}, 1, 1)
		find("one's own among those of others", core.Principal{ID: "bob"}, task.Filter{}, 1, 1)
		if got := g.lists(nil, operator, task.Filter{State: "running"}); len(got) != 1 || len(got[0]) != 0 {
			t.Errorf("running tasks: got %v, want none in the first page", got)
		}
		for _, s := range []*hub.Session{a, ann, bob} {
			s.Close(nil)
		}
		if err := first.Close(t.Context(), "restart"); err != nil {
			t.Fatal(err)
		}

		g.hub = coretest.NewHub(t, hub.Options{Journal: disk})
		if err := g.hub.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		page, err := g.hub.Tasks(t.Context(), operator, task.Filter{From: "bob"})
		if err != nil || len(page.Tasks) != 0 || page.Before == "" {
			t.Errorf("after a restart: got %d tasks, before %q and %v, want none and more pages", len(page.Tasks), page.Before, err)
		}
		find("after a restart", operator, task.Filter{From: "bob"}, 3, 602)
		find("again", operator, task.Filter{From: "bob"}, 1, 1)
	})
}

// Nobody learns from a page how many tasks of others there are.
func TestAPageTellsNothingOfTheTasksOfOthers(t *testing.T) {
	for _, kept := range []int{1, 100} {
		withHub(t, hub.Limits{FinishedTasks: kept}, func(g *testHub) {
			a, ann, bob := g.agent("a", able), g.connect("ann"), g.connect("bob")
			ask := func(s *hub.Session) core.TaskID {
				one := g.ask(s, "a")
				g.report(a, one, core.Done{})
				g.sleep(time.Second)
				return one.ID()
			}
			ask(bob)
			own := []core.TaskID{ask(ann)}
			ask(bob)
			own = append(own, ask(ann))
			ask(bob)
			for limit, want := range map[int]core.TaskID{1: own[1], 2: "", 3: ""} {
				page, err := g.hub.Tasks(t.Context(), core.Principal{ID: "ann"}, task.Filter{Limit: limit})
				if err != nil || len(page.Tasks) != min(limit, 2) || page.Before != want {
					t.Errorf("with %d in memory and limit %d: got %d tasks, before %q and %v, want %d and %q", kept, limit, len(page.Tasks), page.Before, err, min(limit, 2), want)
				}
			}
		})
	}
}

// A thousand cards as large as they may be are 64 MB: a page of them has a bound in bytes too.
func TestAPageOfLargeCardsIsBoundedInBytes(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		const agents = 200
		big := func(c *core.Card) {
			c.Metadata = map[string]json.RawMessage{"notes": json.RawMessage(`"` + strings.Repeat("x", 60<<10) + `"`)}
		}
		for i := range agents {
			g.agent(fmt.Sprintf("a-%03d", i), able, big)
		}
		var seen []core.AgentID
		for after := core.AgentID(""); ; {
			page, more := g.hub.AgentPage(core.Principal{}, after, 1000, func(core.Card) bool { return true })
			size := 0
			for _, a := range page {
				seen, after = append(seen, a.ID), a.ID
				size += a.Size()
			}
			if size > hub.PageBytes || len(seen)+more != agents {
				t.Fatalf("got %d bytes on a page after %d agents, and %d more, want at most %d of %d agents", size, len(seen), more, hub.PageBytes, agents)
			}
			if more == 0 {
				break
			}
		}
		if len(seen) != agents || !slices.IsSorted(seen) {
			t.Errorf("got %d agents over all pages, want all %d by id", len(seen), agents)
		}
		if got := len(g.hub.Agents(core.Principal{})); got != agents {
			t.Errorf("got %d agents without pages, want %d", got, agents)
		}
	})
}
