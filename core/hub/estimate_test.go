package hub_test

import (
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

func TestAnEstimateUsesTheLatestTasksAndTheQueue(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		done := func(task *task.Task, after time.Duration) {
			g.sleep(after)
			g.report(agent, task, core.Done{})
		}
		want := func(what string, task *task.Task, want time.Duration) {
			t.Helper()
			if got := g.hub.Estimate(task.ID()); got != want {
				t.Errorf("%s: got %s, want %s", what, got, want)
			}
		}
		first := g.ask(asker, "a")
		want("the first", first, 0)
		done(first, 8*time.Second)
		second := g.ask(asker, "a")
		want("the second", second, 8*time.Second)
		third, fourth := g.ask(asker, "a"), g.ask(asker, "a")
		want("after a running task", third, 16*time.Second)
		want("after a running and a queued task", fourth, 24*time.Second)
		done(second, 4*time.Second)
		want("once the agent was faster", third, 7*time.Second)
		g.report(agent, third, core.Failed{Fault: core.NewFault(core.CodeInternal, "no")})
		want("what failed says nothing", fourth, 7*time.Second)
		done(fourth, 7*time.Second)
	})
}

func TestATaskWithoutAnAgentHasNoEstimate(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		task, _ := g.try(g.connect("r"), core.ToAgent("nobody"))
		if got := g.hub.Estimate(task.ID()); got != 0 {
			t.Errorf("got %s, want none", got)
		}
	})
}
