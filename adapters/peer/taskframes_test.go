package peer_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/redact"
	"github.com/dragoman-hub/dragoman/core/task"
)

// newFramedWorld is newWorld for hubs that keep frames, except those whose books are nil.
func newFramedWorld(t *testing.T, books map[string]*frame.Book) *world {
	t.Helper()
	return newWorldWith(t, func(name string, o *hub.Options) { o.Frames = books[name] }, "a", "b", "c")
}

// newBook returns a book with room for all frames of a test.
func newBook() *frame.Book { return frame.NewBook(frame.Options{Keep: 1 << 20}) }

// framed connects somebody whose frames a hub keeps.
func (w *world) framed(at, id string, b *frame.Book) (*hub.Session, *frame.Ring) {
	r := b.Connect("test", nil)
	return w.hubs[at].Connect(hub.Identity{Principal: core.Principal{ID: id, Dialect: "test"}, Dialect: "test", Frames: r}), r
}

// says has a session act on a frame that it receives, a moment after what was before.
func says(r *frame.Ring, message string, act func()) {
	time.Sleep(time.Millisecond)
	r.Receive([]byte(message))
	act()
	r.Received()
}

// framesAt returns the frames of a task that somebody sees at a hub, each behind the hub that kept it.
func (w *world) framesAt(at string, by core.Principal, id core.TaskID) (all, missing string) {
	w.t.Helper()
	found, err := w.hubs[at].Frames(w.t.Context(), by, id)
	if err != nil {
		w.t.Fatalf("the frames at hub %s: %v", at, err)
	}
	var lines []string
	for _, f := range found.Frames {
		kept := f.Hub
		if kept == "" {
			kept = at
		}
		lines = append(lines, kept+" "+string(f.Frame))
	}
	return strings.Join(lines, ", "), found.Missing
}

func TestFramesOfATaskAreThoseOfAllHubs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		books := map[string]*frame.Book{"a": newBook(), "b": newBook(), "c": newBook()}
		w := newFramedWorld(t, books)
		var err error
		if w.redactor, err = redact.New(nil, []string{"sesame-open"}); err != nil {
			t.Fatal(err)
		}
		bob, bobs := w.framed("b", "bob", books["b"])
		if err := bob.Join(core.Card{ID: "bob", MaxConcurrent: 2}, hub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
		w.until("a knows bob", func() bool { _, ok := w.hubs["a"].Agent(operator, "bob"); return ok })
		ann, anns := w.framed("a", "ann", books["a"])
		var asked *task.Task
		says(anns, `"why?"`, func() { asked = ask(t, ann, core.ToAgent("bob")) })
		held := assigned(t, bob)
		other := ask(t, w.hubs["a"].Connect(hub.Identity{Principal: core.Principal{ID: "eve"}, Dialect: "test"}), core.ToAgent("bob"))
		gets(t, bob, other.ID())
		report := func(body core.Body) {
			t.Helper()
			if err := bob.Report(held.ID(), body, nil); err != nil {
				t.Error(err)
			}
		}
		says(bobs, `"for sesame-open"`, func() { report(core.Text{Text: "for"}) })
		says(bobs, `"for both"`, func() {
			report(core.Text{Text: "both"})
			bobs.Event(other.ID(), true, core.KindText, 0, false) // as a frame that has more than one task
		})
		says(bobs, `"done"`, func() { report(core.Done{}) })
		until(t, ann, asked.ID(), core.KindDone)
		w.join("c", core.Card{ID: "cid"}) // every hub has heard of what was before

		for _, at := range []string{"a", "b", "c"} {
			const all = `a "why?", b "for [redacted]", b "for both", b "done"`
			if got, missing := w.framesAt(at, operator, asked.ID()); got != all || missing != "" {
				t.Errorf("at hub %s: got %s without %q, want %s", at, got, missing, all)
			}
			const hers = `a "why?", b "for [redacted]", b "done"`
			const withheld = "hub b: frames that also belong to tasks you may not read: 1"
			if got, missing := w.framesAt(at, core.Principal{ID: "ann"}, asked.ID()); got != hers || missing != withheld {
				t.Errorf("ann at hub %s: got %s without %q, want %s without %q", at, got, missing, hers, withheld)
			}
			if _, err := w.hubs[at].Frames(t.Context(), core.Principal{ID: "zoe"}, asked.ID()); core.AsFault(err).Code != core.CodeUnknownTask {
				t.Errorf("somebody else at hub %s: got %v, want unknown_task", at, err)
			}
		}

		w.net.Kill("b")
		w.untilGone("b")
		time.Sleep(time.Second)
		got, missing := w.framesAt("a", operator, asked.ID())
		if want := `a "why?"`; got != want || missing != "hub b: it is gone, and so are the frames that it kept in memory" {
			t.Errorf("without hub b: got %s without %q, want %s, and that those of hub b are gone", got, missing, want)
		}
		delete(w.hubs, "b") // nobody waits for it
		w.join("c", core.Card{ID: "cyd"})
		var later *task.Task
		says(anns, `"when?"`, func() { later = ask(t, ann, core.ToAgent("cyd")) })
		if got, missing := w.framesAt("a", operator, later.ID()); got != `a "when?"` || missing != "" {
			t.Errorf("a task of later: got %s without %q, want its one frame", got, missing)
		}
	})
}

func TestAHubThatKeepsNoFramesShowsThoseOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		books := map[string]*frame.Book{"a": newBook()}
		w := newFramedWorld(t, books)
		bob := w.join("b", core.Card{ID: "bob"})
		ann, anns := w.framed("a", "ann", books["a"])
		var asked *task.Task
		says(anns, `"why?"`, func() { asked = ask(t, ann, core.ToAgent("bob")) })
		assigned(t, bob)
		got, missing := w.framesAt("b", operator, asked.ID())
		notes := strings.Split(missing, "; ")
		want := []string{
			"hub b: this hub keeps no frames: set frames.keep to the number of bytes to keep of each connection, such as 1000000",
			"hub c: it is not here, or did not answer or keeps no frames",
		}
		if got != `a "why?"` || !slices.Equal(notes, want) {
			t.Errorf("got %s without %q, want that of hub a without %q", got, notes, want)
		}

		w.net.Kill("a")
		w.untilGone("a")
		if found, err := w.hubs["b"].Frames(t.Context(), operator, asked.ID()); core.AsFault(err) == nil || core.AsFault(err).Code != core.CodeConflict {
			t.Errorf("where no hub keeps any: got %+v and %v, want a conflict", found, err)
		}
	})
}
