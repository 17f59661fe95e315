package hub_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

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
		heard, ended, ends := map[core.TaskID]int{}, 0, 0
		all := make(chan struct{}, 1)
		serve := func(until int) func(hub.Batch, error) bool {
			served := 0
			return func(b hub.Batch, err error) bool {
				if within.Add(1) != 1 {
					rt.Errorf("got two calls at once, want one after the other")
				}
				defer within.Add(-1)
				if err != nil {
					ends++
				}
				for _, e := range b.Events {
					switch e.Body.(type) {
					case core.Text:
						heard[b.Task.ID()]++
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
			if got := heard[task.ID()]; got != words[i] {
				rt.Errorf("task %d: got %d words, want %d", i, got, words[i])
			}
		}
		if ended != len(words) || ends > 1 {
			rt.Errorf("got %d ends of tasks and %d of the session, want %d and no second one", ended, ends, len(words))
		}
	})
}
