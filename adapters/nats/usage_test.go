package nats_test

import (
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// openUsage opens a store of spendings that is closed when the test ends.
func openUsage(t *testing.T, o nats.Options) usage.Store {
	t.Helper()
	j := open(t, o)
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Errorf("closing: got %v, want no error", err)
		}
	})
	return j.Usage()
}

func TestTheEmbeddedServerRemembersWhatWasSpent(t *testing.T) {
	coretest.Usage(t, func(t *testing.T) usage.Store { return openUsage(t, nats.Options{Dir: t.TempDir()}) })
	coretest.UsageRetention(t, func(t *testing.T) usage.Store {
		return openUsage(t, nats.Options{Dir: t.TempDir(), KeepUsage: usage.Retention{Bytes: 64 << 10}})
	})
}

func TestAnExternalServerRemembersWhatWasSpent(t *testing.T) {
	s := external(t)
	n := 0
	coretest.Usage(t, func(t *testing.T) usage.Store {
		n++
		return openUsage(t, nats.Options{URL: s.ClientURL(), Name: "hub-" + string(rune('a'+n))})
	})
}

func TestWhatWasSpentIsThereWhenTheStoreIsOpenedAgain(t *testing.T) {
	dir := t.TempDir()
	want := usage.Record{
		Task: "t", Seq: 4, At: time.Now().UTC().Truncate(time.Millisecond), Agent: "a", Requester: "r", Thread: "th", Tokens: core.Usage{Input: 1, Output: 2},
	}
	j := open(t, nats.Options{Dir: dir})
	if err := j.Usage().Append(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	var got []usage.Record
	if err := openUsage(t, nats.Options{Dir: dir}).Replay(t.Context(), func(s usage.Record) bool {
		got = append(got, s)
		return true
	}); err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("got %+v and %v, want %+v", got, err, want)
	}
}

// A start reads all of it: this is how long that takes.
func BenchmarkReplay(b *testing.B) {
	j, err := nats.Open(b.Context(), nats.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	const spendings = 100_000
	for i := range spendings { // each on its own, as on a hub that is not busy
		if err := j.Usage().Append(b.Context(), usage.Record{
			Task: core.TaskID(core.NewID()), Seq: 5, At: time.Now(), Agent: core.AgentID("agent-" + string(rune('a'+i%26))), Requester: "somebody",
			Thread: core.ThreadID(core.NewID()), Tokens: core.Usage{Input: 1500, Output: 200},
		}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		l, n := usage.NewLedger(), 0
		if err := j.Usage().Replay(b.Context(), func(s usage.Record) bool {
			l.Add(s)
			n++
			return true
		}); err != nil || n != spendings {
			b.Fatalf("got %d spendings and %v, want %d", n, err, spendings)
		}
	}
	b.ReportMetric(float64(spendings)*float64(b.N)/b.Elapsed().Seconds(), "spendings/s")
}
