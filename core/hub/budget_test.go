package hub_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/memory"
	"github.com/dragoman-hub/dragoman/core/quota"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// withBudget runs a test with a hub that may hold so many bytes.
func withBudget(t *testing.T, limit int64, limits hub.Limits, test func(*testHub, *memory.Budget)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(limit)
		opts := hub.Options{Limits: limits, Memory: b}
		promises := coretest.Watch(&opts) // without its readers: an idle one holds what it has not read
		g := &testHub{t, hub.New(opts)}
		t.Cleanup(func() {
			if err := g.hub.Close(context.Background(), "the test is over"); err != nil {
				t.Error(err)
			}
			for _, broken := range promises.Broken() {
				t.Error(broken)
			}
		})
		test(g, b)
	})
}

func many(c *core.Card) { c.MaxConcurrent = 1000 }

func TestAFullHubRefusesNewTasksAndFinishesThoseThatRun(t *testing.T) {
	const chunk, perTask = 6 << 10, 10 // 60 KiB a task, where the attack had 60 MiB
	withBudget(t, 1<<20, hub.Limits{}, func(g *testHub, b *memory.Budget) {
		agent, asker := g.agent("a", able, many), g.connect("r")
		var running []*task.Task
		var refused *core.Fault
		for range 80 {
			tk, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{})
			if refused = core.AsFault(err); err != nil {
				break
			}
			running = append(running, tk)
			for range perTask - 1 {
				g.report(agent, tk, core.Text{Text: strings.Repeat("x", chunk)})
			}
			g.events(asker)
		}
		if refused == nil || refused.Code != core.CodeOverloaded || !refused.Retryable || !strings.Contains(refused.Message, "limits.memory") {
			t.Fatalf("opening 80 tasks of 60 KiB with 1 MiB: got %v, want one refused as overloaded, with the setting", refused)
		}
		if n := len(running); n < 16 || n > 20 {
			t.Errorf("got %d tasks that run in 1 MiB, want about 18", n)
		}
		if b.Refused() != 1 {
			t.Errorf("got %d refusals counted, want 1", b.Refused())
		}
		for _, tk := range running {
			g.report(agent, tk, core.Text{Text: strings.Repeat("y", chunk)}, core.Done{})
			g.events(asker)
			if got := len(tk.Answer().Text); got != chunk*perTask {
				t.Errorf("got %d bytes of an answer, want all %d", got, chunk*perTask)
			}
		}
		g.events(agent)
		g.sleep(time.Second) // the journal has them
		g.ask(asker, "a")    // the ended tasks made room, although they were kept
		if held := b.Held(); held > 64<<10 {
			t.Errorf("got %d bytes held with one new task, want few", held)
		}
	})
}

// All tasks are admitted while they are small, and then each says more than its part. With a
// requester that reads, and with one that never does, what is held stays near the limit.
func TestTheLargestOfWhatRunsEndsWhenThereIsNoMemoryLeft(t *testing.T) {
	const limit, chunk, greedy = 8 << 20, 100 << 10, 40 // 40 tasks of 1 MiB, with 8 MiB
	for name, reads := range map[string]bool{"a requester that reads": true, "one that never reads": false} {
		t.Run(name, func(t *testing.T) {
			withBudget(t, limit, hub.Limits{}, func(g *testHub, b *memory.Budget) {
				agent, asker := g.agent("a", able, many), g.connect("r")
				small := g.ask(asker, "a")
				var large []*task.Task
				for range greedy {
					large = append(large, g.ask(asker, "a"))
				}
				most, ended := int64(0), 0
				for range 10 {
					for _, tk := range large {
						if tk.HasEnded() {
							continue
						}
						if err := agent.Report(tk.ID(), core.Text{Text: strings.Repeat("x", chunk)}, nil); err != nil {
							ended++
							g.wantFault("the largest task", err, core.CodeOverloaded)
							if f := core.AsFault(err); !f.Retryable || !strings.Contains(f.Message, "limits.memory") || !tk.HasEnded() {
								t.Errorf("got %v, want a retryable end that names the setting", err)
							}
						}
						most = max(most, b.Held())
						g.events(agent)
						if reads {
							g.events(asker)
						}
					}
					g.sleep(time.Second) // the journal has them
				}
				if wanted := int64(limit + limit/4 + 2*chunk); most > wanted {
					t.Errorf("got up to %d bytes held, want at most %d", most, wanted)
				}
				if ended == 0 || reads && ended == greedy {
					t.Errorf("got %d of %d tasks ended, want some", ended, greedy)
				}
				g.report(agent, small, core.Text{Text: strings.Repeat("y", 50<<10)}, core.Done{})
				if got := small.Answer(); got.End != core.KindDone || len(got.Text) != 50<<10 {
					t.Errorf("a small task: got %v with %d bytes, want it to go on to its end", got.End, len(got.Text))
				}
				for _, tk := range large {
					if !tk.HasEnded() {
						g.report(agent, tk, core.Done{})
					}
				}
			})
		})
	}
}

