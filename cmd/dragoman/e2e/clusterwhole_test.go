package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// wholeTask is what a hub says of a task that has ended.
type wholeTask struct {
	State  string
	Answer struct {
		Text      string
		Truncated bool
	}
}

// The hub of an agent stands still for about as long as it takes the others to believe that it is gone, while
// the agent answers and clients wait elsewhere. Who was told an answer at one hub is told the same at all.
func TestAnAnswerIsWholeAtEveryHubThoughItsHubStoodStill(t *testing.T) {
	all := startCluster(t, 3)
	load := &clusterLoad{hubs: all, patience: watchdog}
	ctx := t.Context()
	load.group.Go(func() {
		for ctx.Err() == nil {
			load.join(ctx, all[1], "native", "probe-b")
		}
	})
	t.Cleanup(load.group.Wait)
	const rounds, each = 15, 8
	done := 0
	for round := range rounds {
		for _, at := range all {
			at.until("hub "+at.name+" knows the agent", func() error { return at.Get(ctx, "/v1/agents/probe-b", new(any)) })
		}
		asked := map[core.TaskID]string{}
		var mu sync.Mutex
		var asking sync.WaitGroup
		for i := range each {
			at := all[i%2*2] // a or c
			asking.Go(func() {
				var task struct{ ID core.TaskID }
				content := fmt.Sprintf("round %d, question %d", round, i)
				if err := at.Post(ctx, "/v1/tasks", map[string]string{"to": "probe-b", "content": content}, &task); err != nil {
					t.Errorf("asking at %s: %v", at.name, err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				asked[task.ID] = content
			})
		}
		asking.Wait()
		time.Sleep(rand.N(150 * time.Millisecond)) // where in its answers b is hit
		all[1].stop()
		time.Sleep(700*time.Millisecond + rand.N(400*time.Millisecond)) // the fault itself
		all[1].cont()
		all.untilAllUp()
		for id, content := range asked {
			done += all.wantWhole(t, id, slowAnswer(content))
		}
	}
	t.Logf("%d of %d tasks were answered", done, rounds*each)
}

// wantWhole holds that a task reads the same at all hubs, and that an answer is whole. It returns 1 if the
// task is done.
func (c hubCluster) wantWhole(t *testing.T, id core.TaskID, answer string) (done int) {
	t.Helper()
	var first wholeTask
	for i, h := range c {
		var one wholeTask
		h.until("the task has ended", func() error {
			one = wholeTask{}
			err := h.Get(t.Context(), "/v1/tasks/"+string(id), &one)
			if err == nil && one.State != "done" && one.State != "failed" {
				err = fmt.Errorf("task %s is %s at %s", id, one.State, h.name)
			}
			return err
		})
		if i == 0 {
			first = one
		}
		if one != first || one.State == "done" && one.Answer.Text != answer {
			t.Errorf("task %s: got %+v at %s and %+v at %s, want the same, and if it is done %q", id, first, c[0].name, one, h.name, answer)
		}
	}
	if first.State == "done" {
		return 1
	}
	return 0
}

// A hub is killed at the moment at which others have told their clients that it has their tasks. What becomes of these
// is the same at every hub, also once it is back.
func TestWhatWasAcceptedForAHubThatDiesEndsAlikeAtEveryHub(t *testing.T) {
	all := startCluster(t, 3)
	a, b, c := all[0], all[1], all[2]
	ctx := t.Context()
	unstored := 0
	for round := range 4 {
		joinWorker(t, b, "worker") // until its hub dies
		for _, at := range all {
			at.until("hub "+at.name+" knows the agent", func() error { return at.Get(ctx, "/v1/agents/worker", new(any)) })
		}
		accepted := make(chan core.TaskID, 100)
		var asking sync.WaitGroup
		for range 16 {
			asking.Go(func() {
				for ctx.Err() == nil {
					var task struct{ ID core.TaskID }
					if err := a.Post(ctx, "/v1/tasks", map[string]string{"to": "worker", "content": "wait"}, &task); err != nil {
						return // its hub is gone
					}
					accepted <- task.ID
				}
			})
		}
		go func() {
			asking.Wait()
			close(accepted)
		}()
		var ids []core.TaskID
		for id := range accepted {
			if ids = append(ids, id); len(ids) == 20+10*round {
				b.kill()
			}
		}
		check := func(hubs hubCluster) (lost int) {
			t.Helper()
			for _, id := range ids {
				var one storedTask
				a.until("the task can be read at all hubs", func() (err error) {
					one, err = hubs.storedTask(ctx, id)
					return err
				})
				if len(one.ends) != len(hubs) || one.ends[0] == "" || len(slices.Compact(slices.Clone(one.ends))) != 1 {
					t.Errorf("task %s: got the ends %q at %d hubs, want one end", id, one.ends, len(hubs))
				} else if strings.Contains(one.ends[0], neverStored) {
					lost++
				}
			}
			return lost
		}
		unstored += check(hubCluster{a, c})
		b.start()
		all.untilAllUp()
		check(all)
	}
	t.Logf("of %d tasks their hub had stored nothing", unstored)
}
