package nats_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"
	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// opened opens a journal that is closed when the test ends.
func opened(t *testing.T, o nats.Options) *nats.Journal {
	t.Helper()
	j := open(t, o)
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// tasksOf returns the stream of the tasks of a journal.
func tasksOf(t *testing.T, j *nats.Journal) jetstream.Stream {
	t.Helper()
	s, err := j.JetStream().Stream(t.Context(), "dragoman-tasks")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// subjectOf is the subject of a task: it has those that begin within the same 4 seconds.
func subjectOf(task core.TaskID) string { return "dragoman.begun." + string(task[:min(len(task), 10)]) }

// begun is the id of a task that began at a time.
func begun(at time.Time) core.TaskID {
	id := uuid.Must(uuid.NewV7())
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(at.UnixMilli()))
	copy(id[:6], ms[2:])
	return core.TaskID(id.String())
}

// life is what happens to a task that is asked in a thread and answered.
func life(thread core.ThreadID, words int) []core.Event {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6e8, time.UTC)
	bodies := []core.Body{core.Opened{Request: core.Request{To: core.ToAgent("a"), Thread: thread}}}
	for i := range words {
		bodies = append(bodies, core.Text{Text: fmt.Sprintf("word %d ", i)})
	}
	var events []core.Event
	end := core.Done{Text: strings.Repeat("x", words*170)} // some are long lines
	for i, b := range append(bodies, end) {
		events = append(events, core.Event{Seq: uint64(i + 1), Epoch: 1, At: at, Body: b})
	}
	return events
}

func recorded(task core.TaskID, events ...core.Event) (records []journal.Record) {
	for _, e := range events {
		records = append(records, journal.Record{Task: task, Event: e})
	}
	return records
}

func listed(t *testing.T, j journal.Journal) (heads []journal.Head) {
	t.Helper()
	if err := j.Heads(t.Context(), func(h journal.Head) bool { heads = append(heads, h); return true }); err != nil {
		t.Fatal(err)
	}
	return heads
}

func TestTasksThatBeganTogetherShareAMessageAndAreReadApart(t *testing.T) {
	j := opened(t, nats.Options{Dir: t.TempDir()})
	at := time.Now().Truncate(4096 * time.Millisecond)
	var all []journal.Record
	var want []journal.Head
	for i := range 12 {
		task, events := begun(at.Add(time.Duration(i)*time.Millisecond)), life(core.ThreadID(fmt.Sprint("thread ", i)), i)
		all = append(all, recorded(task, events...)...)
		want = append(want, journal.Head{Task: task, Thread: core.ThreadID(fmt.Sprint("thread ", i)), End: core.KindDone, At: events[0].At})
	}
	if err := j.Append(t.Context(), all...); err != nil {
		t.Fatal(err)
	}
	if info, err := tasksOf(t, j).Info(t.Context()); err != nil || info.State.Msgs != 2 {
		t.Fatalf("got %d messages and %v, want one, and that which says who writes", info.State.Msgs, err)
	}
	for i, h := range want {
		got, err := j.Read(t.Context(), h.Task, 0, 0)
		if d := cmp.Diff(life(h.Thread, i), got, cmp.AllowUnexported(core.Address{})); err != nil || d != "" {
			t.Errorf("task %d: got %v and (-want +got):\n%s", i, err, d)
		}
	}
	if d := cmp.Diff(want, listed(t, j)); d != "" {
		t.Errorf("the heads (-want +got):\n%s", d)
	}
}

// TestATaskIsReadCompletelyWhateverTheClockDid has the beginning of a task stand in the
// store before the time that its id tells, as after a step of the clock.
func TestATaskIsReadCompletelyWhateverTheClockDid(t *testing.T) {
	j := opened(t, nats.Options{Dir: t.TempDir()})
	for name, lead := range map[string]time.Duration{"by a moment": 30 * time.Millisecond, "by an hour": time.Hour, "the other way": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			at := time.Now().Add(lead)
			task, events := begun(at), life("thread", 3)
			if err := j.Append(t.Context(), recorded(task, events[:2]...)...); err != nil {
				t.Fatal(err)
			}
			for lead < time.Minute && !time.Now().After(at.Add(2*time.Millisecond)) {
				if err := j.Append(t.Context(), recorded("another", events[0])...); err != nil {
					t.Fatal(err)
				}
			}
			if err := j.Append(t.Context(), recorded(task, events[2:]...)...); err != nil {
				t.Fatal(err)
			}
			got, err := j.Read(t.Context(), task, 0, 0)
			if d := cmp.Diff(events, got, cmp.AllowUnexported(core.Address{})); err != nil || d != "" {
				t.Errorf("got %v and (-want +got):\n%s", err, d)
			}
		})
	}
}

