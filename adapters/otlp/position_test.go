package otlp_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
)

// records is a log in memory.
type records struct{ all [][]byte }

func (r *records) Append(_ context.Context, all ...[]byte) error {
	r.all = append(r.all, all...)
	return nil
}

func (r *records) Replay(_ context.Context, yield func(time.Time, []byte) bool) error {
	for _, one := range r.all {
		if !yield(time.Now(), one) {
			break
		}
	}
	return nil
}

// kill ends an exporter without what it does at its end.
func (b *bench) kill() {
	dead, cancel := context.WithCancel(context.Background())
	cancel()
	b.Stop(dead)
}

// What ended in a process that was killed is exported by the next one: none is lost, some come
// twice, and what ended long before does not come again.
func TestTasksThatEndedBeforeAKillWereMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &records{}
		first := newBenchAt(t, kept)
		if first.Missed(time.Now().Add(-time.Hour)) || first.Missed(time.Now()) {
			t.Error("the first process: got tasks that it missed, want none")
		}
		first.traces["t"] = first.Open(policy.Opening{})
		first.Start(first.find)
		begun, ended := time.Now(), []time.Time{}
		for range 60 { // one each second
			ended = append(ended, time.Now())
			first.Ended("t")
			time.Sleep(time.Second)
		}
		first.kill()
		if n := len(kept.all); n < 5 || n > 15 {
			t.Errorf("got %d records of the position in a minute, want few", n)
		}
		next := newBenchAt(t, kept)
		defer next.kill()
		exported := len(first.to.spans)
		for i, at := range ended {
			switch missed := next.Missed(at); {
			case i >= exported && !missed:
				t.Errorf("the task that ended %s after the start was not exported and is not missed", at.Sub(begun))
			case i < 40 && missed:
				t.Errorf("the task that ended %s after the start: got it missed, a minute later", at.Sub(begun))
			}
		}
	})
}

func TestATaskThatEndsAtOnceAndIsKilledWasMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &records{}
		first := newBenchAt(t, kept)
		time.Sleep(time.Millisecond)
		ended := time.Now()
		first.kill()
		next := newBenchAt(t, kept)
		defer next.kill()
		if !next.Missed(ended) {
			t.Error("got it not missed, want it missed: no task was exported yet")
		}
	})
}

func TestNothingIsMissedAfterAnOrderlyEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &records{}
		first := newBenchAt(t, kept)
		first.traces["t"] = first.Open(policy.Opening{})
		first.Start(first.find)
		ended := time.Now()
		first.Ended("t")
		time.Sleep(time.Millisecond)
		first.Stop(t.Context())
		next := newBenchAt(t, kept)
		defer next.kill()
		if next.Missed(ended) || len(first.to.spans) != 1 {
			t.Errorf("got %d spans, and the task missed: %t; want 1, and not missed", len(first.to.spans), next.Missed(ended))
		}
	})
}

func TestWhatAHangingCollectorDidNotTakeBeforeTheEndIsMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &records{}
		first := newBenchAt(t, kept)
		first.to.hangs = true
		first.traces["t"] = first.Open(policy.Opening{})
		first.Start(first.find)
		ended := time.Now()
		first.Ended("t")
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		first.Stop(ctx)
		next := newBenchAt(t, kept)
		defer next.kill()
		if !next.Missed(ended) {
			t.Error("got it not missed, want it missed")
		}
	})
}

func TestWhatWasMissedIsExportedBeforeTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBenchAt(t, &records{})
		missed := make([]core.TaskID, 70_000) // more than are kept
		for i := range missed {
			missed[i] = "old"
		}
		b.traces["old"], b.traces["new"] = b.Open(policy.Opening{}), b.Open(policy.Opening{})
		b.Recovered(missed)
		b.Ended("new")
		b.Start(b.find)
		b.Stop(t.Context())
		n := len(b.to.spans)
		if got := b.dropped.Load(); int64(n)+got != 70_001 || got != 70_000-1<<16 {
			t.Fatalf("got %d spans and %d dropped, want %d dropped and the others exported", n, got, 70_000-1<<16)
		}
		last, _ := b.traces["new"].Span()
		for i, s := range b.to.spans {
			if is := [8]byte(s.GetSpanId()) == last.ID; is != (i == n-1) {
				t.Fatalf("got the new task at %d of %d, want it last", i, n)
			}
		}
	})
}
