package peer_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// A hub dies before it has stored a task that another one has opened there, and of which somebody was told that it is
// accepted. It ends alike at every hub, for good.
func TestATaskThatItsHubHasNotStoredEndsAlikeAtEveryHub(t *testing.T) {
	for _, c := range []struct {
		name string
		then func(w *world)
		at   []string // where it is read then
	}{
		{"the hub stays away", func(w *world) {}, []string{"a", "c", "d"}},
		{"the hub comes back", func(w *world) { w.start("b", 1) }, []string{"a", "b", "c", "d"}},
		{"the hub that has opened it starts again", func(w *world) { w.net.Kill("a"); w.untilGone("a"); w.start("a", 0) }, []string{"a", "c", "d"}},
		{"the hub that has opened it is gone, too", func(w *world) { w.net.Kill("a"); w.hubs["a"].stopped.Store(true); w.untilGone("a") }, []string{"c", "d"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorldWith(t, func(_ string, o *hub.Options) { o.Limits.FinishedTasks = 1 }, "a", "b", "c", "d", "e", "f")
				w.join("b", core.Card{ID: "bob"})
				cyd, ann := w.join("c", core.Card{ID: "cyd"}), w.person("a")
				begin := string(w.feed("a", "").Position(nil))
				first := w.talk(ann, cyd, "cyd", "talk", "one?", "1")
				w.delayWrites("b", time.Second, nil)
				lost, err := ann.Open(core.Request{To: core.ToAgent("bob"), Thread: "talk", Content: "lost?"}, hub.OpenOptions{})
				if err != nil {
					t.Fatal(err)
				}
				until(t, ann, lost.ID(), core.KindAssigned) // also what was said of it counts no more
				w.net.Kill("b")
				w.hubs["b"].stopped.Store(true)
				until(t, ann, lost.ID(), core.KindFailed)
				want := string(plain(t, lost.Last()))
				w.untilGone("b")
				ids := []core.TaskID{first.ID(), lost.ID()}
				for i := range 3 { // after which no hub has it in memory
					ids = append(ids, w.talk(ann, cyd, "cyd", "talk", fmt.Sprint("more?", i), "2").ID())
				}
				slices.Sort(ids)
				c.then(w)
				time.Sleep(3 * time.Second)
				for _, at := range c.at {
					one, err := w.hubs[at].Task(t.Context(), operator, lost.ID())
					if err != nil {
						t.Errorf("at %s: reading the task: got %v, want its end", at, err)
					} else if got := string(plain(t, one.Last())); got != want {
						t.Errorf("at %s: got the end %s, want %s", at, got, want)
					}
					page, err := w.hubs[at].Tasks(t.Context(), operator, task.Filter{})
					if err != nil {
						t.Fatal(err)
					}
					var listed []core.TaskID
					for _, one := range page.Tasks {
						listed = append(listed, one.ID)
					}
					slices.Sort(listed)
					if !slices.Equal(listed, ids) {
						t.Errorf("at %s: got the list %q, want %q", at, listed, ids)
					}
					if got := w.readOrder(at, "talk", len(ids), func() {}); !slices.Equal(got, ids) {
						t.Errorf("at %s: got the thread %q, want %q", at, got, ids)
					}
					if got, _ := w.told(w.feed(at, begin), 1000); len(got) != len(ids) {
						t.Errorf("at %s: got a feed of %v, want the tasks %q", at, got, ids)
					}
				}
			})
		})
	}
}

// plain returns the form of an event that all hubs tell.
func plain(t *testing.T, e core.Event) []byte {
	t.Helper()
	text, err := e.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return text
}
