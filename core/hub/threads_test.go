package hub_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/task"
	"pgregory.net/rapid"
)

// reads starts to read a thread as the principal id.
func (g *testHub) reads(id, of string, from core.Place) *hub.ThreadReader {
	g.t.Helper()
	c, err := g.hub.ReadThread(g.t.Context(), hub.Identity{Principal: core.Principal{ID: id}, Dialect: "test"}, core.ThreadID(of), from)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(c.Close)
	return c
}

// readNow reads all ready events as text, and returns the place after them.
func (g *testHub) readNow(c *hub.ThreadReader) (lines []string, after core.Place) {
	g.t.Helper()
	for {
		ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
		p, err := c.Next(ctx)
		cancel()
		switch {
		case err != nil:
			return lines, after
		case p.Gap:
			lines = append(lines, "gap")
		}
		for _, e := range p.Events {
			lines, after = append(lines, describe(e)), core.PlaceAfter(p.Task.ID(), e)
		}
	}
}

// describe returns an event as text, with its content.
func describe(e core.Event) string {
	switch b := e.Body.(type) {
	case core.Opened:
		return "opened " + b.Request.Content
	case core.Text:
		return "text " + b.Text
	}
	return e.Body.Kind().String()
}

func (g *testHub) wantLines(what string, got []string, want ...string) {
	g.t.Helper()
	if !slices.Equal(got, want) {
		g.t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestAThreadIsReadTaskByTaskAndThenLive(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, asker := g.agent("a", able, func(c *core.Card) { c.MaxConcurrent = 9 }), g.connect("r")
		g.talk(asker, a, "a", "t", "one", "1")
		g.talk(asker, a, "a", "another", "else", "no")
		c := g.reads("r", "t", core.Place{})
		got, _ := g.readNow(c)
		g.wantLines("the first task", got, "opened one", "assigned", "text 1", "done")

		two := g.open(asker, core.Request{To: core.ToAgent("a"), Thread: "t", Content: "two"})
		g.talk(asker, a, "a", "t", "three", "3")
		got, after := g.readNow(c)
		g.wantLines("while the second runs", got, "opened two", "assigned")
		g.report(a, two, core.Text{Text: "2"}, core.Done{})
		got, _ = g.readNow(c)
		rest := []string{"text 2", "done", "opened three", "assigned", "text 3", "done"}
		g.wantLines("once it has ended", got, rest...)

		got, _ = g.readNow(g.reads("r", "t", after))
		g.wantLines("after a place", got, rest...)
	})
}

func TestAThreadIsReadFromAnyPlace(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		turns := rapid.IntRange(1, 5).Draw(rt, "turns")
		pieces := rapid.IntRange(0, 4).Draw(rt, "pieces")
		left := rapid.IntRange(0, turns*(pieces+3)).Draw(rt, "left after")
		kept := rapid.SampledFrom([]int{1, 100}).Draw(rt, "tasks in memory")
		withHub(t, hub.Limits{FinishedTasks: kept}, func(g *testHub) {
			a, asker := g.agent("a", able), g.connect("r")
			first := g.reads("r", "t", core.Place{})
			var all []string
			var places []core.Place
			for i := range turns {
				task := g.open(asker, core.Request{To: core.ToAgent("a"), Thread: "t", Content: fmt.Sprint(i)})
				for j := range pieces {
					g.report(a, task, core.Text{Text: fmt.Sprintf("%d.%d", i, j)})
				}
				g.report(a, task, core.Done{})
				g.sleep(time.Second) // the journal has it
				for _, e := range task.Events() {
					all, places = append(all, describe(e)), append(places, core.PlaceAfter(task.ID(), e))
				}
			}
			got, _ := g.readNow(first)
			g.wantLines("all texts", merged(got), merged(all)...)
			if !slices.IsSortedFunc(places, core.Place.Compare) {
				t.Errorf("got the places %v, want them in order", places)
			}
			var from core.Place
			if left > 0 {
				from = places[min(left, len(places))-1]
			}
			got, _ = g.readNow(g.reads("r", "t", from))
			g.wantLines("from "+from.String(), merged(got), merged(all[min(left, len(all)):])...)
		})
	})
}

