package coretest

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// SharedJournal is the suite of journals that several hubs share. start makes an empty store
// and returns what begins the next life of a hub over it.
func SharedJournal(t *testing.T, start func(t *testing.T) (open func(hub string) journal.Shared)) {
	t.Helper()
	fenced := func(t *testing.T, what string, err error) {
		t.Helper()
		if !errors.Is(err, journal.ErrFenced) {
			t.Errorf("%s: got %v, want %v", what, err, journal.ErrFenced)
		}
	}
	taken := func(t *testing.T, err error, of, by journal.Life) {
		t.Helper()
		if got := (&journal.TakenError{}); !errors.As(err, &got) || got.Of != of || got.By != by {
			t.Errorf("got %v, want that %s was taken over by %s", err, of, by)
		}
	}
	takeOver := func(t *testing.T, by journal.Shared, of journal.Life) journal.Estate {
		t.Helper()
		e, err := by.TakeOver(t.Context(), of)
		if err != nil {
			t.Fatalf("%s takes over %s: got %v, want no error", by.Life(), of, err)
		}
		if e.Life() != of {
			t.Errorf("got the estate of %s, want that of %s", e.Life(), of)
		}
		return e
	}
	end := func(task core.TaskID, seq uint64) journal.Record {
		e := textEvents(int(seq))[seq-1]
		e.Body = core.Failed{Fault: core.NewFault(core.CodeUnreachable, "its hub is gone")}
		return journal.Record{Task: task, Event: e}
	}

	t.Run("each life of a hub fences the one before", func(t *testing.T) {
		open := start(t)
		former, other := open("a"), open("b")
		write(t, former, "x", textEvents(2)...)
		present := open("a")
		for j, want := range map[journal.Shared]journal.Life{former: {Hub: "a", Epoch: 1}, other: {Hub: "b", Epoch: 1}, present: {Hub: "a", Epoch: 2}} {
			if j.Life() != want {
				t.Errorf("got the life %s, want %s", j.Life(), want)
			}
		}
		fenced(t, "the former life", former.Append(t.Context(), journal.Record{Task: "x", Event: textEvents(3)[2]}))
		<-former.Deposed()
		fenced(t, "its health", former.Health())
		write(t, other, "y", textEvents(1)...)
		write(t, present, "x", textEvents(4)[2:]...)
		wantEvents(t, read(t, present, "x", 0, 0), textEvents(4))
	})
	t.Run("a life that was taken over can store nothing", func(t *testing.T) {
		open := start(t)
		a, b := open("a"), open("b")
		write(t, a, "x", textEvents(2)...)
		takeOver(t, b, a.Life())
		fenced(t, "its append", a.Append(t.Context(), journal.Record{Task: "x", Event: textEvents(3)[2]}))
		<-a.Deposed()
		write(t, b, "y", textEvents(2)...)
		if b.Health() != nil {
			t.Errorf("the heir: got %v, want it healthy", b.Health())
		}
	})
	t.Run("each hub knows the lives of all, and who has taken them over", func(t *testing.T) {
		open := start(t)
		open("a")
		a, b, c := open("a"), open("b"), open("c")
		takeOver(t, b, a.Life())
		for hub, want := range map[string][2]journal.Life{"a": {a.Life(), b.Life()}, "b": {b.Life()}, "never": {}} {
			if life, by, err := c.LifeOf(t.Context(), hub); err != nil || [2]journal.Life{life, by} != want {
				t.Errorf("hub %s: got %s, taken over by %s, and %v, want %v", hub, life, by, err, want)
			}
		}
	})
	t.Run("an estate has the tasks without an end, and takes their ends", func(t *testing.T) {
		open := start(t)
		a, b, c := open("a"), open("b"), open("c")
		write(t, a, "ended", append(textEvents(2), end("", 3).Event)...)
		write(t, a, "running", textEvents(2)...)
		e := takeOver(t, b, a.Life())
		var heads []journal.Head
		if err := e.Heads(t.Context(), func(h journal.Head) bool { heads = append(heads, h); return true }); err != nil || len(heads) != 1 || heads[0].Task != "running" || heads[0].Last.Seq != 2 {
			t.Errorf("got the heads %+v and %v, want that of the running task", heads, err)
		}
		if err := e.Append(t.Context(), end("running", 3)); err != nil {
			t.Errorf("its end: got %v, want it stored", err)
		}
		for _, j := range []journal.Shared{a, b, c} {
			if got, err := j.ReadOf(t.Context(), "a", "running", 1, 0); err != nil || len(got) != 2 || !got[1].Body.Kind().Ends() {
				t.Errorf("%s: got %v and %v, want the end behind event 2", j.Life(), got, err)
			}
		}
		for _, at := range []string{"a", "b"} {
			if _, err := c.ReadOf(t.Context(), at, "never", 0, 0); !errors.Is(err, journal.ErrUnknown) {
				t.Errorf("a task that never was: got %v, want %v", err, journal.ErrUnknown)
			}
		}
	})
	t.Run("an estate that is taken again has the ends that its holder has stored", func(t *testing.T) {
		open := start(t)
		a, b := open("a"), open("b")
		write(t, a, "ended", textEvents(2)...)
		write(t, a, "running", textEvents(2)...)
		first := takeOver(t, b, a.Life())
		if err := first.Append(t.Context(), end("ended", 3)); err != nil {
			t.Errorf("an end: got %v, want it stored", err)
		}
		e := takeOver(t, b, a.Life()) // as after a lost acknowledgement of that end
		var heads []core.TaskID
		if err := e.Heads(t.Context(), func(h journal.Head) bool { heads = append(heads, h.Task); return true }); err != nil || !slices.Equal(heads, []core.TaskID{"running"}) {
			t.Errorf("got the heads of %v and %v, want that of the running task", heads, err)
		}
		for _, e := range []journal.Estate{e, first} {
			if err := e.Append(t.Context(), end("running", 3)); err != nil {
				t.Errorf("its end: got %v, want it stored", err)
			}
		}
	})
	t.Run("each hub lists the tasks of another, with what its heir has stored", func(t *testing.T) {
		open := start(t)
		a, b, c := open("a"), open("b"), open("c")
		write(t, a, "ended", append(textEvents(2), end("", 3).Event)...)
		write(t, a, "running", textEvents(2)...)
		write(t, b, "other", textEvents(1)...)
		want := func(when string, want map[core.TaskID]core.Kind) {
			t.Helper()
			for _, j := range []journal.Shared{a, b, c} {
				got := map[core.TaskID]core.Kind{}
				err := j.HeadsOf(t.Context(), "a", func(h journal.Head) bool {
					if got[h.Task] = h.End; h.End == 0 && h.Last.Seq != 2 {
						t.Errorf("%s, as %s lists them: got event %d as the last one of task %s, want 2", when, j.Life(), h.Last.Seq, h.Task)
					}
					return true
				})
				if err != nil || !maps.Equal(got, want) {
					t.Errorf("%s, as %s lists them: got the ends %v and %v, want %v", when, j.Life(), got, err, want)
				}
			}
		}
		want("before", map[core.TaskID]core.Kind{"ended": core.KindFailed, "running": 0})
		if err := takeOver(t, b, a.Life()).Append(t.Context(), end("running", 3)); err != nil {
			t.Fatal(err)
		}
		want("after a takeover", map[core.TaskID]core.Kind{"ended": core.KindFailed, "running": core.KindFailed})
		seen := 0
		if err := c.HeadsOf(t.Context(), "a", func(journal.Head) bool { seen++; return false }); err != nil || seen != 1 {
			t.Errorf("a list that is left: got %d tasks and %v, want one", seen, err)
		}
	})
	t.Run("one of many takes a life over", func(t *testing.T) {
		open := start(t)
		a := open("a")
		heirs := []journal.Shared{open("b"), open("c"), open("d"), open("e")}
		errs, all := make([]error, len(heirs)), sync.WaitGroup{}
		for i, h := range heirs {
			all.Go(func() { _, errs[i] = h.TakeOver(t.Context(), a.Life()) })
		}
		all.Wait()
		var winner journal.Shared
		for i, err := range errs {
			if err == nil && winner != nil {
				t.Errorf("both %s and %s took it over", winner.Life(), heirs[i].Life())
			}
			if err == nil {
				winner = heirs[i]
			}
		}
		if winner == nil {
			t.Fatalf("got %v, want a winner", errs)
		}
		for _, err := range errs {
			if err != nil {
				taken(t, err, a.Life(), winner.Life())
			}
		}
		e := takeOver(t, winner, a.Life()) // as after a lost acknowledgement
		if err := e.Append(t.Context(), end("x", 1)); err != nil {
			t.Errorf("the winner again: got %v, want it to be the holder", err)
		}
	})
	t.Run("the next life of a hub takes its estate over", func(t *testing.T) {
		open := start(t)
		a, b := open("a"), open("b")
		e := takeOver(t, b, a.Life())
		next := open("a")
		if want := (journal.Life{Hub: "a", Epoch: 2}); next.Life() != want {
			t.Errorf("got the life %s, want %s", next.Life(), want)
		}
		fenced(t, "the holder of the estate", e.Append(t.Context(), end("x", 1)))
		_, err := b.TakeOver(t.Context(), a.Life())
		taken(t, err, a.Life(), next.Life())
		write(t, b, "y", textEvents(1)...)
		if b.Health() != nil {
			t.Errorf("the former holder: got %v, want it healthy", b.Health())
		}
	})
	t.Run("the heir of an heir has both estates", func(t *testing.T) {
		open := start(t)
		a, b, c := open("a"), open("b"), open("c")
		write(t, a, "x", textEvents(1)...)
		of := takeOver(t, b, a.Life())
		_, err := c.TakeOver(t.Context(), a.Life())
		taken(t, err, a.Life(), b.Life())
		takeOver(t, c, b.Life())
		e := takeOver(t, c, a.Life())
		fenced(t, "the former heir", of.Append(t.Context(), end("x", 2)))
		if err := e.Append(t.Context(), end("x", 2)); err != nil {
			t.Errorf("the present heir: got %v, want it stored", err)
		}
		wantLast(t, c, "a", "x", 2)
	})
}

// wantLast fails the test unless the last event of a task of a hub is seq.
func wantLast(t *testing.T, j journal.Shared, hub string, task core.TaskID, seq uint64) {
	t.Helper()
	events, err := j.ReadOf(t.Context(), hub, task, 0, 0)
	if err != nil || len(events) == 0 || events[len(events)-1].End() != seq {
		t.Errorf("task %s of %s: got %v and %v, want it up to %d", task, hub, events, err, seq)
	}
}
