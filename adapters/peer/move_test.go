package peer_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

var busy = core.Failed{Fault: core.NewFault(core.CodeOverloaded, "not now")}

// thinker is a card of an agent that others may stand in for.
func thinker(id core.AgentID) core.Card {
	return core.Card{ID: id, Capabilities: []string{"think"}}
}

// answers lets an agent answer the next task that it gets.
func answers(t *testing.T, s *hub.Session, text string) {
	t.Helper()
	for {
		held := assigned(t, s)
		if held.HasEnded() {
			continue // its end is news, too
		}
		if err := s.Report(held.ID(), core.Done{Text: text}, nil); err != nil {
			t.Fatal(err)
		}
		return
	}
}

// same checks that a task reads the same at every hub, and in the journal.
func (w *world) same(id core.TaskID, want string) {
	w.t.Helper()
	for name, m := range w.hubs {
		if m.stopped.Load() {
			continue
		}
		ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Second)
		one, err := m.Task(ctx, core.Principal{ID: "ann"}, id)
		cancel()
		if err != nil {
			w.t.Errorf("at %s: got %v, want the task", name, err)
			continue
		}
		w.until(name+" has its end", one.HasEnded)
		if got := kinds(one); got != want {
			w.t.Errorf("at %s: got %s, want %s", name, got, want)
		}
	}
}

func kinds(t *task.Task) string {
	var all []string
	log := t.Log()
	for e := range log.All() {
		all = append(all, e.Body.Kind().String())
	}
	return strings.Join(all, " ")
}

func TestARetryGoesToAnAgentOfAnotherHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob := w.join("b", thinker("bob"))
		ann := w.person("a")
		asked := ask(t, ann, core.ToCapability("think"))
		held := assigned(t, bob)
		cid := w.join("c", thinker("cid"))
		if err := bob.Report(held.ID(), busy, nil); err != nil {
			t.Fatal(err)
		}
		answers(t, cid, "because")
		if got := until(t, ann, asked.ID(), core.KindDone); got != "1 opened, 2 assigned, 3 retrying, 4 retrying, 5 assigned, 6 done" {
			t.Errorf("got %s, want it answered by the other agent", got)
		}
		log := asked.Log()
		failed, moved := log.At(2).Body.(core.Retrying), log.At(3).Body.(core.Retrying)
		if failed.Hub != "" || failed.Attempt != 1 || failed.Agent != "bob" || moved.Attempt != 0 || moved.Hub != "c" || moved.Fault.Code != core.CodeOverloaded {
			t.Errorf("got %+v and %+v, want the first attempt of bob, and c as the owner", failed, moved)
		}
		if n := w.hubs["b"].Running() + w.hubs["c"].Running(); n != 0 {
			t.Errorf("got %d tasks that run, want none", n)
		}
		w.same(asked.ID(), "opened assigned retrying retrying assigned done")
	})
}

func TestARetryComesBackToTheHubWhereItBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob := w.join("b", thinker("bob"))
		ann := w.person("c")
		asked := ask(t, ann, core.ToCapability("think"))
		first := assigned(t, bob)
		cid := w.join("c", thinker("cid"))
		if err := bob.Report(first.ID(), busy, nil); err != nil {
			t.Fatal(err)
		}
		second := assigned(t, cid)
		dan := w.join("b", thinker("dan"))
		if err := cid.Report(second.ID(), busy, nil); err != nil {
			t.Fatal(err)
		}
		answers(t, dan, "because")
		until(t, ann, asked.ID(), core.KindDone)
		w.same(asked.ID(), "opened assigned retrying retrying assigned retrying retrying assigned done")
	})
}

func TestARetryStaysWhereTheOtherHubIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob := w.join("b", thinker("bob"))
		ann := w.person("b")
		asked := ask(t, ann, core.ToCapability("think"))
		held := assigned(t, bob)
		w.join("c", thinker("cid"))
		w.net.Isolate("c")
		if err := bob.Report(held.ID(), busy, nil); err != nil {
			t.Fatal(err)
		}
		if got := until(t, ann, asked.ID(), core.KindFailed); got != "1 opened, 2 assigned, 3 retrying, 4 failed" {
			t.Errorf("got %s, want it to end where it was", got)
		}
		if f := asked.Last().Body.(core.Failed).Fault; f.Code != core.CodeOverloaded {
			t.Errorf("got %v, want the reason of the agent", f)
		}
	})
}

func TestATaskOfAHubThatDiesGoesOnElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob := w.join("b", thinker("bob"))
		ann, eve := w.person("a"), w.person("c")
		asked := ask(t, ann, core.ToCapability("think"))
		named := ask(t, ann, core.ToAgent("bob"))
		assigned(t, bob)
		cid := w.join("c", thinker("cid"))
		read, err := w.hubs["c"].Task(t.Context(), core.Principal{ID: "ann"}, asked.ID())
		if err != nil {
			t.Fatal(err)
		}
		if err := eve.Watch(read, core.Cursor{}, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // the journal has it
		killed := time.Now()
		w.net.Kill("b")
		answers(t, cid, "because")
		if took := time.Since(killed); took > 2*time.Second {
			t.Errorf("it went on after %s, want at most 2s", took)
		}
		for at, s := range map[string]*hub.Session{"a": ann, "c": eve} {
			if got := until(t, s, asked.ID(), core.KindDone); got != "1 opened, 2 assigned, 3 retrying, 4 assigned, 5 done" {
				t.Errorf("at %s: got %s, want it to go on with the other agent", at, got)
			}
		}
		w.until("the task of one agent ends", named.HasEnded)
		if f, ok := named.Last().Body.(core.Failed); !ok || f.Fault.Code != core.CodeUnreachable || !f.Fault.Retryable {
			t.Errorf("got %v, want it unreachable and retryable", named.Last().Body)
		}
	})
}

