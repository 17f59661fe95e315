package hub_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
	"pgregory.net/rapid"
)

// consumers returns the number of goroutines that consume sessions.
func consumers() int {
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "(*consumer).run(")
}

// consumed records what Consume passed to its function.
type consumed struct {
	leave  func()
	events []core.Event
	ends   []error
	calls  int
	within atomic.Int32 // calls in progress
}

// consume records the batches until stop returns true.
func (g *testHub) consume(ctx context.Context, s *hub.Session, stop func(hub.Batch) bool) *consumed {
	a := &consumed{}
	a.leave = s.Consume(ctx, func(b hub.Batch, err error) bool {
		if a.within.Add(1) != 1 {
			g.t.Errorf("call %d: got two calls at once, want one at a time", a.calls+1)
		}
		defer a.within.Add(-1)
		a.calls++
		a.events = append(a.events, b.Events...)
		if err != nil {
			a.ends = append(a.ends, err)
		}
		return stop == nil || !stop(b)
	})
	return a
}

func TestAnIdleConsumerHasNoGoroutineAndMissesNothing(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		news := g.consume(context.Background(), asker, nil)
		for i := range 3 {
			synctest.Wait()
			if got := consumers(); got != 0 {
				t.Errorf("goroutines after %d texts: got %d, want none", i, got)
			}
			g.report(agent, task, core.Text{Text: fmt.Sprint(i, " ")})
		}
		g.report(agent, task, core.Done{})
		synctest.Wait()
		g.wantKinds("served", news.events, "opened", "assigned", "text", "text", "text", "done")
		if got, want := text(news.events), "0 1 2 "; got != want {
			t.Errorf("text: got %q, want %q", got, want)
		}
		news.leave()
	})
}

func TestABusyConsumerKeepsItsGoroutineForHalfAMinute(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		news := g.consume(context.Background(), asker, nil)
		say := func(n int) {
			for range n {
				g.report(agent, task, core.Text{Text: "x"})
				synctest.Wait()
			}
		}
		say(20)
		if got := consumers(); got != 1 {
			t.Errorf("goroutines while busy: got %d, want 1", got)
		}
		g.sleep(31 * time.Second)
		if got := consumers(); got != 0 {
			t.Errorf("goroutines half a minute later: got %d, want none", got)
		}
		say(20)
		if got := consumers(); got != 1 {
			t.Errorf("goroutines while busy again: got %d, want 1", got)
		}
		if got, want := text(news.events), strings.Repeat("x", 40); got != want {
			t.Errorf("text: got %q, want %q", got, want)
		}
		news.leave()
		g.report(agent, task, core.Done{})
	})
}

func TestAConsumerGetsTheEndOnceAndNothingAfter(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		asker := g.connect("r")
		news := g.consume(context.Background(), asker, nil)
		asker.Close(core.NewFault(core.CodeUnreachable, "gone"))
		synctest.Wait()
		news.leave()
		if len(news.ends) != 1 || news.calls != 1 {
			t.Errorf("got %v in %d calls, want one error in one call", news.ends, news.calls)
		}
	})
}

func TestConsumingEndsOnRequest(t *testing.T) {
	for name, end := range map[string]func(*consumed, context.CancelFunc){
		"left":                  func(a *consumed, _ context.CancelFunc) { a.leave() },
		"at the end of context": func(_ *consumed, cancel context.CancelFunc) { cancel() },
		"when it had enough":    func(*consumed, context.CancelFunc) {},
	} {
		for _, before := range []int{1, 20} { // with a goroutine that waits, and without
			t.Run(fmt.Sprint(name, " after ", before), func(t *testing.T) {
				withHub(t, hub.Limits{}, func(g *testHub) {
					agent, asker := g.agent("a", able), g.connect("r")
					task := g.ask(asker, "a")
					ctx, cancel := context.WithCancel(context.Background())
					defer cancel()
					count := 0
					enough := func(b hub.Batch) bool {
						return name == "when it had enough" && strings.HasSuffix(text(b.Events), "!")
					}
					news := g.consume(ctx, asker, enough)
					for range before {
						g.report(agent, task, core.Text{Text: "x"})
						count++
						synctest.Wait()
					}
					g.report(agent, task, core.Text{Text: "!"})
					synctest.Wait()
					end(news, cancel)
					synctest.Wait()
					g.report(agent, task, core.Text{Text: "unread"}, core.Done{})
					synctest.Wait()
					if got, want := text(news.events), strings.Repeat("x", count)+"!"; got != want {
						t.Errorf("text: got %q, want %q", got, want)
					}
					if got := consumers(); got != 0 {
						t.Errorf("goroutines: got %d, want none", got)
					}
					if name != "left" {
						news.leave()
					}
				})
			})
		}
	}
}

