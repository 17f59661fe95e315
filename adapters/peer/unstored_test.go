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

func TestATaskThatWasNeverStoredIsForgottenWholly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldWith(t, func(_ string, o *hub.Options) { o.Limits.FinishedTasks = 1 }, "a", "b", "c", "d")
		w.join("b", core.Card{ID: "bob"})
		cyd, ann := w.join("c", core.Card{ID: "cyd"}), w.person("a")
		begin := string(w.feed("a", "").Position(nil))
		first := w.talk(ann, cyd, "cyd", "talk", "one?", "1")
		lost, err := ann.Open(core.Request{To: core.ToAgent("bob"), Thread: "talk", Content: "lost?"}, hub.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w.net.Kill("b")
		w.hubs["b"].stopped.Store(true)
		until(t, ann, lost.ID(), core.KindFailed)
		w.untilGone("b")
		ids := []core.TaskID{first.ID()}
		for i := range 3 {
			ids = append(ids, w.talk(ann, cyd, "cyd", "talk", fmt.Sprint("more?", i), "2").ID())
		}
		time.Sleep(time.Second)
		slices.Sort(ids)
		for _, at := range []string{"a", "c", "d"} {
			if _, err := w.hubs[at].Task(t.Context(), operator, lost.ID()); core.AsFault(err) == nil || core.AsFault(err).Code != core.CodeUnknownTask {
				t.Errorf("at %s: reading the task: got %v, want it unknown", at, err)
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
}