func TestATaskOfAHubThatDiesEndsIfItWasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob := w.join("b", thinker("bob"))
		ann := w.person("a")
		asked := ask(t, ann, core.ToCapability("think"))
		held := assigned(t, bob)
		w.join("c", thinker("cid"))
		if err := bob.Report(held.ID(), core.Thinking{Text: "hm"}, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		w.net.Kill("b")
		if got := until(t, ann, asked.ID(), core.KindFailed); got != "1 opened, 2 assigned, 3 thinking, 4 failed" {
			t.Errorf("got %s, want its end", got)
		}
	})
}

func TestATaskOfAHubThatDiesAfterItHasMovedGoesOnAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c", "d", "e")
		bob := w.join("b", thinker("bob"))
		ann := w.person("a")
		asked := ask(t, ann, core.ToCapability("think"))
		held := assigned(t, bob)
		cid := w.join("c", thinker("cid"))
		if err := bob.Report(held.ID(), busy, nil); err != nil {
			t.Fatal(err)
		}
		assigned(t, cid)
		dan := w.join("d", thinker("dan"))
		time.Sleep(time.Second)
		w.net.Kill("c")
		w.hubs["c"].stopped.Store(true)
		answers(t, dan, "because")
		until(t, ann, asked.ID(), core.KindDone)
		if got := kinds(asked); !strings.HasSuffix(got, "assigned done") || !strings.HasPrefix(got, "opened assigned retrying retrying assigned retrying") {
			t.Errorf("got %s, want it moved twice at least, and answered", got)
		}
		w.same(asked.ID(), kinds(asked))
	})
}

func TestAnAgentThatComesBackElsewhereTakesItsQueueAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		who := core.Principal{ID: "bob", Authenticated: true, Credential: &core.Credential{Agents: []string{"bob"}}}
		come := func(at string) *hub.Session {
			s := w.hubs[at].Connect(hub.Identity{Principal: who, Dialect: "test"})
			if err := s.Take(t.Context(), thinker("bob"), hub.JoinOptions{}); err != nil {
				t.Fatal(err)
			}
			return s
		}
		old := come("b")
		w.until("a knows bob", func() bool { _, ok := w.hubs["a"].Agent(core.Principal{ID: "ann"}, "bob"); return ok })
		ann := w.person("a")
		running, named, able := ask(t, ann, core.ToAgent("bob")), ask(t, ann, core.ToAgent("bob")), ask(t, ann, core.ToCapability("think"))
		assigned(t, old)
		w.until("two wait", func() bool { return w.hubs["b"].Running() == 3 })
		bob := come("c")
		for range 2 {
			answers(t, bob, "because")
		}
		for _, one := range []*task.Task{named, able} {
			w.until("it is answered", one.HasEnded)
			if got := kinds(one); got != "opened retrying assigned done" {
				t.Errorf("got %s, want it to have waited at one hub and run at another", got)
			}
			w.same(one.ID(), "opened retrying assigned done")
		}
		w.until("what the old connection worked on ends", running.HasEnded)
		if got := kinds(running); got != "opened assigned failed" {
			t.Errorf("what the old connection worked on: got %s, want it failed", got)
		}
	})
}

func TestAHubHandsOnWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob := w.join("b", thinker("bob"))
		ann := w.person("b")
		running := ask(t, ann, core.ToCapability("think"))
		assigned(t, bob)
		var waiting []*task.Task
		for range 5 {
			waiting = append(waiting, ask(t, ann, core.ToCapability("think")))
		}
		named := ask(t, ann, core.ToAgent("bob"))
		cid := w.join("c", thinker("cid"))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		w.hubs["b"].HandOn(ctx)
		if err := ctx.Err(); err != nil {
			t.Fatalf("got %v, want all handed on", err)
		}
		if got := w.hubs["b"].Running(); got != 2 {
			t.Errorf("got %d tasks left, want that which runs and that for the agent of this hub", got)
		}
		for range 5 {
			answers(t, cid, "because")
		}
		for _, one := range waiting {
			w.until("it is answered", one.HasEnded)
			if !one.IsDone() {
				t.Errorf("got %s, want it done", kinds(one))
			}
		}
		if slices.Contains([]bool{running.HasEnded(), named.HasEnded()}, true) {
			t.Error("a task that cannot move has ended")
		}
	})
}

func TestAHubThatStopsHandsOnWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob := w.join("b", thinker("bob"))
		ann := w.person("a")
		running := ask(t, ann, core.ToCapability("think"))
		assigned(t, bob)
		waiting := ask(t, ann, core.ToCapability("think"))
		cid := w.join("c", thinker("cid"))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := w.hubs["b"].Close(ctx, "an upgrade"); err != nil {
			t.Fatal(err)
		}
		w.hubs["b"].stop()
		w.hubs["b"].stopped.Store(true)
		answers(t, cid, "because")
		if got := until(t, ann, waiting.ID(), core.KindDone); got != "1 opened, 2 retrying, 3 assigned, 4 done" {
			t.Errorf("what waited: got %s, want it answered at another hub", got)
		}
		w.same(waiting.ID(), "opened retrying assigned done")
		w.same(running.ID(), "opened assigned failed")
	})
}
