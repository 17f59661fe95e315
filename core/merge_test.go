package core_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
)

// pieces draws a run of text as an agent sends it; a piece may be empty.
func pieces(t *rapid.T) []core.Event {
	seq := rapid.Uint64Range(1, 1<<40).Draw(t, "first")
	texts := rapid.SliceOfN(rapid.String(), 1, 12).Draw(t, "pieces")
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	events := make([]core.Event, len(texts))
	for i, text := range texts {
		events[i] = core.Event{Seq: seq + uint64(i), Epoch: 1, At: at, Body: core.Text{Text: text}}
	}
	return events
}

// mergeSome puts some neighbours together, as often as it is drawn.
func mergeSome(t *rapid.T, events []core.Event) []core.Event {
	for range rapid.IntRange(0, 3).Draw(t, "rounds") {
		var merged []core.Event
		for i := 0; i < len(events); {
			n := rapid.IntRange(1, len(events)-i).Draw(t, "run")
			merged = append(merged, core.MergeText(events[i:i+n]))
			i += n
		}
		events = merged
	}
	return events
}

func textOf(events []core.Event) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString(e.Body.(core.Text).Text)
	}
	return b.String()
}

func TestAReaderOfMergedTextContinuesAtItsPosition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sent := pieces(t)
		kept := mergeSome(t, sent)
		first, last := sent[0].Seq, sent[len(sent)-1].Seq
		read := rapid.Uint64Range(first-1, last+1).Draw(t, "read")

		var want, rest []core.Event
		for _, e := range sent {
			if e.Seq > read {
				want = append(want, e)
			}
		}
		for _, e := range kept {
			if more, ok := e.AfterSeq(read); ok {
				rest = append(rest, more)
			}
		}
		if got, want := textOf(rest), textOf(want); got != want {
			t.Fatalf("behind %d: got the text %q, want %q", read, got, want)
		}
		next := max(read, first-1) + 1
		for _, e := range rest {
			if e.Seq != next {
				t.Fatalf("behind %d: got the sequence number %d, want %d", read, e.Seq, next)
			}
			next = e.End() + 1
		}
		if len(rest) > 0 && next != last+1 {
			t.Fatalf("behind %d: got the sequence up to %d, want %d", read, next-1, last)
		}
	})
}

func TestTheRestOfMergedTextIsThePiecesThatFollowMerged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sent := pieces(t)
		merged := core.MergeText(mergeSome(t, sent))
		for i := range sent {
			got, ok := merged.AfterSeq(sent[i].Seq)
			if i == len(sent)-1 {
				if ok {
					t.Fatalf("behind the last piece: got %+v, want nothing", got)
				}
				continue
			}
			if d := cmp.Diff(core.MergeText(sent[i+1:]), got, coretest.Compare); d != "" || !ok {
				t.Fatalf("behind piece %d: got %v (-want +got):\n%s", i+1, ok, d)
			}
		}
	})
}

// A hub that goes on with a task after another has died uses numbers again that had been told and were lost.
func TestAnEventOfALaterEpochComesAfterEveryPlaceBefore(t *testing.T) {
	text := core.Event{Seq: 3, Epoch: 2, Body: core.Text{Text: "abc"}, Merged: &core.Merged{Cuts: []int{1, 2}}}
	for at, want := range map[core.Cursor]string{
		{}: "abc", {Epoch: 1, Seq: 2}: "abc", {Epoch: 1, Seq: 4}: "abc", {Epoch: 1, Seq: 9}: "abc",
		{Epoch: 2, Seq: 2}: "abc", {Epoch: 2, Seq: 3}: "bc", {Epoch: 2, Seq: 4}: "c", {Epoch: 2, Seq: 5}: "", {Epoch: 3, Seq: 1}: "",
	} {
		rest, news := text.After(at)
		got := ""
		if news {
			got = textOf([]core.Event{rest})
		}
		if got != want {
			t.Errorf("after %s: got %q, want %q", at, got, want)
		}
		if got := text.Cursor().Compare(at) > 0; got != news {
			t.Errorf("after %s: got the place of the event after it %t, want %t", at, got, news)
		}
	}
}

func TestEveryPlaceInsideMergedTextIsACursor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sent := pieces(t)
		e := core.MergeText(sent)
		if got, want := e.End(), sent[len(sent)-1].Seq; got != want {
			t.Fatalf("got the end %d, want %d", got, want)
		}
		if got, want := e.Cursor(), (core.Cursor{Epoch: 1, Seq: e.End()}); got != want {
			t.Fatalf("got the cursor %v, want %v", got, want)
		}
		for {
			rest, ok := e.AfterSeq(e.Seq)
			if !ok {
				return
			}
			if rest.Seq != e.Seq+1 || rest.End() != e.End() {
				t.Fatalf("one piece further than %d to %d: got %d to %d, want %d to %d", e.Seq, e.End(), rest.Seq, rest.End(), e.Seq+1, e.End())
			}
			e = rest
		}
	})
}

func TestNothingIsLeftOfAnEventAfterItsOwnPosition(t *testing.T) {
	e := core.Event{Seq: 5, Epoch: 1, Body: core.Done{}}
	for seq, want := range map[uint64]bool{0: true, 4: true, 5: false, 6: false} {
		got, ok := e.AfterSeq(seq)
		if ok != want {
			t.Errorf("after %d: got %v, want %v", seq, ok, want)
		}
		if ok && got.Seq != 5 {
			t.Errorf("after %d: got the sequence number %d, want 5", seq, got.Seq)
		}
	}
}

func TestMergingLeavesWhatItWasGivenAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sent := mergeSome(t, pieces(t))
		before := cmp.Diff(nil, sent, coretest.Compare)
		core.MergeText(sent).AfterSeq(sent[0].Seq)
		if after := cmp.Diff(nil, sent, coretest.Compare); before != after {
			t.Fatalf("got %s, want it unchanged: %s", after, before)
		}
	})
}

func TestOnlyTextWithoutForeignFieldsIsMergeable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := coretest.Event(t)
		if got, want := e.Mergeable(), e.Body.Kind() == core.KindText && e.Foreign == nil; got != want {
			t.Fatalf("%s with foreign %v: got %v, want %v", e.Body.Kind(), e.Foreign, got, want)
		}
	})
}
