package thread_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/thread"
)

func TestAnIndexReturnsTheTasksOfAThreadInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 12).Draw(t, "limit")
		x := thread.NewIndex(limit)
		type entry struct {
			thread core.ThreadID
			task   core.TaskID
		}
		var all []entry
		ids := rapid.SampledFrom([]core.ThreadID{"a", "b", "c"})
		for i := range rapid.IntRange(0, 30).Draw(t, "tasks") {
			e := entry{ids.Draw(t, "thread"), core.TaskID(fmt.Sprintf("%04d", i+1))}
			x.Add(e.thread, e.task, "ann")
			all = append(all, e)
		}
		known := all[max(0, len(all)-limit):]
		for _, id := range []core.ThreadID{"a", "b", "c"} {
			var want, ever []core.TaskID
			for _, e := range all {
				if e.thread == id {
					ever = append(ever, e.task)
					if slices.Contains(known, e) {
						want = append(want, e.task)
					}
				}
			}
			var got []core.TaskID
			for task, _ := x.Next(id, ""); task != ""; task, _ = x.Next(id, task) {
				if !x.Has(id, task) {
					t.Fatalf("thread %s: Next returned %s, which Has does not know", id, task)
				}
				got = append(got, task)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("thread %s: got %v, want %v", id, got, want)
			}
			if got := x.Latest(id, 2); !slices.Equal(got, want[max(0, len(want)-2):]) {
				t.Fatalf("the latest two of %s: got %v, want those of %v", id, got, want)
			}
			// If a task between two is no longer known, Next reports that it is missing.
			for i, at := range ever {
				next, missing := x.Next(id, at)
				skipped := i+1 < len(ever) && next != ever[i+1]
				if skipped && !missing {
					t.Fatalf("after %s of %s: got %q and nothing missing, want %s reported missing", at, id, next, ever[i+1])
				}
			}
		}
		if task, missing := x.Next("never", ""); task != "" || missing || x.Has("never", "0001") || x.Latest("never", 3) != nil {
			t.Fatalf("an unknown thread: got %q and %v, want nothing", task, missing)
		}
	})
}

func TestATaskThatIsTakenOutOfAnIndexLeavesNoGap(t *testing.T) {
	x := thread.NewIndex(3)
	for _, id := range []core.TaskID{"1", "2", "3"} {
		x.Add("talk", id, "ann")
	}
	x.Remove("talk", "2")
	x.Remove("talk", "2")
	x.Remove("none", "1")
	if next, missing := x.Next("talk", "1"); next != "3" || missing {
		t.Errorf("after the first: got %q, missing %t, want the third", next, missing)
	}
	x.Add("talk", "4", "ann")
	if got := fmt.Sprint(x.Latest("talk", 9)); got != "[1 3 4]" {
		t.Errorf("got %s, want the others, for which there is room", got)
	}
	for _, id := range []core.TaskID{"1", "3", "4"} {
		x.Remove("talk", id)
	}
	if next, missing := x.Next("talk", "1"); next != "" || missing {
		t.Errorf("without tasks: got %q, missing %t, want nothing", next, missing)
	}
}

func TestWhoeverHasTheMostTasksInAnIndexLosesItsOwnOldest(t *testing.T) {
	x := thread.NewIndex(10)
	x.Add("shared", "001", "ann")
	x.Add("own", "002", "ann")
	for i := range 100 {
		x.Add("shared", core.TaskID(fmt.Sprint(100+i)), "ben")
	}
	if got, want := fmt.Sprint(x.Latest("own", 9), x.Latest("shared", 9)), "[002] [001 192 193 194 195 196 197 198 199]"; got != want {
		t.Errorf("got %s, want what ann has and the latest of ben: %s", got, want)
	}
	if next, missing := x.Next("shared", "001"); next != "192" || !missing {
		t.Errorf("after the task of ann: got %s, missing %t, want 192 and the others reported missing", next, missing)
	}
	if next, missing := x.Next("own", "002"); next != "" || missing {
		t.Errorf("in the thread of ann: got %q, missing %t, want nothing missing", next, missing)
	}
}
