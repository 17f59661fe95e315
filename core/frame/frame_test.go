package frame_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// a translation that says text and the end, folds thinking into them and cannot say files.
var translation = core.Translation{
	Dialect: "d",
	FromAgent: core.Table{
		core.KindText: {How: core.Native, With: "text"}, core.KindThinking: {How: core.Synthesised, With: "text"},
	},
	FromRequester: core.Table{core.KindOpened: {How: core.Folded, With: "ask"}},
	ToRequester: core.Table{
		core.KindText: {How: core.Native, With: "text"}, core.KindThinking: {How: core.Folded, With: "text"}, core.KindFile: {How: core.Refused, With: "no files"},
		core.KindAccepted: {How: core.Internal, With: "nothing"}, core.KindDone: {How: core.Native, With: "end"},
	},
}

func book(keep int, m *memory.Budget) *frame.Book {
	return frame.NewBook(frame.Options{Keep: keep, Memory: m, Translations: core.Translations{translation.Dialect: translation}})
}

// lines returns the frames of a task in short.
func lines(t *testing.T, b *frame.Book, task core.TaskID) (all []string) {
	t.Helper()
	found := b.Of(task)
	for _, f := range found {
		if !json.Valid(f.Frame) {
			t.Errorf("got %q, want JSON", f.Frame)
		}
		line := string(f.Direction) + " " + string(f.Frame)
		for _, is := range f.Became {
			line += " " + is.Kind + "=" + is.Disposition
		}
		all = append(all, line)
	}
	return all
}

func want(t *testing.T, b *frame.Book, task core.TaskID, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, lines(t, b, task)); d != "" {
		t.Errorf("task %s (-want +got):\n%s", task, d)
	}
}

// receive has the connection handle a message that becomes what note says.
func receive(r *frame.Ring, message string, note func()) {
	r.Receive([]byte(message))
	note()
	r.Received()
}

func TestAFrameSaysWhatItBecame(t *testing.T) {
	b := book(1<<20, nil)
	r := b.Connect("d", nil)
	receive(r, `{"ask":1}`, func() {
		r.Event("t", false, core.KindOpened, 0, false)
		r.Queued(frame.Reading(t.Context()), []byte(`{"answer":1}`))
	})
	receive(r, `{"text":"x"}`, func() {
		r.Event("t", true, core.KindThinking, 0, false)
		r.Event("t", true, core.KindText, 0, true)
		r.Command("t", "call_tool", false)
		r.Event("u", true, core.KindText, 0, false)
	})
	receive(r, `{"ping":1}`, func() {})
	receive(r, `no JSON`, func() { r.Event("t", true, core.KindText, 0, false) })
	r.Event("t", true, core.KindText, 0, false) // outside of any message
	want(t, b, "t", `in {"ask":1} opened=folded`, `out {"answer":1}`, `in {"text":"x"} thinking=synthesised text=refused call_tool=native`, `in "no JSON" text=native`)
	want(t, b, "u", `in {"text":"x"} text=native`)
}

func TestAFrameTellsWhatWasFoldedIntoItAndARefusedEventHasNone(t *testing.T) {
	b := book(1<<20, nil)
	r := b.Connect("d", nil)
	d := r.Delivery()
	d.Begin("t", false, core.Event{Body: core.Accepted{}})
	d.Begin("t", false, core.Event{Body: core.Thinking{}})
	d.Begin("u", false, core.Event{Body: core.Text{}})
	r.Queued(t.Context(), []byte(`"u1"`))
	d.Begin("t", false, core.Event{Body: core.File{}})
	d.Begin("t", false, core.Event{Body: core.Text{}})
	r.Queued(t.Context(), []byte(`"t1"`))
	r.Queued(t.Context(), []byte(`"t2"`))
	d.End()
	r.Queued(t.Context(), []byte(`"beside"`))
	d.Begin("t", false, core.Event{Body: core.Done{}})
	r.Queued(t.Context(), []byte(`"t3"`))
	d.End()
	want(t, b, "t", `out null file=refused`, `out "t1" thinking=folded text=native`, `out "t2" text=native`, `out "t3" done=native`)
	want(t, b, "u", `out "u1" text=native`)
}

func TestARingDropsTheOldestAndSaysSo(t *testing.T) {
	m := memory.New(0)
	b := book(2000, m)
	r, began := b.Connect("d", nil), time.Now()
	for i := range 100 {
		receive(r, fmt.Sprint(i), func() { r.Event("t", true, core.KindText, 0, false) })
	}
	all, dropped := b.Of("t"), b.Dropped()
	if len(all) == 0 || len(all) > 10 || string(all[len(all)-1].Frame) != "99" || dropped.Before(began) || dropped.After(all[0].At) {
		t.Errorf("got %d frames and those until %v dropped, want the latest few, and until before them", len(all), dropped)
	}
	if held := m.HeldAs(memory.Frames); held > 2000+768 {
		t.Errorf("got %d bytes held, want at most 2000 beside the ring itself", held)
	}
	receive(r, `"`+strings.Repeat("x", 5000)+`"`, func() { r.Event("big", true, core.KindText, 0, false) })
	want(t, b, "big", `in "[5002 bytes, more than frames.keep leaves room for]" text=native`)
}

