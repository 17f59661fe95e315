package coretest

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// RecordLog is the suite that every log of records passes. open makes an empty one.
func RecordLog(t *testing.T, open func(t *testing.T) core.RecordLog) {
	t.Helper()
	run := func(name string, test func(*testing.T, core.RecordLog)) {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
	run("nothing is kept at first", func(t *testing.T, l core.RecordLog) {
		wantRecords(t, recorded(t, l), nil)
		if err := l.Append(t.Context()); err != nil {
			t.Errorf("appending nothing: got %v, want no error", err)
		}
		wantRecords(t, recorded(t, l), nil)
	})
	run("what was appended is replayed in order, every time", func(t *testing.T, l core.RecordLog) {
		want := records(7)
		record(t, l, want[:3]...)
		record(t, l, want[3:]...)
		for range 2 {
			wantRecords(t, recorded(t, l), want)
		}
	})
	run("a record may have any bytes, or none", func(t *testing.T, l core.RecordLog) {
		want := [][]byte{{}, []byte("a\nb\x00\xff"), bytes.Repeat([]byte{'\n'}, 300)}
		record(t, l, want...)
		wantRecords(t, recorded(t, l), want)
	})
	run("the longest record is taken and a longer one refused, with all that came with it", func(t *testing.T, l core.RecordLog) {
		most := bytes.Repeat([]byte("x"), core.MaxRecord)
		want := [][]byte{most, most}
		record(t, l, want...)
		err := l.Append(t.Context(), []byte("short"), append(most, 'x'))
		if got := core.AsFault(err); err == nil || got.Code != core.CodeTooLarge {
			t.Errorf("a record too long: got %v, want %s", err, core.CodeTooLarge)
		}
		wantRecords(t, recorded(t, l), want)
	})
	run("the time of a record is when it was written", func(t *testing.T, l core.RecordLog) {
		from := time.Now().Add(-time.Second)
		record(t, l, records(1)...)
		err := l.Replay(t.Context(), func(at time.Time, _ []byte) bool {
			if to := time.Now().Add(time.Second); at.Before(from) || at.After(to) {
				t.Errorf("got a record of %v, want one between %v and %v", at, from, to)
			}
			return true
		})
		if err != nil {
			t.Errorf("got %v, want no error", err)
		}
	})
	run("a replay ends where its reader wants", func(t *testing.T, l core.RecordLog) {
		all := records(5)
		record(t, l, all...)
		var got [][]byte
		if err := l.Replay(t.Context(), func(_ time.Time, r []byte) bool {
			got = append(got, r)
			return len(got) < 2
		}); err != nil {
			t.Fatalf("got %v, want no error", err)
		}
		wantRecords(t, got, all[:2])
	})
	run("many come back as they went", func(t *testing.T, l core.RecordLog) {
		want := records(5000)
		for batch := range slices.Chunk(want, 1700) { // more than a message each
			record(t, l, batch...)
		}
		wantRecords(t, recorded(t, l), want)
	})
}

// RecordRetention is the suite for the retention of a log of records. open makes an empty
// one that keeps about 64 KiB.
func RecordRetention(t *testing.T, open func(t *testing.T) core.RecordLog) {
	t.Helper()
	l, all := open(t), records(20_000)
	for batch := range slices.Chunk(all, 100) {
		record(t, l, batch...)
	}
	got := recorded(t, l)
	if len(got) == 0 || len(got) > 5000 {
		t.Fatalf("got %d records, want some of 20000", len(got))
	}
	wantRecords(t, got, all[len(all)-len(got):])
}

func records(n int) [][]byte {
	all := make([][]byte, n)
	for i := range all {
		all[i] = fmt.Appendf(nil, "%s of %d", bytes.Repeat([]byte("record "), 8), i)
	}
	return all
}

func record(t *testing.T, l core.RecordLog, all ...[]byte) {
	t.Helper()
	if err := l.Append(t.Context(), all...); err != nil {
		t.Fatalf("appending: got %v, want no error", err)
	}
}

func recorded(t *testing.T, l core.RecordLog) (all [][]byte) {
	t.Helper()
	if err := l.Replay(t.Context(), func(_ time.Time, r []byte) bool {
		all = append(all, r)
		return true
	}); err != nil {
		t.Fatalf("replaying: got %v, want no error", err)
	}
	return all
}

func wantRecords(t *testing.T, got, want [][]byte) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %d records, want %d", len(got), len(want))
	}
	for i := range want {
		if !bytes.Equal(got[i], want[i]) {
			t.Fatalf("record %d: got %.200q, want %.200q", i, got[i], want[i])
		}
	}
}
