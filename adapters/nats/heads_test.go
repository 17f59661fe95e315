package nats

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// A start reads the heads while the goroutine that opens a failed store again may add the
// tasks that it finds damaged.
func TestHeadsMayBeReadWhileTheStoreIsOpenedAgain(t *testing.T) {
	dir := t.TempDir()
	j, err := Open(t.Context(), Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	task := core.TaskID(core.NewID())
	for n := range uint64(3) {
		e := core.Event{Seq: n + 1, Epoch: 1, At: time.Now(), Body: core.Text{Text: "a piece of text"}}
		if err := j.Append(t.Context(), journal.Record{Task: task, Event: e}); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(streamsDir(dir), "dragoman-tasks", "msgs", "1.blk")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	i := bytes.LastIndex(text, []byte("piece"))
	copy(text[i:], "smear")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var heads []journal.Head
	stop := make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() {
		for last := false; !last; {
			select {
			case <-stop:
				last = true
			default:
			}
			heads = nil
			if err := j.Heads(ctx, func(h journal.Head) bool { heads = append(heads, h); return true }); err != nil && last {
				t.Errorf("once the store is open: got %v, want no error", err)
			}
		}
	})
	if err := j.reopen(ctx); err != nil {
		t.Error(err)
	}
	close(stop)
	reading.Wait()
	if len(heads) != 1 || !heads[0].Damaged {
		t.Errorf("got the heads %+v, want the task whose last event was damaged", heads)
	}
}

func TestTheLogTellsHowMuchOfALargeJournalWasRead(t *testing.T) {
	var log bytes.Buffer
	j, err := Open(t.Context(), Options{Dir: t.TempDir(), Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for range 3 {
		e := core.Event{Seq: 1, Epoch: 1, At: time.Now(), Body: core.Text{Text: "hello"}}
		if err := j.Append(t.Context(), journal.Record{Task: core.TaskID(core.NewID()), Event: e}); err != nil {
			t.Fatal(err)
		}
	}
	j.tellEvery = 0
	if err := j.Heads(t.Context(), func(journal.Head) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if got, want := log.String(), `msg="reading the journal" read=100% tasks=2`; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q in it", got, want)
	}
}