// merged joins consecutive texts, as the journal does.
func merged(lines []string) []string {
	var out []string
	for _, w := range lines {
		piece, isText := strings.CutPrefix(w, "text ")
		if n := len(out); isText && n > 0 && strings.HasPrefix(out[n-1], "text ") {
			out[n-1] += piece
			continue
		}
		out = append(out, w)
	}
	return out
}

func TestAThreadStartedByASingleTaskIncludesThatTask(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, asker := g.agent("a", able), g.connect("r")
		first := g.ask(asker, "a")
		c := g.reads("r", string(first.ID()), core.Place{})
		g.report(a, first, core.Done{})
		g.talk(asker, a, "a", string(first.ID()), "two", "2")
		got, _ := g.readNow(c)
		g.wantLines("the thread", got, "opened go", "assigned", "done", "opened two", "assigned", "text 2", "done")
	})
}

func TestAThreadShowsEachReaderWhatItMayRead(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, ada, bob := g.agent("a", able), g.connect("ada"), g.connect("bob")
		g.talk(ada, a, "a", "t", "hers", "1")
		secret := g.talk(bob, a, "a", "t", "his", "2")
		g.talk(ada, a, "a", "t", "hers again", "3")
		got, _ := g.readNow(g.reads("ada", "t", core.Place{}))
		g.wantLines("ada", got, "opened hers", "assigned", "text 1", "done", "opened hers again", "assigned", "text 3", "done")
		from := core.PlaceAfter(secret.ID(), secret.Events()[0])
		hers := []string{"gap", "opened hers again", "assigned", "text 3", "done"}
		got, _ = g.readNow(g.reads("ada", "t", from))
		g.wantLines("ada, from a place in what is his", got, hers...)
		got, _ = g.readNow(g.reads("ada", "t", core.Place{Task: core.TaskID(string(secret.ID())[:35] + "0"), Cursor: from.Cursor})) // of no task
		g.wantLines("ada, from a place in what is nobody's", got, hers...)
	})
}

func TestAPlaceThatDoesNotExistIsRefused(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, asker := g.agent("a", able), g.connect("r")
		task := g.talk(asker, a, "a", "t", "one", "1")
		for _, at := range []core.Cursor{{Epoch: 1, Seq: 99}, {Epoch: 9, Seq: 1}, {Epoch: 2, Seq: 5}} {
			_, err := g.hub.ReadThread(t.Context(), hub.Identity{Principal: core.Principal{ID: "r"}}, "t", core.Place{Task: task.ID(), Cursor: at})
			g.wantFault("after "+at.String(), err, core.CodeInvalid)
		}
	})
}

func TestADroppedPlaceIsAGapFollowedByTheRest(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, asker := g.agent("a", able), g.connect("r")
		elsewhere := g.talk(asker, a, "a", "another", "else", "no")
		g.talk(asker, a, "a", "t", "one", "1")
		got, _ := g.readNow(g.reads("r", "t", core.PlaceAfter(elsewhere.ID(), elsewhere.Events()[0])))
		g.wantLines("after a place of another thread", got, "gap", "opened one", "assigned", "text 1", "done")
	})
}

func TestAThreadIsRestoredFromTheJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := journal.NewMemory(journal.Retention{})
		before := &testHub{t, coretest.NewHub(t, hub.Options{Journal: kept})}
		a, asker := before.agent("a", able), before.connect("r")
		own := before.ask(asker, "a")
		before.report(a, own, core.Text{Text: "0"}, core.Done{})
		before.talk(asker, a, "a", string(own.ID()), "one", "1")
		before.talk(asker, a, "a", "t", "two", "2")
		before.sleep(time.Second)
		was, end := before.readNow(before.reads("r", "t", core.Place{}))

		h := coretest.NewHub(t, hub.Options{Journal: kept})
		if err := h.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		after := &testHub{t, h}
		is, same := after.readNow(after.reads("r", "t", core.Place{}))
		after.wantLines("the thread", is, was...)
		if same != end {
			t.Errorf("got %s as its last place, want %s as before", same, end)
		}
		after.agent("a", able)
		again := after.connect("r")
		next := after.open(again, core.Request{To: core.ToAgent("a"), Thread: "t", Content: "three"})
		if got, want := turns(next.Request().History), "user: two | assistant: 2"; got != want {
			t.Errorf("got the history %q, want %q", got, want)
		}
		if next.ID() <= end.Task {
			t.Errorf("got task %s after %s, want a greater id", next.ID(), end.Task)
		}
		if got, want := turns(h.Turns(t.Context(), core.Principal{Operator: true}, core.ThreadID(own.ID()))), "user: go | assistant: 0 | user: one | assistant: 1"; got != want {
			t.Errorf("the thread started by a task: got %q, want %q", got, want)
		}
	})
}

func TestAReaderOfAThreadIsInformedOfAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &testHub{t, hub.New(hub.Options{})}
		g.agent("a", able)
		asker := g.connect("r")
		running := g.open(asker, core.Request{To: core.ToAgent("a"), Thread: "t", Content: "one"})
		c := g.reads("r", "t", core.Place{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := g.hub.Close(ctx, "maintenance"); err != nil {
			t.Fatal(err)
		}
		var read []string
		for {
			p, err := c.Next(t.Context())
			if err != nil {
				g.wantFault("the end", err, core.CodeUnreachable)
				break
			}
			if p.Draining != "" {
				read = append(read, p.Draining)
			}
			for _, e := range p.Events {
				read = append(read, describe(e))
			}
		}
		if running.State() != task.Ended {
			t.Errorf("got %s, want it ended", running.State())
		}
		for _, want := range []string{"maintenance", "failed"} {
			if !slices.Contains(read, want) {
				t.Errorf("got %q, want %q in it", read, want)
			}
		}
	})
}

func TestAFollowerGetsTheTasksThatOthersOpen(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker, follower := g.agent("a", able), g.connect("r"), g.connect("r")
		follower.Follow("talk", "mine")
		asked := g.open(asker, core.Request{To: core.ToAgent("a"), Thread: "talk", Content: "hello"})
		g.report(agent, asked, core.Text{Text: "hi"}, core.Done{})
		b, _ := g.batch(follower)
		if b.Tag != "mine" || b.Task != asked || b.Role != task.Viewer {
			t.Errorf("got tag %v, task %p, role %v; want mine, %p, a viewer", b.Tag, b.Task, b.Role, asked)
		}
		g.wantKinds("what the follower is shown", append(b.Events, g.events(follower)...), "opened", "assigned", "text", "done")

		elsewhere := g.open(asker, core.Request{To: core.ToAgent("a"), Thread: "other", Content: "hello"})
		g.report(agent, elsewhere, core.Done{})
		g.wantKinds("of another thread", g.events(follower))

		follower.Unfollow("talk")
		later := g.open(asker, core.Request{To: core.ToAgent("a"), Thread: "talk", Content: "again"})
		g.report(agent, later, core.Done{})
		g.wantKinds("after it had enough", g.events(follower))
	})
}

func TestAFollowerReadsItsOwnTasksOnce(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		asker.Follow("talk", "mine")
		task := g.open(asker, core.Request{To: core.ToAgent("a"), Thread: "talk", Content: "hello"})
		g.report(agent, task, core.Done{})
		g.wantKinds("its events", g.events(asker), "opened", "assigned", "done")
		if _, err := asker.Open(core.Request{To: core.ToAgent("a"), Thread: "talk", Content: "hello"}, hub.OpenOptions{Unwatched: true}); err != nil {
			t.Fatal(err)
		}
		g.wantKinds("the events of a task that it does not watch", g.events(asker))
	})
}

func TestFollowingAThreadOfAnotherPrincipalShowsNothing(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent := g.agent("a", able)
		owner := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: "owner", Authenticated: true}})
		defer owner.Close(nil)
		other := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: "other", Authenticated: true}})
		defer other.Close(nil)
		other.Follow("talk", nil)
		task := g.open(owner, core.Request{To: core.ToAgent("a"), Thread: "talk", Content: "hello"})
		g.report(agent, task, core.Done{})
		g.wantKinds("what the other is shown", g.events(other))
	})
}
