package nats

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
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
	file := filepath.Join(streamsIn(filepath.Join(dir, storeDir)), "dragoman-tasks", "msgs", "1.blk")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	i := bytes.LastIndex(text, []byte("piece"))
	copy(text[i:], "smear")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
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
	if got, want := log.String(), `msg="reading the journal" stream=dragoman-tasks message=3 tasks=2`; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q in it", got, want)
	}
}

// Of a task that ended long ago a starting hub needs to know only that it ended. Without that, an event that was
// appended again, or came after the end, would look like the first one of a new task.
func TestTheHeadsAreThoseOfOpenTasksAndOfTheLatestOthers(t *testing.T) {
	j, err := Open(t.Context(), Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	const latest, ended = 3, 3 * leastDropped
	j.latestHeads = latest
	event := func(task core.TaskID, seq uint64, body core.Body) journal.Record {
		return journal.Record{Task: task, Event: core.Event{Seq: seq, Epoch: 1, At: time.Now(), Body: body}}
	}
	write := func(records ...journal.Record) {
		t.Helper()
		if err := j.Append(t.Context(), records...); err != nil {
			t.Fatal(err)
		}
	}
	open, endsLast := core.TaskID(core.NewID()), core.TaskID(core.NewID())
	write(event(open, 1, core.Text{Text: "I go on"}), event(endsLast, 1, core.Text{Text: "so do I"}))
	var all []core.TaskID
	for len(all) < ended {
		var records []journal.Record
		for range 512 {
			id := core.TaskID(core.NewID())
			all, records = append(all, id), append(records, event(id, 1, core.Text{Text: "a"}), event(id, 2, core.Text{Text: "b"}), event(id, 3, core.Done{}))
		}
		write(records...)
	}
	first, again, goesOn := all[0], all[1], all[2]
	write(event(again, 2, core.Text{Text: "b"}))
	write(event(again, 3, core.Done{}))
	write(event(goesOn, 4, core.Text{Text: "more"}))
	write(event(endsLast, 2, core.Done{}))
	reply := core.TaskID(core.NewID())
	opened := core.Opened{Task: reply, Request: core.Request{To: core.ToAgent("x"), Thread: core.ThreadID(first)}}
	write(event(reply, 1, opened), event(reply, 2, core.Done{}))

	var heads []journal.Head
	of := map[core.TaskID]journal.Head{}
	if err := j.Heads(t.Context(), func(h journal.Head) bool {
		heads, of[h.Task] = append(heads, h), h
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if n := len(of); n != len(heads) || n < latest || n > latest+leastDropped+2 {
		t.Errorf("got %d heads of %d tasks, want each once, and of %d tasks at most %d", len(heads), n, ended, latest+leastDropped+2)
	}
	if !slices.IsSortedFunc(heads, func(a, b journal.Head) int { return cmp.Compare(a.Task, b.Task) }) {
		t.Error("got heads in another order than that of their ids")
	}
	for task, want := range map[core.TaskID]struct {
		end  core.Kind
		last uint64
	}{open: {0, 1}, goesOn: {0, 4}, endsLast: {core.KindDone, 0}, reply: {core.KindDone, 0}, all[ended-1]: {core.KindDone, 0}, all[ended-2]: {core.KindDone, 0}} {
		if got, is := of[task]; !is || got.End != want.end || got.Last.Seq != want.last {
			t.Errorf("%s: got %t with the end %v and the last event %d, want %v and %d", task, is, got.End, got.Last.Seq, want.end, want.last)
		}
	}
	for _, task := range []core.TaskID{first, again} {
		if got, is := of[task]; is {
			t.Errorf("got %+v, want none: it ended long ago", got)
		}
	}
	if got := of[reply]; got.Thread != core.ThreadID(first) || !got.ThreadTask {
		t.Errorf("got the thread %q, whose first task is known: %t; want %q and true", got.Thread, got.ThreadTask, first)
	}
	n := 0
	if err := j.HeadsOf(t.Context(), j.life.Hub, func(journal.Head) bool { n++; return true }); err != nil || n != ended+3 {
		t.Errorf("got %d heads of all tasks and %v, want %d", n, err, ended+3)
	}
}

// The rights of a requester stand behind its request, and its key.
func TestTheHeadOfARequestWithACredentialHasItsKey(t *testing.T) {
	j, err := Open(t.Context(), Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	from := core.Principal{ID: "ann", Credential: &core.Credential{Kind: core.KindPerson, Roles: []string{"thinker"}}}
	e := core.Event{Seq: 1, Epoch: 1, At: time.Now(), Body: core.Opened{From: from, Request: core.Request{To: core.ToAgent("a"), Content: "x"}, Key: "k"}}
	if err := j.Append(t.Context(), journal.Record{Task: core.TaskID(core.NewID()), Event: e}); err != nil {
		t.Fatal(err)
	}
	if err := j.Heads(t.Context(), func(h journal.Head) bool {
		if h.Key != "k" || h.From != "ann" {
			t.Errorf("got the key %q of %q, want that of the request", h.Key, h.From)
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
}