func TestStoppingAConsumerDoesNotWaitForNews(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		news := g.consume(context.Background(), asker, nil)
		for range 20 {
			g.report(agent, task, core.Text{Text: "x"})
			synctest.Wait()
		}
		began := time.Now()
		news.leave()
		if took := time.Since(began); took != 0 {
			t.Errorf("stopping took %v, want no time", took)
		}
		g.report(agent, task, core.Text{Text: "unread"})
		synctest.Wait()
		if got, want := text(news.events), strings.Repeat("x", 20); got != want {
			t.Errorf("text: got %q, want %q", got, want)
		}
	})
}

func TestConsumingResumesWhereItStopped(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		first := g.consume(context.Background(), asker, func(b hub.Batch) bool { return strings.HasSuffix(text(b.Events), "enough") })
		for _, piece := range []string{"one ", "two ", "enough"} {
			g.report(agent, task, core.Text{Text: piece})
			synctest.Wait()
		}
		first.leave()
		g.report(agent, task, core.Text{Text: "three "})
		second := g.consume(context.Background(), asker, nil)
		synctest.Wait()
		g.report(agent, task, core.Text{Text: "four "}, core.Done{})
		synctest.Wait()
		second.leave()
		if got, want := text(first.events)+"|"+text(second.events), "one two enough|three four "; got != want {
			t.Errorf("text: got %q, want %q", got, want)
		}
	})
}

func TestAConsumerGetsAllBatchesOneAtATime(t *testing.T) {
	h := coretest.NewHub(t, hub.Options{})
	rapid.Check(t, func(rt *rapid.T) {
		asker := h.Connect(hub.Identity{Principal: core.Principal{ID: "r"}})
		agent := h.Connect(hub.Identity{Principal: core.Principal{ID: "a"}})
		defer agent.Close(nil)
		if err := agent.Join(core.Card{ID: "a", MaxConcurrent: 8, Features: able}, hub.JoinOptions{}); err != nil {
			rt.Fatal(err)
		}
		words := rapid.SliceOfN(rapid.IntRange(0, 30), 1, 4).Draw(rt, "words of each task")
		pauses := rapid.SliceOfN(rapid.IntRange(0, 3), 1, 8).Draw(rt, "pauses")
		turns := rapid.IntRange(1, 3).Draw(rt, "attendances")

		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var within atomic.Int32
		received, ended, ends := map[core.TaskID]int{}, 0, 0
		all := make(chan struct{}, 1)
		serve := func(until int) func(hub.Batch, error) bool {
			served := 0
			return func(b hub.Batch, err error) bool {
				if within.Add(1) != 1 {
					rt.Errorf("got two calls at once, want one at a time")
				}
				defer within.Add(-1)
				if err != nil {
					ends++
				}
				for _, e := range b.Events {
					switch e.Body.(type) {
					case core.Text:
						received[b.Task.ID()]++
					case core.Done:
						ended++
					}
				}
				served++
				if ended == len(words) || served == until {
					select {
					case all <- struct{}{}:
					default:
					}
					return served != until
				}
				return true
			}
		}
		var say sync.WaitGroup
		tasks := make([]*task.Task, len(words))
		for i, n := range words {
			task, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "count"}, hub.OpenOptions{})
			if err != nil {
				rt.Fatal(err)
			}
			tasks[i] = task
			say.Go(func() {
				for word := range n {
					_ = agent.Report(task.ID(), core.Text{Text: "x"}, nil)
					for range pauses[word%len(pauses)] {
						runtime.Gosched()
					}
				}
				_ = agent.Report(task.ID(), core.Done{}, nil)
			})
		}
		for turn := 1; turn < turns && ended < len(words); turn++ {
			leave := asker.Consume(ctx, serve(turn))
			<-all
			leave()
		}
		more := ended < len(words)
		leave := asker.Consume(ctx, serve(-1))
		if more {
			<-all
		}
		say.Wait()
		asker.Close(nil)
		leave()
		for i, task := range tasks {
			if got := received[task.ID()]; got != words[i] {
				rt.Errorf("task %d: got %d texts, want %d", i, got, words[i])
			}
		}
		if ended != len(words) || ends > 1 {
			rt.Errorf("got %d ends of tasks and %d of the session, want %d and no second one", ended, ends, len(words))
		}
	})
}
