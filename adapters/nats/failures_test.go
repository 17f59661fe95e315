package nats_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// The files of a data directory that was taken away take writes that nobody finds
// again: the journal refuses to call them recorded, and says what to do.
func TestRecordedInFilesThatWereRemoved(t *testing.T) {
	remove := func(t *testing.T, dir string) { must(t, os.RemoveAll(dir)) }
	for name, tt := range map[string]struct {
		take func(t *testing.T, dir string)
		back func(t *testing.T, dir string) // nil where nothing brings it back
	}{
		"removed": {take: remove},
		"emptied": {take: func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "nats")) }},
		"removed, and made again": {take: func(t *testing.T, dir string) {
			remove(t, dir)
			must(t, os.MkdirAll(filepath.Join(dir, "nats", "jetstream", "$G", "streams", "dragoman-tasks"), 0o700))
		}},
		"moved away": {
			take: func(t *testing.T, dir string) { must(t, os.Rename(dir, dir+".away")) },
			back: func(t *testing.T, dir string) { must(t, os.Rename(dir+".away", dir)) },
		},
		"replaced by a copy": {
			take: func(t *testing.T, dir string) {
				must(t, os.Rename(dir, dir+".away"))
				must(t, os.CopyFS(dir, os.DirFS(dir+".away")))
			},
			back: func(t *testing.T, dir string) {
				remove(t, dir)
				must(t, os.Rename(dir+".away", dir))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			o := nats.Options{Dir: dir, Logs: map[string]journal.Retention{"pi": {}}}
			j := open(t, o)
			closed := false
			shut := func() {
				if !closed {
					must(t, j.Close())
				}
				closed = true
			}
			defer shut()
			before, later := taskRecords("before", 10), taskRecords("later", 10)
			must(t, j.Append(t.Context(), before...))

			tt.take(t, dir)
			lost := map[string]error{
				"the health": j.Health(),
				"a task":     j.Append(t.Context(), later...),
				"usage":      j.Usage().Append(t.Context(), usage.Record{Task: "later", Seq: 1}),
				"a log":      j.Log("pi").Append(t.Context(), []byte("later")),
			}
			for what, err := range lost {
				if err == nil || !strings.Contains(err.Error(), "the data directory "+dir+" was removed or replaced") || !strings.Contains(err.Error(), "stop the hub, restore the directory, start the hub again") {
					t.Errorf("%s: got %v, want an error that says what became of the directory, and what to do", what, err)
				}
			}
			if tt.back == nil {
				return
			}
			tt.back(t, dir)
			if err := j.Health(); err != nil {
				t.Errorf("the health of a directory that is back: got %v, want none", err)
			}
			must(t, j.Append(t.Context(), later...))
			shut()
			j, closed = open(t, o), false
			whole(t, j, before)
			whole(t, j, later)
		})
	}
}

// A lock that was removed holds nobody off.
func TestARemovedLockIsNoticed(t *testing.T) {
	dir := t.TempDir()
	lock := filepath.Join(dir, "lock")
	must(t, os.WriteFile(lock, nil, 0o600))
	j := open(t, nats.Options{Dir: dir})
	defer j.Close()
	must(t, os.Remove(lock))
	must(t, os.WriteFile(lock, nil, 0o600))
	if err := j.Health(); err == nil || !strings.Contains(err.Error(), lock+" is no longer the one that was opened") {
		t.Errorf("got %v, want it to name %s", err, lock)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// taskRecords returns the records of a task: a request, texts of those sizes, and the end.
func taskRecords(id core.TaskID, texts ...int) (records []journal.Record) {
	add := func(b core.Body) {
		records = append(records, journal.Record{Task: id, Event: core.Event{Seq: uint64(len(records) + 1), At: time.Now().UTC(), Body: b}})
	}
	add(core.Opened{Request: core.Request{To: core.ToAgent("a"), Content: "x"}})
	for _, size := range texts {
		add(core.Text{Text: strings.Repeat("x", size)})
	}
	add(core.Done{})
	return records
}

// whole fails the test unless the journal has these records of a task, each once.
func whole(t *testing.T, j *nats.Journal, want []journal.Record) {
	t.Helper()
	got, err := j.Read(t.Context(), want[0].Task, 0, 0)
	if err != nil || len(got) != len(want) {
		t.Errorf("task %s: got %d events and %v, want %d", want[0].Task, len(got), err, len(want))
		return
	}
	for i, e := range got {
		if e.Seq != want[i].Event.Seq || e.Size() != want[i].Event.Size() {
			t.Errorf("task %s: got event %d of %d bytes, want %d of %d", want[0].Task, e.Seq, e.Size(), want[i].Event.Seq, want[i].Event.Size())
		}
	}
}
