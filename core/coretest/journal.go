package coretest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// Journal is the suite that every journal passes. open makes an empty one; the
// suite closes it.
func Journal(t *testing.T, open func(t *testing.T) journal.Journal) {
	t.Helper()
	run := func(name string, test func(*testing.T, journal.Journal)) {
		t.Run(name, func(t *testing.T) {
			j := open(t)
			test(t, j)
			if err := j.Close(); err != nil {
				t.Errorf("closing: got %v, want no error", err)
			}
		})
	}
	run("what was appended is read in order", func(t *testing.T, j journal.Journal) {
		want := textEvents(5)
		write(t, j, "a", want...)
		write(t, j, "b", textEvents(2)...)
		wantEvents(t, read(t, j, "a", 0, 0), want)
		wantEvents(t, read(t, j, "a", 3, 0), want[3:])
		wantEvents(t, read(t, j, "a", 1, 2), want[1:3])
		wantEvents(t, read(t, j, "a", 9, 0), nil)
	})
	run("a task that never was is unknown", func(t *testing.T, j journal.Journal) {
		for _, id := range []core.TaskID{"never", "", "a.b", "*", ">"} {
			if _, err := j.Read(t.Context(), id, 0, 0); !errors.Is(err, journal.ErrUnknown) {
				t.Errorf("task %q: got %v, want ErrUnknown", id, err)
			}
		}
	})
	run("appending again changes nothing", func(t *testing.T, j journal.Journal) {
		want := textEvents(3)
		write(t, j, "a", want...)
		write(t, j, "a", want...)
		wantEvents(t, read(t, j, "a", 0, 0), want)
	})
	run("a place inside merged text is valid", func(t *testing.T, j journal.Journal) {
		s := textEvents(6)
		merged := core.MergeText(s[1:5])
		write(t, j, "a", s[0], merged, s[5])
		got := read(t, j, "a", 3, 0)
		if len(got) != 2 || got[0].Seq != 4 || got[0].End() != 5 {
			t.Fatalf("got %v, want the sequence numbers 4 to 5 and 6", got)
		}
		if got, want := got[0].Body.(core.Text).Text, s[3].Body.(core.Text).Text+s[4].Body.(core.Text).Text; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	run("the heads tell how far every task is", func(t *testing.T, j journal.Journal) {
		write(t, j, "b", textEvents(2)...)
		write(t, j, "a", textEvents(4)...)
		got := map[core.TaskID]uint64{}
		var order []core.TaskID
		err := j.Heads(t.Context(), func(h journal.Head) bool {
			got[h.Task] = h.Last.End()
			order = append(order, h.Task)
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(map[core.TaskID]uint64{"a": 4, "b": 2}, got); d != "" {
			t.Errorf("heads (-want +got):\n%s", d)
		}
		if d := cmp.Diff([]core.TaskID{"a", "b"}, order); d != "" {
			t.Errorf("order (-want +got):\n%s", d)
		}
	})
	run("the heads tell the thread of a task whose beginning is kept", func(t *testing.T, j journal.Journal) {
		opening := func(intent core.Intent) []core.Event {
			s := textEvents(2)
			s[0].Body = core.Opened{Request: core.Request{Intent: intent, To: core.ToAgent("x"), Thread: "thread"}}
			return s
		}
		write(t, j, "asked", opening(core.IntentAsk)...)
		write(t, j, "cut", textEvents(3)[1:]...)
		write(t, j, "told", opening(core.IntentNotify)...)
		got := map[core.TaskID]core.ThreadID{}
		if err := j.Heads(t.Context(), func(h journal.Head) bool { got[h.Task] = h.Thread; return true }); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(map[core.TaskID]core.ThreadID{"asked": "thread", "cut": "", "told": ""}, got); d != "" {
			t.Errorf("threads (-want +got):\n%s", d)
		}
	})
	run("the heads tell whether a thread began as a task that is kept", func(t *testing.T, j journal.Journal) {
		for _, task := range []core.TaskID{"first", "second", "other"} {
			s := textEvents(2)
			s[0].Body = core.Opened{Request: core.Request{To: core.ToAgent("x"), Thread: map[core.TaskID]core.ThreadID{"first": "first", "second": "first", "other": "elsewhere"}[task]}}
			write(t, j, task, s...)
		}
		got := map[core.TaskID]bool{}
		if err := j.Heads(t.Context(), func(h journal.Head) bool { got[h.Task] = h.ThreadTask; return true }); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(map[core.TaskID]bool{"first": true, "second": true, "other": false}, got); d != "" {
			t.Errorf("threads that began as a task (-want +got):\n%s", d)
		}
	})
	run("the heads tell of an end, and how far the others are", func(t *testing.T, j journal.Journal) {
		ended := textEvents(3)
		ended[2].Body = core.Done{Text: "that is all"}
		write(t, j, "ended", ended...)
		write(t, j, "running", textEvents(3)...)
		got := map[core.TaskID]journal.Head{}
		if err := j.Heads(t.Context(), func(h journal.Head) bool { got[h.Task] = h; return true }); err != nil {
			t.Fatal(err)
		}
		want := map[core.TaskID]journal.Head{"ended": {Task: "ended", End: core.KindDone, At: ended[2].At}, "running": {Task: "running", Last: textEvents(3)[2]}}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("heads (-want +got):\n%s", d)
		}
	})
	run("complete tasks are those kept from beginning to end", func(t *testing.T, j journal.Journal) {
		want := map[core.TaskID][]core.Event{}
		for _, task := range []core.TaskID{"whole", "in-two", "again", "other"} {
			s := textEvents(6)
			s[5].Body = core.Done{Text: string(task)}
			want[task] = s
		}
		write(t, j, "whole", want["whole"]...)
		write(t, j, "in-two", want["in-two"][:3]...)
		write(t, j, "cut", want["whole"][2:]...)
		write(t, j, "running", want["whole"][:4]...)
		write(t, j, "other", want["other"]...)
		write(t, j, "again", want["again"][:4]...)
		write(t, j, "again", want["again"][2:]...)
		write(t, j, "in-two", want["in-two"][3:]...)
		delete(want, "other")
		got := map[core.TaskID][]core.Event{}
		wanted := []core.TaskID{"again", "cut", "in-two", "never", "running", "whole"}
		if err := j.CompleteTasks(t.Context(), wanted, func(task core.TaskID, events []core.Event) bool {
			if got[task] != nil {
				t.Errorf("task %s was told twice, want it once", task)
			}
			got[task] = events
			return true
		}); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("complete tasks (-want +got):\n%s", d)
		}
		told := 0
		if err := j.CompleteTasks(t.Context(), wanted, func(core.TaskID, []core.Event) bool { told++; return false }); err != nil || told != 1 {
			t.Errorf("got %d tasks and %v, want one: then it was to stop", told, err)
		}
	})
	run("an event larger than any message comes back whole", func(t *testing.T, j journal.Journal) {
		s := textEvents(2)
		s[1].Body = core.File{Name: "big", Data: []byte(strings.Repeat("0123456789abcdef", 2<<16))}
		write(t, j, "a", s...)
		got := read(t, j, "a", 0, 0)
		if len(got) != 2 {
			t.Fatalf("got %d events, want 2", len(got))
		}
		if got, want := len(got[1].Body.(core.File).Data), 2<<20; got != want {
			t.Errorf("got %d bytes, want %d", got, want)
		}
		if err := j.Heads(t.Context(), func(h journal.Head) bool {
			if h.Last.End() != 2 {
				t.Errorf("got the head %d, want 2", h.Last.End())
			}
			return true
		}); err != nil {
			t.Fatal(err)
		}
	})
}

// JournalRetention is the suite for what a journal forgets. open makes an empty
// one that keeps about 64 KiB.
func JournalRetention(t *testing.T, open func(t *testing.T) journal.Journal) {
	t.Helper()
	j := open(t)
	defer j.Close()
	events := textEvents(200)
	for i := range events {
		events[i].Body = core.Text{Text: strings.Repeat("x", 4000)}
	}
	write(t, j, "a", events...)
	got, err := j.Read(t.Context(), "a", 0, 0)
	var gap *journal.GapError
	if !errors.As(err, &gap) {
		t.Fatalf("reading from the start: got %d events and %v, want a gap", len(got), err)
	}
	if gap.From != 1 || len(got) == 0 || gap.To+1 != got[0].Seq {
		t.Errorf("got the gap %d to %d in front of %d, want it to begin at 1 and to end where the events begin", gap.From, gap.To, got[0].Seq)
	}
	if last := got[len(got)-1].Seq; last != 200 {
		t.Errorf("got %d as the last, want 200", last)
	}
	if _, err := j.Read(t.Context(), "a", gap.To, 0); err != nil {
		t.Errorf("reading behind the gap: got %v, want no error", err)
	}

	write(t, j, "slow", textEvents(3)...)
	write(t, j, "b", events...) // after which nothing is left of the slow one
	late := textEvents(4)[3]
	write(t, j, "slow", late)
	got, err = j.Read(t.Context(), "slow", 0, 0)
	if len(got) != 1 || got[0].Seq != 4 || !errors.As(err, &gap) || gap.From != 1 || gap.To != 3 {
		t.Errorf("a task that goes on when its beginning is gone: got %v and %v, want event 4 and the gap 1 to 3", got, err)
	}
}

// textEvents returns n events of text.
func textEvents(n int) []core.Event {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	events := make([]core.Event, n)
	for i := range events {
		events[i] = core.Event{Seq: uint64(i + 1), Epoch: 1, At: at.Add(time.Duration(i)), Body: core.Text{Text: fmt.Sprintf("piece %d ", i+1)}}
	}
	return events
}

func write(t *testing.T, j journal.Journal, id core.TaskID, events ...core.Event) {
	t.Helper()
	records := make([]journal.Record, len(events))
	for i, e := range events {
		records[i] = journal.Record{Task: id, Event: e}
	}
	if err := j.Append(t.Context(), records...); err != nil {
		t.Fatalf("appending: got %v, want no error", err)
	}
}

func read(t *testing.T, j journal.Journal, id core.TaskID, after uint64, limit int) []core.Event {
	t.Helper()
	events, err := j.Read(t.Context(), id, after, limit)
	if err != nil {
		t.Fatalf("reading: got %v, want no error", err)
	}
	return events
}

func wantEvents(t *testing.T, got, want []core.Event) {
	t.Helper()
	if len(got) == 0 && len(want) == 0 {
		return
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
}
