package peer_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster"
	"github.com/dragoman-hub/dragoman/core/cluster/remote"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/rpc"
	"github.com/dragoman-hub/dragoman/core/task"
)

// talk asks an agent in a thread and has it answer. It returns the request as the agent got it, once
// the asker has read the end.
func (w *world) talk(asker, agent *hub.Session, to core.AgentID, thread core.ThreadID, question, answer string) *task.Task {
	w.t.Helper()
	asked, err := asker.Open(core.Request{To: core.ToAgent(to), Thread: thread, Content: question}, hub.OpenOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	got := assigned(w.t, agent)
	for got.ID() != asked.ID() { // the end of one before
		got = assigned(w.t, agent)
	}
	if err := agent.Report(got.ID(), core.Done{Text: answer}, nil); err != nil {
		w.t.Fatal(err)
	}
	until(w.t, asker, asked.ID(), core.KindDone)
	return got
}

// untilGone waits until all others know that a hub is gone.
func (w *world) untilGone(name string) {
	w.t.Helper()
	for other, m := range w.hubs {
		w.until(other+" knows that "+name+" is gone", func() bool {
			hubs, _ := m.part.Cluster().Hubs()
			return other == name || m.stopped.Load() || slices.ContainsFunc(hubs, func(h cluster.Hub) bool { return h.Name == name && h.State == cluster.Gone })
		})
	}
}

// said returns turns as text.
func said(turns []core.Turn) string {
	var all []string
	for _, t := range turns {
		all = append(all, t.Text)
	}
	return strings.Join(all, ", ")
}

// wantThread compares all that a hub says of a thread.
func (w *world) wantThread(at string, thread core.ThreadID, want ...string) {
	w.t.Helper()
	ann := core.Principal{ID: "ann"}
	m := w.hubs[at]
	if got := said(m.Turns(w.t.Context(), ann, thread)); got != strings.Join(want, ", ") {
		w.t.Errorf("hub %s, its turns: got %q, want %q", at, got, strings.Join(want, ", "))
	}
	latest, err := m.LatestTurns(w.t.Context(), ann, thread, 100)
	if err != nil {
		w.t.Errorf("hub %s, its latest tasks: %v", at, err)
	}
	var tasks []*task.Task
	missing, err := m.Thread(w.t.Context(), ann, thread, "", func(t *task.Task) bool {
		tasks = append(tasks, t)
		return true
	})
	if err != nil || missing {
		w.t.Errorf("hub %s, its tasks: missing %v, %v", at, missing, err)
	}
	for what, all := range map[string][]*task.Task{"latest tasks": latest, "tasks": tasks} {
		var got []string
		for _, t := range all {
			got = append(got, t.Request().Content, core.Fold(t.Events()).Text)
		}
		if !slices.Equal(got, want) {
			w.t.Errorf("hub %s, its %s: got %q, want %q", at, what, got, want)
		}
	}
}

func TestAThreadIsOneAtAllHubs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob, cyd := w.join("b", core.Card{ID: "bob"}), w.join("c", core.Card{ID: "cyd"})
		at := map[string]*hub.Session{"a": w.person("a"), "b": w.person("b"), "c": w.person("c")}
		w.talk(at["a"], bob, "bob", "talk", "one?", "1")
		if got := said(w.talk(at["b"], cyd, "cyd", "talk", "two?", "2").Request().History); got != "one?, 1" {
			t.Errorf("the second agent: got the history %q, want all of it", got)
		}
		if got := said(w.talk(at["c"], bob, "bob", "talk", "three?", "3").Request().History); got != "one?, 1, two?, 2" {
			t.Errorf("the first agent again: got the history %q, want all of it", got)
		}
		for name := range w.hubs {
			w.wantThread(name, "talk", "one?", "1", "two?", "2", "three?", "3")
		}
	})
}

