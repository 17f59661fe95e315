package hub_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

func TestATaskIsDueWhenItsAgentHasUsedItsTimeDespiteRetries(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seconds := func(what string) time.Duration {
			return time.Duration(rapid.IntRange(0, 30).Draw(rt, what)) * time.Second
		}
		limit := 20*time.Second + time.Millisecond
		withHub(t, hub.Limits{Deadline: limit}, func(g *testHub) {
			agents, most := map[core.AgentID]*hub.Session{}, map[core.AgentID]time.Duration{}
			for i := range 3 {
				id := core.AgentID(fmt.Sprint("agent", i))
				s := g.connect(string(id))
				defer s.Close(nil)
				most[id] = seconds("most time")
				if err := s.Join(core.Card{ID: id, Features: able}, hub.JoinOptions{MaxTaskTime: most[id]}); err != nil {
					g.t.Fatal(err)
				}
				agents[id] = s
			}
			asker := g.connect("r")
			defer asker.Close(nil)
			deadline := time.Now().Add(limit)
			asked := g.ask(asker, "*")
			for attempt := 1; ; attempt++ {
				id := asked.Agent()
				due, why := deadline, "by the deadline"
				if at := time.Now().Add(most[id]); most[id] > 0 && at.Before(deadline) {
					due, why = at, fmt.Sprintf("within the %v that agent %s takes", most[id], id)
				}
				if got := asked.Due(); !got.Equal(due) {
					rt.Errorf("attempt %d: got it due at %v, want %v", attempt, got, due)
				}
				if fails := time.Now().Add(seconds("fails after") + time.Second/2); attempt < 3 && fails.Before(due) {
					g.sleep(time.Until(fails))
					g.report(agents[id], asked, notNow)
					continue
				}
				g.sleep(time.Until(due) - 1)
				if got := asked.State(); got != task.Running {
					rt.Errorf("just before it is due: got the task %v, want it running", got)
				}
				g.sleep(1)
				if f := asked.Answer().Fault; asked.State() != task.Ended || f == nil || f.Code != core.CodeTimeout || !strings.Contains(f.Message, why) {
					rt.Errorf("when it is due: got the task %v with %v, want a timeout: %s", asked.State(), f, why)
				}
				return
			}
		})
	})
}
