package main

import (
	"strings"
	"testing"
)

func TestAJournalInMemoryKeeps128MiBUnlessItIsSet(t *testing.T) {
	for _, tt := range []struct {
		args []string
		yaml string
		want int64
	}{
		{want: 128 << 20},
		{args: []string{"--data-dir", "d"}, want: 1 << 30},
		{args: []string{"--nats-url", "nats://127.0.0.1:1"}, want: 1 << 30},
		{yaml: "journal: {bytes: 1073741824}", want: 1 << 30},
		{yaml: "journal: {bytes: 5e6}\ndata_dir: d", want: 5e6},
	} {
		c, err := configOf(t, tt.yaml, nil, tt.args...)
		if err != nil || c.Journal.Bytes != tt.want {
			t.Errorf("%v %q: got %d bytes and %v, want %d", tt.args, tt.yaml, c.Journal.Bytes, err, tt.want)
		}
	}
}

func TestCheckTellsHowMuchTheJournalKeeps(t *testing.T) {
	for _, tt := range []struct {
		args      []string
		want, not string
	}{
		{nil, "134217728", "1073741824"},
		{[]string{"--data-dir", t.TempDir()}, "1073741824", "134217728"},
	} {
		var out earshot
		if code := run(t.Context(), append([]string{"check"}, tt.args...), streams{out: &out, err: &out}); code != exitDone {
			t.Fatalf("%v: got the exit code %d and %s, want it done", tt.args, code, out.String())
		}
		for line := range strings.Lines(out.String()) {
			if line, ok := strings.CutPrefix(line, "journal.bytes "); ok {
				value, _, _ := strings.Cut(line, "DRAGOMAN_JOURNAL_BYTES")
				if !strings.Contains(value, tt.want) || strings.Contains(value, tt.not) {
					t.Errorf("%v: got %q, want the value %s and no other default", tt.args, value, tt.want)
				}
			}
		}
	}
}