func TestTheBookKnowsThatFramesOfEndedConnectionsWereDropped(t *testing.T) {
	b := book(2000, nil)
	r := b.Connect("d", nil)
	receive(r, `"gone"`, func() { r.Event("gone", true, core.KindText, 0, false) })
	r.Close()
	if at := b.Dropped(); !at.IsZero() {
		t.Errorf("got frames until %v dropped, want none so far", at)
	}
	before := time.Now()
	for range 100 {
		o := b.Connect("d", nil)
		receive(o, `"other"`, func() { o.Event("other", true, core.KindText, 0, false) })
		o.Close()
	}
	want(t, b, "gone")
	if at := b.Dropped(); at.Before(before.Add(-time.Minute)) || at.IsZero() {
		t.Errorf("got frames until %v dropped, want that of the connection that ended first", at)
	}
	if n := len(b.Of("other")); n == 0 || n > 16*2000/768 {
		t.Errorf("got %d small connections, want their number bounded", n)
	}
}

func TestAFrameBelongsToAllItsTasksHoweverManyItHas(t *testing.T) {
	b := book(1<<20, nil)
	r := b.Connect("d", nil)
	receive(r, `"batch"`, func() {
		for i := range 200 {
			r.Event(core.TaskID(fmt.Sprint(i%100)), true, core.KindText, 0, false)
		}
	})
	all := b.Of("99")
	if len(all) != 1 || len(all[0].Tasks) != 100 {
		t.Errorf("got %d frames, want the one with 100 tasks", len(all))
	}
}

func TestAFrameIsOfTheTasksThatItsRequestRepeats(t *testing.T) {
	b := book(1<<20, nil)
	r := b.Connect("d", nil)
	d := r.Delivery()
	d.Begin("t", true, core.Event{Body: core.Assigned{}})
	d.Repeats([]core.Turn{{Task: "before"}, {Task: "before"}, {Text: "of no task"}})
	r.Queued(t.Context(), []byte(`"assigned"`))
	d.End()
	u := r.Turn("u", []core.Turn{{Task: "before"}})
	r.Queued(u.Telling(t.Context(), core.KindAssigned), []byte(`"prompt"`))
	r.Queued(u.Telling(t.Context(), core.KindInjected), []byte(`"more"`))
	for task, tasks := range map[core.TaskID][]core.TaskID{"t": {"t", "before"}, "u": {"u", "before"}} {
		if all := b.Of(task); len(all) == 0 || !slices.Equal(all[0].Tasks, tasks) {
			t.Errorf("%s: got %v, want the tasks %v", task, all, tasks)
		}
	}
	if all := b.Of("u"); len(all) != 2 || len(all[1].Tasks) != 1 {
		t.Errorf("got %v, want what is no request to be of its task alone", all)
	}
	want(t, b, "before")
}

func TestFramesOfEndedConnectionsStayWithinABound(t *testing.T) {
	const keep = 10_000
	m := memory.New(0)
	b := book(keep, m)
	for i := range 100 {
		r := b.Connect("d", nil)
		for range 50 {
			receive(r, `"x"`, func() { r.Event(core.TaskID(fmt.Sprint(i)), true, core.KindText, 0, false) })
		}
		r.Close()
		r.Close()
		receive(r, `"late"`, func() { r.Event("late", true, core.KindText, 0, false) })
	}
	if held := m.HeldAs(memory.Frames); held > 17*(keep+768) || held < 10*keep {
		t.Errorf("got %d bytes held, want those of some 16 connections of %d", held, keep)
	}
	if all := b.Of("99"); len(all) == 0 {
		t.Error("got none of the connection that ended last, want its frames")
	}
	want(t, b, "0")
	want(t, b, "late")
}

func TestFramesGiveWayWhereMemoryIsShort(t *testing.T) {
	m := memory.New(80_000)
	b := book(1<<20, m)
	r, ended := b.Connect("d", nil), b.Connect("d", nil)
	for range 1000 {
		receive(ended, `"x"`, func() { ended.Event("old", true, core.KindText, 0, false) })
	}
	if held := m.HeldAs(memory.Frames); held > 10_000+4096 {
		t.Errorf("got %d bytes held, want at most an eighth of the limit", held)
	}
	ended.Close()
	for range 25 {
		receive(r, `"new"`, func() { r.Event("new", true, core.KindText, 0, false) })
	}
	if all := b.Of("new"); len(all) != 25 {
		t.Errorf("got %d frames of what goes on, want all 25: those of ended connections give way", len(all))
	}
	want(t, b, "old")
	m.Take(memory.Logs, 100_000)
	full := time.Now()
	receive(r, `"full"`, func() { r.Event("full", true, core.KindText, 0, false) })
	if all := b.Of("full"); len(all) > 0 || b.Dropped().Before(full) {
		t.Errorf("with a full budget: got %d frames and those until %v dropped, want none, and dropped now", len(all), b.Dropped())
	}
}

func TestABookThatKeepsNothingIsNil(t *testing.T) {
	b := book(0, nil)
	r := b.Connect("d", nil)
	if b != nil || r != nil || r.Delivery() != nil {
		t.Error("got something, want nil")
	}
	r.Event("t", true, core.KindText, 0, false)
	r.Command("t", "x", false)
	r.Delivery().End()
	r.Close()
}

func TestARingIsSafeForConcurrentUse(t *testing.T) {
	b := book(5000, memory.New(0))
	var all sync.WaitGroup
	for range 4 {
		r := b.Connect("d", nil)
		all.Go(func() {
			defer r.Close()
			for range 200 {
				receive(r, `"x"`, func() { r.Event("t", true, core.KindText, 0, false) })
			}
		})
		d := r.Delivery()
		all.Go(func() {
			for range 200 {
				d.Begin("t", false, core.Event{Body: core.Text{}})
				r.Queued(t.Context(), []byte(`"y"`))
				d.End()
			}
		})
		all.Go(func() {
			for range 50 {
				b.Of("t")
			}
		})
	}
	all.Wait()
}