func TestTasksOfOneMessageLoseItTogetherAndSaySo(t *testing.T) {
	j := opened(t, nats.Options{Dir: t.TempDir(), Keep: journal.Retention{Bytes: 64 << 10}})
	at := time.Now().Truncate(4096 * time.Millisecond)
	one, two := begun(at), begun(at)
	for n := uint64(1); n <= 100; n++ {
		e := core.Event{Seq: n, Epoch: 1, At: time.Now(), Body: core.Text{Text: strings.Repeat("x", 4000)}}
		if err := j.Append(t.Context(), journal.Record{Task: one, Event: e}, journal.Record{Task: two, Event: e}); err != nil {
			t.Fatal(err)
		}
	}
	var lost uint64
	for _, task := range []core.TaskID{one, two} {
		events, err := j.Read(t.Context(), task, 0, 0)
		var gap *journal.GapError
		if !errors.As(err, &gap) || len(events) == 0 || gap.From != 1 || gap.To+1 != events[0].Seq || events[len(events)-1].Seq != 100 {
			t.Fatalf("got %d events and %v, want a gap from 1 on in front of what goes to 100", len(events), err)
		}
		if lost == 0 {
			lost = gap.To
		}
		if gap.To != lost {
			t.Errorf("got a gap up to %d, want %d as for the other", gap.To, lost)
		}
	}
}

// TestAnyJournalIsAsTheOneInMemory holds the store against the reference, for tasks
// that share subjects, messages and neither, some of it appended again: after its
// end of it, or the beginning alone, as by who was killed meanwhile.
func TestAnyJournalIsAsTheOneInMemory(t *testing.T) {
	j := opened(t, nats.Options{Dir: t.TempDir()})
	stream := tasksOf(t, j)
	rapid.Check(t, func(r *rapid.T) {
		if err := stream.Purge(t.Context()); err != nil {
			r.Fatal(err)
		}
		memory := journal.NewMemory(journal.Retention{})
		now, next := time.Now(), map[core.TaskID]int{}
		var ids []core.TaskID
		for range rapid.IntRange(1, 5).Draw(r, "tasks") {
			ids = append(ids, begun(now.Add(time.Duration(rapid.SampledFrom([]int{-9000, -1, 0, 1, 9000}).Draw(r, "ms"))*time.Millisecond)))
		}
		for range rapid.IntRange(1, 6).Draw(r, "writes") {
			var batch []journal.Record
			for range rapid.IntRange(0, 6).Draw(r, "runs") {
				task := rapid.SampledFrom(ids).Draw(r, "task")
				events := life(core.ThreadID(task[24:]), 4)
				n := min(rapid.IntRange(0, 3).Draw(r, "events"), len(events)-next[task])
				batch = append(batch, recorded(task, events[next[task]:next[task]+n]...)...)
				next[task] += n
			}
			late := batch[rapid.IntRange(0, len(batch)).Draw(r, "late"):]
			if err := j.Append(t.Context(), late...); err != nil { // the messages before were lost, so that all come again
				r.Fatal(err)
			}
			again := batch[:rapid.IntRange(0, len(batch)).Draw(r, "again")]
			for _, part := range [][]journal.Record{batch, again} {
				for _, to := range []journal.Journal{j, memory} {
					if err := to.Append(t.Context(), part...); err != nil {
						r.Fatal(err)
					}
				}
			}
		}
		for _, task := range append(ids, core.TaskID(core.NewID())) {
			after, limit := uint64(rapid.IntRange(0, 5).Draw(r, "after")), rapid.IntRange(0, 3).Draw(r, "limit")
			want, wantErr := memory.Read(t.Context(), task, after, limit)
			got, err := j.Read(t.Context(), task, after, limit)
			if d := cmp.Diff(want, got, cmp.AllowUnexported(core.Address{})); !errors.Is(err, wantErr) || d != "" {
				r.Fatalf("task %s after %d, at most %d: got %v, want %v, and (-want +got):\n%s", task, after, limit, err, wantErr, d)
			}
		}
		if d := cmp.Diff(listed(t, memory), listed(t, j), cmp.AllowUnexported(core.Address{})); d != "" {
			r.Fatalf("the heads (-want +got):\n%s", d)
		}
	})
}
