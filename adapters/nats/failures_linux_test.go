package nats_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// A disk was full, and has room again: the journal continues in the same
// process, and nothing of what it acknowledged is lost.
func TestFullDiskStopsTheJournalForGood(t *testing.T) {
	tier.Full(t, "it fills a disk")
	coretest.OnDisk(t, func(t *testing.T, disk *coretest.Disk) {
		for _, sync := range []nats.Sync{nats.SyncInterval, nats.SyncAlways} {
			t.Run(string(sync), func(t *testing.T) { fullDisk(t, disk, sync) })
		}
	})
}

func fullDisk(t *testing.T, disk *coretest.Disk, sync nats.Sync) {
	o := nats.Options{Dir: disk.Dir + "/" + string(sync), Sync: sync, Logs: map[string]journal.Retention{"pi": {}}}
	j := open(t, o)
	if err := j.Health(); err != nil {
		t.Fatalf("the health of a new journal: got %v, want none", err)
	}
	var all [][]journal.Record
	write := func(leave int64, texts ...int) (before []error) {
		records := taskRecords(core.TaskID(fmt.Sprintf("%s-%d", sync, len(all))), texts...)
		freed := leave < 0
		before = insist(t, func(ctx context.Context) error {
			err := j.Append(ctx, records...)
			if err != nil && !freed {
				freed = true
				if got := j.Health(); got == nil || !strings.Contains(err.Error(), got.Error()) {
					t.Errorf("the health while nothing can be written: got %v, want what Append says: %v", got, err)
				}
				beside(t, j)
				disk.Free(t)
			}
			return err
		})
		all = append(all, records)
		return before
	}
	write(-1, 10)
	for _, tt := range []struct {
		leave int64
		texts []int
	}{
		{0, []int{8 << 10}},
		{2 << 20, []int{500 << 10, 4 << 20, 10}}, // of which some are stored before the disk is full
		{0, []int{8 << 10}},                      // once more
	} {
		write(-1, 10)
		disk.Fill(t, tt.leave)
		start := time.Now()
		before := write(tt.leave, tt.texts...)
		if len(before) == 0 {
			t.Fatal("a full disk: got no error, want one")
		}
		if took := time.Since(start); took > watchdog/2 {
			t.Errorf("got it written after %s, want it soon after there is room", took)
		}
		for _, want := range []string{"the data directory " + o.Dir, "cannot be written to", "once 1 MiB can be written there"} {
			if !strings.Contains(before[0].Error(), want) {
				t.Errorf("got %q, want it to say %q", before[0], want)
			}
		}
		if err := j.Health(); err != nil {
			t.Errorf("the health once there is room: got %v, want none", err)
		}
		write(-1, 10)
	}
	insist(t, func(ctx context.Context) error { return j.Usage().Append(ctx, usage.Record{Task: "after", Seq: 1}) })
	insist(t, func(ctx context.Context) error { return j.Log("pi").Append(ctx, []byte("after")) })
	for _, records := range all {
		whole(t, j, records)
	}
	if err := j.Close(); err != nil {
		t.Fatalf("closing: got %v, want no error", err)
	}

	again := open(t, o)
	defer again.Close()
	heads := 0
	if err := again.Heads(t.Context(), func(h journal.Head) bool {
		heads++
		if h.End == 0 {
			t.Errorf("task %s has not ended, want its end", h.Task)
		}
		return true
	}); err != nil || heads != len(all) {
		t.Errorf("after a restart: got %d tasks and %v, want %d", heads, err, len(all))
	}
	for _, records := range all {
		whole(t, again, records)
	}
	if spent := 0; again.Usage().Replay(t.Context(), func(s usage.Record) bool { spent++; return true }) != nil || spent != 1 {
		t.Errorf("after a restart: got %d spendings, want 1", spent)
	}
	if said := 0; again.Log("pi").Replay(t.Context(), func(time.Time, []byte) bool { said++; return true }) != nil || said != 1 {
		t.Errorf("after a restart: got %d records of a log, want 1", said)
	}
}

// beside fails the test unless usage and logs are refused soon, too.
func beside(t *testing.T, j *nats.Journal) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	if err := j.Usage().Append(ctx, usage.Record{Task: "t", Seq: 1}); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("usage: got %v, want it refused with the reason", err)
	}
	if err := j.Log("pi").Append(ctx, []byte("x")); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a log: got %v, want it refused with the reason", err)
	}
}
