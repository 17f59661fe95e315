package journal_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// TestSegmentsHoldEveryEventOfATaskInOrder checks that the events come out complete and
// in order, however they are batched.
func TestSegmentsHoldEveryEventOfATaskInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, now := journal.NewSegmenter(journal.SegmentAge), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		var out []journal.Record
		added := map[core.TaskID][]core.Event{}
		for range rapid.IntRange(1, 8).Draw(t, "batches") {
			task := rapid.SampledFrom([]core.TaskID{"a", "b"}).Draw(t, "task")
			var events []core.Event
			for range rapid.IntRange(0, 5).Draw(t, "events") {
				body := rapid.SampledFrom([]core.Body{
					core.Text{Text: "x"}, core.Text{Text: string(make([]byte, journal.SegmentBytes/2))}, core.Thinking{Text: "y"},
				}).Draw(t, "body")
				events = append(events, core.Event{Seq: uint64(len(added[task])+len(events)) + 1, At: now, Body: body})
			}
			added[task] = append(added[task], events...)
			out = g.Add(out, task, events, now)
			now = now.Add(rapid.SampledFrom([]time.Duration{0, journal.SegmentAge}).Draw(t, "pause"))
			out, _ = g.Due(out, now)
		}
		got := map[core.TaskID][]core.Event{}
		for _, r := range g.Flush(out) {
			for e, more := r.Event, true; more; e, more = e.AfterSeq(e.Seq) {
				one := e
				if one.Merged != nil {
					one.Body, one.Merged = core.Text{Text: one.Body.(core.Text).Text[:one.Merged.Cuts[0]]}, nil
				}
				got[r.Task] = append(got[r.Task], one)
			}
		}
		for task, want := range added {
			if d := cmp.Diff(want, got[task]); len(want)+len(got[task]) > 0 && d != "" {
				t.Fatalf("task %s (-want +got):\n%s", task, d)
			}
		}
		if rest, wait := g.Due(nil, now.Add(time.Hour)); len(rest) > 0 || wait > 0 {
			t.Fatalf("after a flush: got %d records and a wait of %s, want nothing held back", len(rest), wait)
		}
	})
}