func TestLargeContextIsRefusedWhenThereIsNoMemory(t *testing.T) {
	withBudget(t, 1<<20, hub.Limits{}, func(g *testHub, b *memory.Budget) {
		agent, asker := g.agent("a", able), g.connect("r")
		tk := g.ask(asker, "a")
		g.report(agent, tk, core.Text{Text: strings.Repeat("x", 1<<20)})
		g.wantFault("context of 100 KiB", asker.Inject(hub.NoWait, tk.ID(), core.Injected{Content: strings.Repeat("y", 100<<10)}), core.CodeOverloaded)
		if err := asker.Inject(hub.NoWait, tk.ID(), core.Injected{Content: "stop soon"}); err != nil {
			t.Errorf("a few words: got %v, want them taken", err)
		}
		g.report(agent, tk, core.Done{})
	})
}

func TestWhatAReaderHoldsCountsUntilItHasRead(t *testing.T) {
	withBudget(t, 0, hub.Limits{FinishedTasks: 1}, func(g *testHub, b *memory.Budget) {
		agent, asker, slow := g.agent("a", able), g.connect("r"), g.connect("r")
		tk := g.ask(asker, "a")
		if err := slow.Watch(tk, core.Cursor{}, nil); err != nil {
			t.Fatal(err)
		}
		g.report(agent, tk, core.Text{Text: strings.Repeat("x", 100<<10)}, core.Done{})
		later := g.ask(asker, "a") // only one ended task is kept
		g.report(agent, later, core.Done{})
		g.events(asker)
		g.events(agent)
		g.sleep(time.Second) // the journal has them
		if _, err := slow.Open(core.Request{To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{Unwatched: true}); err != nil {
			t.Fatal(err)
		}
		if held := b.HeldAs(memory.Ended); held < 100<<10 {
			t.Errorf("got %d bytes of logs held, want the 100 KiB that a viewer has not read", held)
		}
		g.events(slow)
		if held := b.HeldAs(memory.Ended); held > 20<<10 {
			t.Errorf("got %d bytes of logs held once it has read them, want few", held)
		}
		past, err := g.hub.Task(t.Context(), core.Principal{ID: "r"}, tk.ID())
		if err != nil {
			t.Fatal(err)
		}
		if err := slow.Watch(past, core.Cursor{}, nil); err != nil {
			t.Fatal(err)
		}
		if held := b.HeldAs(memory.Ended); held < 100<<10 {
			t.Errorf("got %d bytes of logs held while a task of the journal is read, want its 100 KiB", held)
		}
		slow.Close(nil)
		if held := b.HeldAs(memory.Ended); held > 20<<10 {
			t.Errorf("got %d bytes of logs held once the viewer has left, want few", held)
		}
	})
}

func TestCallsThatAPackHasNotTakenCount(t *testing.T) {
	withBudget(t, 0, hub.Limits{}, func(g *testHub, b *memory.Budget) {
		provider, caller := g.connect("p"), g.connect("c")
		if err := provider.Provide("tools", []tool.Definition{{Name: "store", Description: "stores"}}); err != nil {
			t.Fatal(err)
		}
		caller.CallTool("1", "store", []byte(`{"text":"`+strings.Repeat("x", 50<<10)+`"}`))
		if held := b.HeldAs(memory.Inboxes); held < 50<<10 {
			t.Errorf("got %d bytes held for sessions, want the 50 KiB of the call", held)
		}
		g.events(provider)
		if held := b.HeldAs(memory.Inboxes); held > 8<<10 {
			t.Errorf("got %d bytes held for sessions once it was taken, want few", held)
		}
	})
}

func TestAPrincipalOverItsQuotasIsRefusedUntilItsTaskEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &testHub{t, coretest.NewHub(t, hub.Options{Quotas: quota.NewBook(quota.Limits{Tasks: 1, Connections: 2})})}
		alice, bob := core.Principal{ID: "alice", Authenticated: true}, core.Principal{ID: "bob", Authenticated: true}
		agent := g.agentOf(core.Principal{ID: "a", Authenticated: true}, "a", able, many)
		asker := g.connectAs(alice)
		tk := g.ask(asker, "a")
		open := func(s *hub.Session) error {
			_, err := s.Open(core.Request{To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{})
			return err
		}
		g.wantFault("a second task", open(asker), core.CodeOverloaded)
		g.ask(g.connectAs(bob), "a")
		child := asker.Child()
		g.wantFault("a second task of a child session", open(child), core.CodeOverloaded)
		second := g.connectAs(alice) // a child is no connection
		third := g.connectAs(alice)
		for what, err := range map[string]error{"asking": open(third), "joining": third.Join(core.Card{ID: "alice"}, hub.JoinOptions{})} {
			g.wantFault(what+" over a third connection", err, core.CodeOverloaded)
			if !strings.Contains(err.Error(), "quotas.connections") {
				t.Errorf("got %v, want the quota named", err)
			}
		}
		if _, err := third.Next(t.Context()); core.AsFault(err).Code != core.CodeOverloaded {
			t.Errorf("reading a third connection: got %v, want the reason", err)
		}
		second.Close(nil)
		fourth := g.connectAs(alice)
		g.report(agent, tk, core.Done{})
		if err := open(fourth); err != nil {
			t.Errorf("a task once the first has ended: got %v, want no error", err)
		}
	})
}

