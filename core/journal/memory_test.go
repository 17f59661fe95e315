package journal_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemoryIsAJournal(t *testing.T) {
	coretest.Journal(t, func(*testing.T) journal.Journal { return journal.NewMemory(journal.Retention{}) })
	coretest.JournalRetention(t, func(*testing.T) journal.Journal { return journal.NewMemory(journal.Retention{Bytes: 64 << 10}) })
}

func TestMemoryKeeps128MiBByDefault(t *testing.T) {
	j := journal.NewMemory(journal.Retention{})
	text := core.Text{Text: strings.Repeat("x", 1<<20)}
	for i := range 130 {
		if err := j.Append(t.Context(), journal.Record{Task: "a", Event: core.Event{Seq: uint64(i + 1), Body: text}}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := j.Read(t.Context(), "a", 0, 0)
	var gap *journal.GapError
	if len(got) != 127 || !errors.As(err, &gap) || gap.To != 3 {
		t.Errorf("got %d events of about 1 MiB and %v, want 127 and a gap up to 3", len(got), err)
	}
}

func TestMemoryDropsRecordsThatAreTooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := journal.NewMemory(journal.Retention{Age: time.Hour})
		e := core.Event{Seq: 1, Body: core.Text{Text: "x"}}
		if err := j.Append(t.Context(), journal.Record{Task: "a", Event: e}); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour + time.Second)
		if got, err := j.Read(t.Context(), "a", 0, 0); err == nil {
			t.Errorf("got %v, want it dropped", got)
		}
	})
}

func TestTextIsHeldUntilTheSegmentIsFullOrOldOrAnotherKindFollows(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	texts := func(from uint64, n int, text string) (events []core.Event) {
		for i := range n {
			events = append(events, core.Event{Seq: from + uint64(i), Body: core.Text{Text: text}})
		}
		return events
	}
	g := journal.NewSegmenter(journal.SegmentAge)
	if out := g.Add(nil, "a", texts(1, 3, "hi "), now); len(out) != 0 {
		t.Fatalf("young text: got %d records, want it held back", len(out))
	}
	if out, wait := g.Due(nil, now.Add(20*time.Millisecond)); len(out) != 0 || wait != 30*time.Millisecond {
		t.Errorf("got %d records and a wait of %s, want none and 30ms", len(out), wait)
	}
	out, wait := g.Due(nil, now.Add(50*time.Millisecond))
	if len(out) != 1 || wait != 0 || out[0].Event.End() != 3 || out[0].Event.Body.(core.Text).Text != "hi hi hi " {
		t.Fatalf("old text: got %+v and a wait of %s, want one record of three events", out, wait)
	}
	out = g.Add(nil, "a", append(texts(4, 1, "end"), core.Event{Seq: 5, Body: core.Done{}}), now)
	if len(out) != 2 || out[0].Event.Seq != 4 || out[1].Event.Seq != 5 {
		t.Errorf("text and an end: got %+v, want both at once, in order", out)
	}
	big := make([]byte, journal.SegmentBytes)
	if out = g.Add(nil, "b", texts(1, 1, string(big)), now); len(out) != 1 {
		t.Errorf("a full segment: got %d records, want it at once", len(out))
	}
	g.Add(nil, "c", texts(1, 2, "x"), now)
	if out = g.Flush(nil); len(out) != 1 || out[0].Task != "c" {
		t.Errorf("flushing: got %+v, want what was held back", out)
	}
}
