package hub

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

func TestTheHubKnowsWhichQueuesHaveMovableTasks(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := New(Options{Limits: Limits{QueueLength: 4}})
		now, stop := context.WithCancel(t.Context())
		stop() // waits for no task
		defer func() { _ = h.Close(now, "over") }()
		asker := h.Connect(Identity{Principal: core.Principal{ID: "asker"}, Dialect: "test"})
		var agents []*Session
		var opened []*task.Task
		joined := 0
		some := func() *Session { return agents[rapid.IntRange(0, len(agents)-1).Draw(rt, "agent")] }
		act := map[string]func(){
			"join": func() {
				joined++
				s := h.Connect(Identity{Principal: core.Principal{ID: "agent"}, Dialect: "test"})
				card := core.Card{ID: core.AgentID(fmt.Sprint("agent", joined)), Capabilities: []string{"x"}}
				if err := s.Join(card, JoinOptions{}); err != nil {
					rt.Fatal(err)
				}
				agents = append(agents, s)
			},
			"leave": func() {
				gone := some()
				gone.Close(nil)
				for i, s := range agents {
					if s == gone {
						agents = append(agents[:i], agents[i+1:]...)
						break
					}
				}
			},
			"ask": func() {
				to := core.ToCapability("x")
				if rapid.Bool().Draw(rt, "by id") {
					to = core.ToAgent(some().AgentID())
				}
				if task, err := asker.Open(core.Request{To: to, Content: "?"}, OpenOptions{Unwatched: true}); err == nil {
					opened = append(opened, task)
				}
			},
			"answer": func() {
				for _, task := range some().working() {
					_ = (*Session)(task.Worker().(*peer)).Report(task.ID(), core.Done{}, nil)
				}
			},
			"cancel": func() {
				if n := len(opened); n > 0 {
					_ = asker.Cancel(opened[rapid.IntRange(0, n-1).Draw(rt, "task")].ID(), "enough")
				}
			},
			"load": func() {
				some().SetLoad(rapid.SampledFrom([]core.LoadState{core.LoadIdle, core.LoadOverloaded, core.LoadDraining}).Draw(rt, "load"))
			},
		}
		names := []string{"join", "leave", "ask", "ask", "ask", "ask", "answer", "cancel", "load"}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			name := rapid.SampledFrom(names).Draw(rt, "step")
			if len(agents) == 0 {
				name = "join"
			}
			act[name]()
			h.mu.Lock()
			want := map[*Session]struct{}{}
			for s := range h.sessions {
				if slices.ContainsFunc(s.queue, (*job).isStealable) {
					want[s] = struct{}{}
				}
			}
			got := maps.Clone(h.stealable)
			h.mu.Unlock()
			if !maps.Equal(got, want) {
				rt.Fatalf("after %s: got %d queues with stealable tasks, want %d", name, len(got), len(want))
			}
		}
	})
}