func TestABranchIsOneAtAllHubs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob, cyd := w.join("b", core.Card{ID: "bob"}), w.join("c", core.Card{ID: "cyd"})
		asker := w.person("a")
		first := w.talk(asker, bob, "bob", "talk", "one?", "1")
		w.talk(asker, bob, "bob", "talk", "two?", "2")
		branch, err := w.hubs["a"].Branch(t.Context(), core.Principal{ID: "ann"}, first.ID())
		if err != nil {
			t.Fatal(err)
		}
		opened, err := asker.Open(core.Request{To: core.ToAgent("cyd"), Content: "else?"}, hub.OpenOptions{Branch: branch})
		if err != nil {
			t.Fatal(err)
		}
		got := assigned(t, cyd)
		if got := said(got.Request().History); got != "one?, 1" {
			t.Errorf("got the history %q, want that up to the task", got)
		}
		if err := cyd.Report(got.ID(), core.Done{Text: "3"}, nil); err != nil {
			t.Fatal(err)
		}
		until(t, asker, opened.ID(), core.KindDone)
		if got := said(w.talk(w.person("b"), bob, "bob", opened.Thread(), "more?", "4").Request().History); got != "one?, 1, else?, 3" {
			t.Errorf("at another hub: got the history %q, want all of it once", got)
		}
		for name, m := range w.hubs {
			if got := said(m.Turns(t.Context(), core.Principal{ID: "ann"}, opened.Thread())); got != "one?, 1, else?, 3, more?, 4" {
				t.Errorf("hub %s: got the turns %q, want all of them", name, got)
			}
		}
	})
}

func TestAThreadOutlivesTheHubsThatHadIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob, cyd := w.join("b", core.Card{ID: "bob"}), w.join("c", core.Card{ID: "cyd"})
		first := w.talk(w.person("b"), bob, "bob", "", "one?", "1") // asked and answered at one hub
		thread := core.ThreadID(first.ID())
		w.net.Kill("b")
		w.untilGone("b")
		if got := said(w.talk(w.person("a"), cyd, "cyd", thread, "two?", "2").Request().History); got != "one?, 1" {
			t.Errorf("after the hub has died: got the history %q, want that", got)
		}
		w.start("b", 1)
		w.until("b has a quorum", w.hubs["b"].part.Cluster().HasQuorum)
		bob = w.join("b", core.Card{ID: "bob"})
		if got := said(w.talk(w.person("b"), bob, "bob", thread, "three?", "3").Request().History); got != "one?, 1, two?, 2" {
			t.Errorf("after the hub has come back: got the history %q, want all of it", got)
		}
		for name := range w.hubs {
			w.wantThread(name, thread, "one?", "1", "two?", "2", "three?", "3")
		}
	})
}

func TestAHubThatRestartsHasAllTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob := w.join("b", core.Card{ID: "bob"})
		w.talk(w.person("a"), bob, "bob", "talk", "one?", "1")
		w.net.Kill("c")
		w.untilGone("c")
		w.talk(w.person("a"), bob, "bob", "talk", "two?", "2")
		w.start("c", 2)
		w.until("c has a quorum", w.hubs["c"].part.Cluster().HasQuorum)
		w.wantThread("c", "talk", "one?", "1", "two?", "2")
		cyd := w.join("c", core.Card{ID: "cyd"})
		if got := said(w.talk(w.person("c"), cyd, "cyd", "talk", "three?", "3").Request().History); got != "one?, 1, two?, 2" {
			t.Errorf("got the history %q, want all of it", got)
		}
	})
}

func TestAnAgentGetsTheHistoryThatItsHubHasToFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob := w.join("b", core.Card{ID: "bob"})
		w.talk(w.person("a"), bob, "bob", "talk", "one?", "1")
		w.net.Kill("c")
		w.untilGone("c")
		w.start("c", 2)
		w.until("c has a quorum", w.hubs["c"].part.Cluster().HasQuorum)
		cyd := w.join("c", core.Card{ID: "cyd"})
		if got := said(w.talk(w.person("c"), cyd, "cyd", "talk", "two?", "2").Request().History); got != "one?, 1" {
			t.Errorf("got the history %q, want what the other hubs know", got)
		}
		if _, err := w.person("c").Open(core.Request{To: core.ToAgent("nobody"), Thread: "talk", Content: "?"}, hub.OpenOptions{}); core.AsFault(err).Code != core.CodeUnknownAgent {
			t.Errorf("an agent that is not there: got %v, want to be told at once", err)
		}
	})
}

