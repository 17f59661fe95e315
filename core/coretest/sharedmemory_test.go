package coretest_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/journal"
)

func TestSharedMemoryIsAJournalOfSeveralHubs(t *testing.T) {
	coretest.Journal(t, func(*testing.T) journal.Journal { return coretest.NewSharedMemory(journal.Retention{}).Open("a") })
	coretest.SharedJournal(t, func(*testing.T) func(string) journal.Shared {
		m := coretest.NewSharedMemory(journal.Retention{})
		return func(hub string) journal.Shared { return m.Open(hub) }
	})
}

func TestTheHooksOfASharedMemoryLoseWritesAndAcknowledgements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := errors.New("lost")
		m := coretest.NewSharedMemory(journal.Retention{})
		before, after := error(nil), error(nil)
		m.Before = func(coretest.Write) error { time.Sleep(time.Second); return before }
		m.After = func(coretest.Write) error { return after }
		a, b := m.Open("a"), m.Open("b")
		event := func(seq uint64) journal.Record {
			return journal.Record{Task: "x", Event: core.Event{Seq: seq, Epoch: 1, At: time.Now(), Body: core.Text{Text: "x"}}}
		}
		stored := func(want uint64) {
			t.Helper()
			events, err := b.ReadOf(t.Context(), "a", "x", 0, 0)
			if got := uint64(len(events)); got != want {
				t.Errorf("got %d events and %v, want %d", got, err, want)
			}
		}
		before = lost
		if err := a.Append(t.Context(), event(1)); !errors.Is(err, lost) {
			t.Errorf("a lost write: got %v, want %v", err, lost)
		}
		stored(0)
		before, after = nil, lost
		if err := a.Append(t.Context(), event(1)); !errors.Is(err, lost) {
			t.Errorf("a lost acknowledgement: got %v, want %v", err, lost)
		}
		stored(1)
		if _, err := b.TakeOver(t.Context(), a.Life()); !errors.Is(err, lost) {
			t.Errorf("a takeover whose acknowledgement is lost: got %v, want %v", err, lost)
		}
		after = nil
		if err := a.Append(t.Context(), event(2)); !errors.Is(err, journal.ErrFenced) {
			t.Errorf("after it: got %v, want %v", err, journal.ErrFenced)
		}
		if _, err := b.TakeOver(t.Context(), a.Life()); err != nil {
			t.Errorf("the takeover again: got %v, want it to hold", err)
		}
	})
}
