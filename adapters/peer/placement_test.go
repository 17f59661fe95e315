package peer_test

import (
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

func TestABurstGoesToTheAgentsOfAllHubs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		agents := map[core.AgentID]*hub.Session{}
		for id, at := range map[core.AgentID]string{"ada": "a", "bob": "b", "ben": "b", "cid": "c", "cat": "c"} {
			agents[id] = w.join(at, thinker(id))
		}
		ann := w.person("a")
		for range 2 * len(agents) { // before any hub says what its agents have to do
			ask(t, ann, core.ToCapability("think"))
		}
		w.until("all is known", func() bool {
			e, ok := w.hubs["a"].Agent(core.Principal{ID: "ann"}, "cid")
			return ok && e.Load.Queued > 0
		})
		for id, s := range agents {
			assigned(t, s)
			e, _ := w.hubs["a"].Agent(core.Principal{ID: "ann"}, id)
			if e.Load.Active != 1 || e.Load.Queued != 1 {
				t.Errorf("%s: got %d tasks and %d that wait, want one each", id, e.Load.Active, e.Load.Queued)
			}
		}
	})
}

func TestAnAgentElsewhereIsFreeOnceItHasAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob, cid := w.join("b", thinker("bob")), w.join("c", thinker("cid"))
		ann := w.person("a")
		first, second := ask(t, ann, core.ToCapability("think")), ask(t, ann, core.ToCapability("think"))
		assigned(t, cid)
		answers(t, bob, "because")
		until(t, ann, first.ID(), core.KindDone)
		third := ask(t, ann, core.ToCapability("think")) // before hub b says that bob is free
		answers(t, bob, "so")
		until(t, ann, third.ID(), core.KindDone)
		if second.HasEnded() {
			t.Error("got the task of the other agent ended, want it to run")
		}
	})
}

func TestATaskForWhichItsOwnerHasNoRoomGoesToAnotherHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldWith(t, func(_ string, o *hub.Options) { o.Limits.QueueLength = 1 }, "a", "b", "c")
		w.join("b", thinker("bob"))
		cid := w.join("c", thinker("cid"))
		near, ann := w.person("b"), w.person("a")
		ask(t, near, core.ToAgent("bob"))
		ask(t, near, core.ToAgent("bob"))                // which hub a does not know yet
		asked := ask(t, ann, core.ToCapability("think")) // goes to bob
		answers(t, cid, "because")
		if got := until(t, ann, asked.ID(), core.KindDone); got != "1 opened, 2 retrying, 3 assigned, 4 done" {
			t.Errorf("got %s, want it answered at another hub", got)
		}
		named := ask(t, ann, core.ToAgent("bob"))
		if got := until(t, ann, named.ID(), core.KindFailed); got != "1 opened, 2 failed" {
			t.Errorf("what only one agent may have: got %s, want it refused", got)
		}
	})
}