func TestAFollowerOfAThreadSeesTheTasksOfAllHubs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob, cyd := w.join("b", core.Card{ID: "bob"}), w.join("c", core.Card{ID: "cyd"})
		follower := w.person("a")
		if err := follower.Follow("talk", "mine"); err != nil {
			t.Fatal(err)
		}
		other := w.hubs["a"].Connect(hub.Identity{Principal: core.Principal{ID: "eve", Authenticated: true}})
		if err := other.Follow("talk", nil); err != nil {
			t.Fatal(err)
		}
		asker := w.hubs["c"].Connect(hub.Identity{Principal: core.Principal{ID: "ann", Authenticated: true}, Dialect: "test"})
		one := w.talk(asker, bob, "bob", "talk", "one?", "1")
		two := w.talk(asker, cyd, "cyd", "talk", "two?", "2")
		for _, asked := range []*task.Task{one, two} {
			if got, want := until(t, follower, asked.ID(), core.KindDone), "1 opened, 2 assigned, 3 done"; got != want {
				t.Errorf("a task of another hub: got %q, want %q", got, want)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if b, err := other.Next(ctx); err == nil {
			t.Errorf("somebody else: got %v, want nothing", b)
		}
	})
}

func TestAThreadIsReadOnAtAnotherHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob, cyd := w.join("b", core.Card{ID: "bob"}), w.join("c", core.Card{ID: "cyd"})
		ann := hub.Identity{Principal: core.Principal{ID: "ann"}, Dialect: "test"}
		at := func(name string, from core.Place, want ...string) (after core.Place) {
			t.Helper()
			r, err := w.hubs[name].ReadThread(t.Context(), ann, "talk", from)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			var got []string
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			for {
				b, err := r.Next(ctx)
				if err != nil {
					break
				}
				if b.Gap {
					got = append(got, "gap")
				}
				for _, e := range b.Events {
					got, after = append(got, e.Body.Kind().String()), core.PlaceAfter(b.Task.ID(), e)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("hub %s from %s: got %q, want %q", name, from, got, want)
			}
			return after
		}
		w.talk(w.person("a"), bob, "bob", "talk", "one?", "1")
		place := at("a", core.Place{}, "opened", "assigned", "done")
		w.talk(w.person("b"), cyd, "cyd", "talk", "two?", "2")
		w.net.Kill("a")
		place = at("c", place, "opened", "assigned", "done")
		live, err := w.hubs["b"].ReadThread(t.Context(), ann, "talk", place)
		if err != nil {
			t.Fatal(err)
		}
		defer live.Close()
		w.talk(w.person("c"), cyd, "cyd", "talk", "three?", "3")
		var got []string
		for len(got) < 3 {
			b, err := live.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range b.Events {
				got = append(got, e.Body.Kind().String())
			}
		}
		if fmt.Sprint(got) != "[opened assigned done]" {
			t.Errorf("live: got %q, want the third task", got)
		}
	})
}

// counting counts the bytes that a hub tells others.
type counting struct {
	remote.Links
	told atomic.Int64
}

func (c *counting) Tell(to string, n rpc.Told) error {
	c.told.Add(int64(len(n.Value)))
	return c.Links.Tell(to, n)
}

func TestALongAnswerGoesToOtherHubsOnceSomebodyWantsIt(t *testing.T) {
	var tells counting
	all, _ := connectedOver(t, func(string, *hub.Options) {}, func(name string, l remote.Links) remote.Links {
		if name == "b" {
			tells.Links = l
			return &tells
		}
		return l
	}, "a", "b", "c")
	bob := all["b"].join(t, all, core.Card{ID: "bob"})
	ann := core.Principal{ID: "ann"}
	if got := all["c"].Turns(t.Context(), ann, "plan"); len(got) != 0 {
		t.Fatalf("got %d turns of a thread that has not begun", len(got))
	}
	answer := strings.Repeat("because ", 100_000)
	asker := all["a"].person("ann")
	asked, err := asker.Open(core.Request{To: core.ToAgent("bob"), Thread: "plan", Content: "why?"}, hub.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := bob.Report(assigned(t, bob).ID(), core.Done{Text: answer}, nil); err != nil {
		t.Fatal(err)
	}
	until(t, asker, asked.ID(), core.KindDone)
	if got := tells.told.Load(); got > 10_000 {
		t.Errorf("got %d bytes told of an answer of %d, want that the others are told of it alone", got, len(answer))
	}
	for _, at := range []string{"a", "b", "c"} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		turns := all[at].Turns(ctx, ann, "plan")
		for at == "c" && len(turns) == 0 && ctx.Err() == nil { // the news may still be under way
			turns = all[at].Turns(ctx, ann, "plan")
		}
		cancel()
		if got := said(turns); got != "why?, "+answer && got != answer { // a thread keeps the latest turn, however long
			t.Errorf("hub %s: got %d bytes of %d turns, want the answer", at, len(got), len(turns))
		}
	}
}
