package nats_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// small makes the blocks of the journal 32 KB long.
var small = journal.Retention{Bytes: 125_000}

// archive is a store that was written by a journal, and what is in it.
type archive struct {
	dir   string
	tasks []core.TaskID
	of    map[core.TaskID][]core.Event
	// running are those of the tasks that have not ended.
	running map[core.TaskID]bool
}

// archived writes tasks in four blocks: some in one message with others, some over
// several messages, one in parts, some that have not ended.
func archived(t *testing.T) archive {
	t.Helper()
	a := archive{dir: t.TempDir(), of: map[core.TaskID][]core.Event{}, running: map[core.TaskID]bool{}}
	j := opened(t, nats.Options{Dir: a.dir, Keep: small})
	write := func(records ...journal.Record) {
		t.Helper()
		if err := j.Append(t.Context(), records...); err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			if a.of[r.Task] == nil {
				a.tasks = append(a.tasks, r.Task)
			}
			a.of[r.Task] = append(a.of[r.Task], r.Event)
		}
	}
	j.SetPart(2000)
	for i := range 32 {
		var together []journal.Record
		for n := range 3 {
			together = append(together, recorded(core.TaskID(core.NewID()), answered(i*3+n)...)...)
		}
		apart, running := core.TaskID(core.NewID()), core.TaskID(core.NewID())
		events := answered(i)
		if i == 16 {
			events[3].Body = core.File{Name: "large", Data: bytes.Repeat([]byte("0123456789abcdef"), 500)}
		}
		write(recorded(apart, events[:3]...)...)
		if i%10 == 0 {
			a.running[running] = true
			write(recorded(running, answered(i)[:2]...)...)
		}
		write(together...)
		write(recorded(apart, events[3:]...)...)
		if err := j.Usage().Append(t.Context(), usage.Record{Task: apart, Seq: 5, At: time.Now(), Agent: "a", Requester: "r"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return a
}

// answered is what happens to a task that is answered.
func answered(n int) (events []core.Event) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6e8, time.UTC)
	for i, b := range []core.Body{
		core.Opened{From: core.Principal{ID: "r"}, Request: core.Request{To: core.ToAgent("a"), Thread: "thread", Content: strings.Repeat("why? ", n%20)}},
		core.Assigned{Agent: "a", Attempt: 1}, core.Accepted{}, core.Text{Text: fmt.Sprint("because of ", n)}, core.Done{},
	} {
		events = append(events, core.Event{Seq: uint64(i + 1), Epoch: 1, At: at, Body: b})
	}
	return events
}

// copied is a copy of the archive that may be damaged.
func (a archive) copied(t interface {
	Fatal(...any)
	TempDir() string
}) archive {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(a.dir)); err != nil {
		t.Fatal(err)
	}
	a.dir = dir
	return a
}

func (a archive) file(path ...string) string {
	return filepath.Join(append([]string{a.dir, "nats", "jetstream", "$G", "streams", "dragoman-tasks"}, path...)...)
}

// stored is a message in a block: where it is, and whose.
type stored struct {
	block, start, end int
	tasks             []core.TaskID
}

// The start of a record in a block: its length, with a bit for a header, its place, its
// time and the length of its subject.
const recordStart = 4 + 8 + 8 + 2

var taskLine = regexp.MustCompile(`(?m)^\{"task":"([^"]*)"\}$`)

// messages are those in the files, in order.
func (a archive) messages(t testing.TB) (all []stored) {
	t.Helper()
	var last []core.TaskID
	for i := 0; ; i++ {
		text, err := os.ReadFile(a.blockFile(i))
		if os.IsNotExist(err) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		for at := 0; at < len(text); {
			size := int(binary.LittleEndian.Uint32(text[at:]) &^ (1 << 31))
			if size < recordStart || at+size > len(text) {
				t.Fatalf("block %d has no record at %d, want one", i, at)
			}
			if bytes.HasPrefix(text[at+recordStart:], []byte("dragoman.own")) {
				at += size
				continue // it says who writes, and has nothing of a task
			}
			data := text[at+recordStart+int(binary.LittleEndian.Uint16(text[at+20:])) : at+size]
			if names := taskLine.FindAllSubmatch(data, -1); bytes.HasPrefix(data, []byte(`{"task":`)) || bytes.Contains(data, []byte("\r\n\r\n"+`{"task":`)) {
				last = nil
				for _, n := range names {
					last = append(last, core.TaskID(n[1]))
				}
			} // else it is a further part
			all = append(all, stored{i, at, at + size, last})
			at += size
		}
	}
}

// blockFile is the file of a block.
func (a archive) blockFile(index int) string { return a.file("msgs", fmt.Sprint(index+1, ".blk")) }

// change changes a file of the archive.
func (a archive) change(t *testing.T, path string, how func([]byte) []byte) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, how(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// tester is a *testing.T or a *rapid.T.
type tester interface {
	Helper()
	Context() context.Context
	Errorf(format string, args ...any)
	Fatal(args ...any)
}

// found is what a journal has after it was opened, and after a hub has recovered it.
type found struct {
	log    string
	whole  int // tasks that are as they were
	gaps   map[core.TaskID]*journal.GapError
	ended  map[core.TaskID]core.Code // how the hub ended them
	again  []core.TaskID             // done, and told to be asked again
	absent []core.TaskID
}

// recover opens the archive, has a hub recover it, and looks for all tasks. Nothing may
// be there that never was.
func (a archive) recover(t tester) found {
	t.Helper()
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	j, err := nats.Open(t.Context(), nats.Options{Dir: a.dir, Keep: small, Log: logger})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	return a.found(t, j, logger, &log)
}

// found recovers a hub from a journal that has the archive, and compares the two.
func (a archive) found(t tester, j *nats.Journal, logger *slog.Logger, log *bytes.Buffer) found {
	t.Helper()
	h := hub.New(hub.Options{Journal: j, Log: logger})
	defer h.Close(t.Context(), "the test is over")
	if err := h.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	f := found{gaps: map[core.TaskID]*journal.GapError{}, ended: map[core.TaskID]core.Code{}}
	for _, task := range a.tasks {
		events, err := j.Read(t.Context(), task, 0, 0)
		var gap *journal.GapError
		switch {
		case errors.Is(err, journal.ErrUnknown):
			f.absent = append(f.absent, task)
			continue
		case errors.As(err, &gap):
			f.gaps[task] = gap
		case err != nil:
			t.Fatal(err)
		}
		last := events[len(events)-1]
		if !last.Body.Kind().Ends() {
			t.Errorf("task %s: got %s at its end, want an end", task, last.Body.Kind())
		}
		if b, is := last.Body.(core.Failed); is {
			f.ended[task] = b.Fault.Code
			events = events[:len(events)-1]
			if b.Fault.Retryable != (b.Fault.Code == core.CodeUnreachable) {
				t.Errorf("task %s: got retryable %t of a fault %s", task, b.Fault.Retryable, b.Fault.Code)
			}
			if b.Fault.Retryable && !a.running[task] {
				f.again = append(f.again, task)
			}
		}
		was := a.of[task]
		for _, e := range events {
			got, err := e.AppendJSON(nil)
			want, wantErr := was[e.Seq-1].AppendJSON(nil)
			if !bytes.Equal(got, want) || err != nil || wantErr != nil {
				t.Errorf("task %s: got %s (%v), want %s (%v)", task, got, err, want, wantErr)
			}
		}
		if len(events) == len(was) {
			f.whole++
		}
	}
	f.log = log.String()
	return f
}
