package peer_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/peer"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// feed makes an operator read all tasks at a hub.
func (w *world) feed(at, from string) *hub.Feed {
	w.t.Helper()
	s := w.hubs[at].Connect(hub.Identity{Principal: core.Principal{ID: "op", Operator: true}, Dialect: "test"})
	f, err := s.Feed(from)
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}

// told reads a feed until nothing comes for a while, at most n events. It returns what it was told of
// each task, and the position after that.
func (w *world) told(f *hub.Feed, most int) (told map[core.TaskID]string, position string) {
	w.t.Helper()
	told, position = map[core.TaskID]string{}, string(f.Position(nil))
	ctx, cancel := context.WithTimeout(w.t.Context(), 3*time.Second)
	defer cancel()
	for n := 0; n < most; {
		b, err := f.Next(ctx)
		if err != nil {
			return told, position
		}
		if b.Gap != nil || b.After != "" {
			told[b.Task] += fmt.Sprintf("gap after %s ", b.After)
		}
		for _, e := range b.Events[:min(len(b.Events), most-n)] {
			told[b.Task] += e.Body.Kind().String() + " "
			position = string(f.Append(nil, b.Task, e))
			n++
		}
	}
	return told, position
}

const whole = "opened assigned done "

// wantTold compares what a feed was told with the tasks that it should have told from their beginning
// to their end.
func wantTold(t *testing.T, what string, got map[core.TaskID]string, want ...*task.Task) {
	t.Helper()
	for _, one := range want {
		if got[one.ID()] != whole {
			t.Errorf("%s: got %q of task %s, want %q", what, got[one.ID()], one.ID(), whole)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: got %d tasks (%v), want %d", what, len(got), got, len(want))
	}
}

const all = 1000

func TestAFeedHasTheTasksOfAllHubs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob, cyd := w.join("b", core.Card{ID: "bob"}), w.join("c", core.Card{ID: "cyd"})
		w.talk(w.person("b"), bob, "bob", "", "before", "0")
		f, second := w.feed("a", ""), w.feed("c", "")
		var tasks []*task.Task
		for i, at := range []string{"a", "b", "c", "b"} {
			tasks = append(tasks, w.talk(w.person(at), bob, "bob", "", "to bob", fmt.Sprint(i)), w.talk(w.person(at), cyd, "cyd", "talk", "to cyd", fmt.Sprint(i)))
		}
		got, _ := w.told(f, all)
		wantTold(t, "at hub a", got, tasks...)
		got, _ = w.told(second, all)
		wantTold(t, "at hub c", got, tasks...)
	})
}

func TestAFeedGoesOnAtAnotherHubWhenItsHubHasDied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob, cyd := w.join("b", core.Card{ID: "bob"}), w.join("c", core.Card{ID: "cyd"})
		f := w.feed("a", "")
		var tasks []*task.Task
		ask := func(at string) {
			tasks = append(tasks, w.talk(w.person(at), bob, "bob", "", "to bob", ""), w.talk(w.person(at), cyd, "cyd", "", "to cyd", ""))
		}
		for _, at := range []string{"a", "b", "c"} {
			ask(at)
		}
		got, position := w.told(f, 8) // in the middle of a task
		w.net.Kill("a")
		w.untilGone("a")
		ask("b")
		ask("c")
		rest, end := w.told(w.feed("c", position), all)
		for id, text := range rest {
			got[id] += text
		}
		wantTold(t, "before and after", got, tasks...)
		if again, _ := w.told(w.feed("b", end), all); len(again) > 0 {
			t.Errorf("at a third hub after the end: got %v, want nothing again", again)
		}
		w.start("a", 0)
		w.until("a has a quorum", w.hubs["a"].part.Cluster().HasQuorum)
		rest, _ = w.told(w.feed("a", position), all)
		got, _ = w.told(w.feed("c", position), all)
		for id, text := range got {
			if rest[id] != text {
				t.Errorf("at the hub that has come back: got %q of task %s, want %q as elsewhere", rest[id], id, text)
			}
		}
	})
}