// Reads of what is not there, or is somebody else's, count too.
func TestWhatIsRefusedCountsForTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &testHub{t, coretest.NewHub(t, hub.Options{Quotas: quota.NewBook(quota.Limits{Rate: 2})})}
		agent := g.agentOf(core.Principal{ID: "a", Authenticated: true}, "a", able)
		tk := g.ask(g.connectAs(core.Principal{ID: "alice", Authenticated: true}), "a")
		bob := core.Principal{ID: "bob", Authenticated: true}
		read := func(id core.TaskID) error { _, err := g.hub.Task(t.Context(), bob, id); return err }
		g.wantFault("a task of alice", read(tk.ID()), core.CodeUnknownTask)
		g.wantFault("no task", read(core.TaskID(core.NewID())), core.CodeUnknownTask)
		g.wantFault("no task, once more", read(core.TaskID(core.NewID())), core.CodeRateLimited)
		g.report(agent, tk, core.Done{})
	})
}

// What a hub knows of tasks that it can list is a part of what it holds.
func TestTheCatalogOfTasksIsCounted(t *testing.T) {
	withBudget(t, 1<<30, hub.Limits{FinishedTasks: 1}, func(g *testHub, b *memory.Budget) {
		agent, asker := g.agent("a", able, many), g.connect("asker")
		const tasks = 1000
		for range tasks {
			g.report(agent, g.ask(asker, "a"), core.Done{})
		}
		if got := b.HeldAs(memory.Catalog); got < tasks*200 || got > tasks*300 {
			t.Errorf("got %d bytes for %d tasks, want about 256 each", got, tasks)
		}
	})
}
