package nats_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/usage"
)

func TestTheNextLifeOfAHubFencesTheOneBeforeInEveryStream(t *testing.T) {
	writes := map[string]func(context.Context, *nats.Journal) error{
		"tasks": func(ctx context.Context, j *nats.Journal) error { return j.Append(ctx, taskRecords("late")...) },
		"usage": func(ctx context.Context, j *nats.Journal) error {
			return j.Usage().Append(ctx, usage.Record{Task: "late", Seq: 1})
		},
		"a log": func(ctx context.Context, j *nats.Journal) error { return j.Log("notes").Append(ctx, []byte("late")) },
	}
	for name, first := range writes {
		t.Run(name, func(t *testing.T) {
			s := external(t)
			at := nats.Options{URL: s.ClientURL(), Logs: map[string]journal.Retention{"notes": {}}}
			former := opened(t, at)
			for name, write := range writes {
				if err := write(t.Context(), former); err != nil {
					t.Errorf("%s, before: got %v, want it written", name, err)
				}
			}
			present := opened(t, at)
			if f, p := former.Life(), present.Life(); f != (journal.Life{Hub: "dragoman", Epoch: 1}) || p != (journal.Life{Hub: "dragoman", Epoch: 2}) {
				t.Errorf("got the lives %s and %s, want dragoman/1 and dragoman/2", f, p)
			}
			if err := former.Health(); err != nil {
				t.Errorf("before it writes: got %v, want it not to know", err)
			}
			if err := first(t.Context(), former); !errors.Is(err, journal.ErrFenced) || !strings.Contains(err.Error(), "dragoman/2") {
				t.Errorf("got %v, want %v by dragoman/2", err, journal.ErrFenced)
			}
			<-former.Deposed()
			for name, write := range writes {
				if err := write(t.Context(), former); !errors.Is(err, journal.ErrFenced) {
					t.Errorf("%s, after: got %v, want %v", name, err, journal.ErrFenced)
				}
				if err := write(t.Context(), present); err != nil {
					t.Errorf("%s, the present life: got %v, want it written", name, err)
				}
			}
			if err := former.Health(); !errors.Is(err, journal.ErrFenced) {
				t.Errorf("the health of the former: got %v, want %v", err, journal.ErrFenced)
			}
		})
	}
}

func TestALifeGoesOnWhenRetentionDropsWhatItWrote(t *testing.T) {
	s := external(t)
	at := nats.Options{URL: s.ClientURL(), Keep: journal.Retention{Bytes: 64 << 10}}
	j := opened(t, at)
	for range 20 {
		if err := j.Append(t.Context(), taskRecords(core.TaskID(core.NewID()), 30<<10)...); err != nil {
			t.Fatal(err)
		}
	}
	info, err := tasksOf(t, j).Info(t.Context())
	if err != nil || info.State.FirstSeq < 10 {
		t.Fatalf("got the first message at %d and %v, want the earlier ones dropped", info.State.FirstSeq, err)
	}
	if _, err := tasksOf(t, j).GetLastMsgForSubject(t.Context(), "dragoman.own"); err != nil {
		t.Errorf("got %v, want the stream to say who writes", err)
	}
	if err := tasksOf(t, j).Purge(t.Context()); err != nil { // as if everything had grown too old
		t.Fatal(err)
	}
	unacknowledged, cancel := context.WithCancel(t.Context())
	cancel()
	if err := j.Append(unacknowledged, taskRecords("t")...); err == nil {
		t.Error("got no error without an acknowledgement, want one")
	}
	if err := j.Append(t.Context(), taskRecords("t")...); err != nil {
		t.Errorf("when nothing is left: got %v, want it written", err)
	}
	if err := tasksOf(t, j).Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if next := opened(t, at).Life(); next.Epoch < 2 {
		t.Errorf("got the life %s, want a later one", next)
	}
	if err := j.Append(t.Context(), taskRecords("t")...); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("after the next life: got %v, want %v", err, journal.ErrFenced)
	}
}

func TestALifeKnowsItsOwnMessageWhoseAcknowledgementWasLost(t *testing.T) {
	j, proxy := throughLossy(t, "dragoman.own _INBOX.", "dragoman.own _LOSTX.")
	unacknowledged, cancel := context.WithCancel(t.Context())
	cancel()
	if err := j.Append(unacknowledged, taskRecords("a")...); err == nil {
		t.Error("got no error without an acknowledgement, want one")
	}
	if err := j.Append(proxy.untilLost(t.Context()), taskRecords("a")...); err == nil || !proxy.lost.Load() {
		t.Errorf("got %v, want an error: the acknowledgement is lost", err)
	}
	records := taskRecords("a")
	if err := j.Append(t.Context(), records...); err != nil {
		t.Errorf("again: got %v, want it written", err)
	}
	if events, err := j.Read(t.Context(), "a", 0, 0); err != nil || len(events) != len(records) {
		t.Errorf("got %d events and %v, want %d", len(events), err, len(records))
	}
}

func TestHubsOnAnExternalServerShareAJournal(t *testing.T) {
	coretest.SharedJournal(t, func(t *testing.T) func(string) journal.Shared {
		s := external(t)
		return func(hub string) journal.Shared { return opened(t, nats.Options{URL: s.ClientURL(), Name: hub}) }
	})
}