func TestAFeedShowsWhatRunsAtOtherHubs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob := w.join("b", core.Card{ID: "bob"})
		asked := ask(t, w.person("b"), core.ToAgent("bob"))
		held := assigned(t, bob)
		time.Sleep(time.Second)
		f := w.feed("c", "")
		watcher := w.hubs["c"].Connect(hub.Identity{Principal: core.Principal{ID: "op", Operator: true}, Dialect: "test"})
		if err := watcher.WatchAll(); err != nil {
			t.Fatal(err)
		}
		if got, _ := w.told(f, 2); got[asked.ID()] != "opened assigned " {
			t.Errorf("got %q, want the task that runs", got)
		}
		if err := bob.Report(held.ID(), core.Done{}, nil); err != nil {
			t.Fatal(err)
		}
		if got, _ := w.told(f, 1); got[asked.ID()] != "done " {
			t.Errorf("got %q, want the end", got)
		}
		if got := until(t, watcher, asked.ID(), core.KindDone); got != "1 opened, 2 assigned, 3 done" {
			t.Errorf("the watcher: got %q, want all of the task", got)
		}
	})
}

func TestAFeedAsksForNothingWhileNobodyReadsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob := w.join("b", core.Card{ID: "bob"})
		asked := ask(t, w.person("b"), core.ToAgent("bob"))
		assigned(t, bob)
		time.Sleep(time.Second)
		readers, err := w.hubs["b"].Readers(t.Context(), core.Principal{ID: "ann"}, asked.ID())
		if err != nil || slices.ContainsFunc(readers, func(r task.ReaderStatus) bool { return r.Principal.Dialect == peer.Dialect }) {
			t.Errorf("got the readers %v and %v, want no other hub", readers, err)
		}
	})
}

// A hub that has started again has been told which tasks of the others were the newest, and not of
// those tasks.
func TestAFeedIsToldNoGapWhereNothingIsMissingAfterARestart(t *testing.T) {
	for index, restarted := range []string{"a", "b", "c"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, "a", "b", "c")
			agents := map[core.AgentID]*hub.Session{}
			for _, at := range []string{"a", "b", "c"} {
				id := core.AgentID("agent-" + at)
				agents[id] = w.join(at, core.Card{ID: id})
			}
			talk := func(at string, to core.AgentID) *task.Task {
				return w.talk(w.person(at), agents[to], to, "", "to "+string(to), "")
			}
			for _, at := range []string{"c", "b", "a"} {
				for to := range agents {
					talk(at, to)
				}
			}
			talk("a", "agent-b") // the newest task is not one of a hub with itself
			_, before := w.told(w.feed("b", ""), all)
			w.net.Kill(restarted)
			w.untilGone(restarted)
			w.start(restarted, index)
			for name, m := range w.hubs {
				w.until(name+" misses no hub", func() bool { return m.part.Cluster().HasQuorum() && len(m.part.Cluster().Missing()) == 0 })
			}
			positions := map[string]string{"before": before}
			for at := range w.hubs {
				_, positions["at "+at+" since"] = w.told(w.feed(at, ""), all)
			}
			for at := range w.hubs {
				for made, position := range positions {
					if got, _ := w.told(w.feed(at, position), all); len(got) > 0 {
						t.Errorf("hub %s has started again, position made %s, resumed at %s: got %v, want nothing", restarted, made, at, got)
					}
				}
			}
			to := core.AgentID("agent-" + map[string]string{"a": "b", "b": "c", "c": "a"}[restarted])
			last := talk(map[string]string{"a": "c", "b": "a", "c": "b"}[restarted], to) // of two hubs that go on
			for at := range w.hubs {
				for made, position := range positions {
					got, _ := w.told(w.feed(at, position), all)
					wantTold(t, fmt.Sprintf("hub %s has started again, position made %s, resumed at %s", restarted, made, at), got, last)
				}
			}
		})
	}
}

func TestAFeedIsToldOneGapIfNoHubKnowsWhereItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := newWorld(t, "a", "b", "c")
		f, amy := lost.feed("b", ""), lost.join("a", core.Card{ID: "amy"})
		for _, at := range []string{"b", "c"} {
			lost.talk(lost.person(at), amy, "amy", "", "to amy", "")
		}
		_, position := lost.told(f, all)
		w := newWorld(t, "a", "b", "c") // with another journal
		kept := w.talk(w.person("b"), w.join("a", core.Card{ID: "amy"}), "amy", "", "to amy", "")
		for at := range w.hubs {
			got, _ := w.told(w.feed(at, position), all)
			if n := strings.Count(got[""], "gap after "); n != 1 {
				t.Errorf("at hub %s: got %d gaps (%v), want 1", at, n, got)
			}
			if got[kept.ID()] != whole {
				t.Errorf("at hub %s: got %q of the task that is kept, want %q", at, got[kept.ID()], whole)
			}
		}
	})
}
