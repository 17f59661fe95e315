package coretest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// Usage is the suite that every usage store passes. open makes an empty one.
func Usage(t *testing.T, open func(t *testing.T) usage.Store) {
	t.Helper()
	run := func(name string, test func(*testing.T, usage.Store)) {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
	run("a new store is empty", func(t *testing.T, s usage.Store) {
		wantUsage(t, replayed(t, s), nil)
		if err := s.Append(t.Context()); err != nil {
			t.Errorf("appending nothing: got %v, want no error", err)
		}
		wantUsage(t, replayed(t, s), nil)
	})
	run("what was appended is replayed in order, every time", func(t *testing.T, s usage.Store) {
		want := usageRecords(7)
		appendAll(t, s, want[:3]...)
		appendAll(t, s, want[3:]...)
		for range 2 {
			wantUsage(t, replayed(t, s), want)
		}
	})
	run("appending again changes nothing", func(t *testing.T, s usage.Store) {
		want := usageRecords(6)
		appendAll(t, s, want[:4]...)
		appendAll(t, s, want[:4]...)
		appendAll(t, s, want[2:]...)
		wantUsage(t, replayed(t, s), want)
	})
	run("events of one task are distinguished by their sequence number", func(t *testing.T, s usage.Store) {
		want := usageRecords(3)
		for i := range want {
			want[i].Task, want[i].Seq = "t", uint64(3+2*i)
		}
		appendAll(t, s, want...)
		wantUsage(t, replayed(t, s), want)
	})
	run("a replay ends where its reader wants", func(t *testing.T, s usage.Store) {
		all := usageRecords(5)
		appendAll(t, s, all...)
		var got []usage.Record
		if err := s.Replay(t.Context(), func(s usage.Record) bool {
			got = append(got, s)
			return len(got) < 2
		}); err != nil {
			t.Fatalf("got %v, want no error", err)
		}
		wantUsage(t, got, all[:2])
	})
	run("names may have any characters", func(t *testing.T, s usage.Store) {
		want := usageRecords(1)
		want[0].Agent, want[0].Requester, want[0].Thread = "a \"b\"\n.*>", "mit Lücke", "\u2028/ü"
		appendAll(t, s, want...)
		wantUsage(t, replayed(t, s), want)
	})
	run("many come back as they went", func(t *testing.T, s usage.Store) {
		want := usageRecords(5000)
		for batch := range slices.Chunk(want, 1700) { // more than a message each
			appendAll(t, s, batch...)
		}
		wantUsage(t, replayed(t, s), want)
	})
}

// UsageRetention is the suite for the retention of a usage store. open makes an empty one
// that keeps about 64 KiB.
func UsageRetention(t *testing.T, open func(t *testing.T) usage.Store) {
	t.Helper()
	s := open(t)
	all := usageRecords(20_000)
	for batch := range slices.Chunk(all, 100) {
		appendAll(t, s, batch...)
	}
	got := replayed(t, s)
	if len(got) == 0 || len(got) > 5000 {
		t.Fatalf("got %d records, want some of 20000", len(got))
	}
	wantUsage(t, got, all[len(all)-len(got):])
}

// usageRecords returns n records of different tasks, agents, requesters and threads, a
// millisecond apart.
func usageRecords(n int) []usage.Record {
	at := time.Now().UTC().Truncate(time.Millisecond).Add(-time.Hour)
	all := make([]usage.Record, n)
	for i := range all {
		k := int64(i + 1)
		all[i] = usage.Record{
			Task: core.TaskID(fmt.Sprintf("task-%d", i)), Seq: uint64(i%9 + 1), At: at.Add(time.Duration(i) * time.Millisecond),
			Agent: core.AgentID(fmt.Sprintf("agent-%d", i%3)), Requester: fmt.Sprintf("requester-%d", i%5),
			Tokens: core.Usage{Input: k, Output: 2 * k, CacheRead: 3 * k, CacheWrite: 4 * k, Thinking: 5 * k},
		}
		if i%4 == 0 {
			all[i].Cost = core.Money{Nanos: k % 3, Currency: "USD"}
		}
		if i%2 == 0 {
			all[i].Thread = core.ThreadID(fmt.Sprintf("thread-%d", i%7))
		}
	}
	return all
}

func appendAll(t *testing.T, s usage.Store, all ...usage.Record) {
	t.Helper()
	if err := s.Append(t.Context(), all...); err != nil {
		t.Fatalf("appending: got %v, want no error", err)
	}
}

func replayed(t *testing.T, s usage.Store) []usage.Record {
	t.Helper()
	var all []usage.Record
	if err := s.Replay(t.Context(), func(s usage.Record) bool {
		all = append(all, s)
		return true
	}); err != nil {
		t.Fatalf("replaying: got %v, want no error", err)
	}
	return all
}

func wantUsage(t *testing.T, got, want []usage.Record) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("usage (-want +got):\n%s", d)
	}
}
