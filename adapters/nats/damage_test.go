package nats_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
)

func flipped(at int) func([]byte) []byte {
	return func(text []byte) []byte {
		text[at] ^= 0x10
		return text
	}
}

// TestADamagedRecordCostsAtMostTheRestOfItsFileAndIsSaid flips a bit in each part of a record, in the first and in
// the last block, after a stop and after a kill.
func TestADamagedRecordCostsAtMostTheRestOfItsFileAndIsSaid(t *testing.T) {
	tier.Full(t, "it opens a journal for each bit")
	whole := archived(t)
	messages := whole.messages(t)
	first := slices.IndexFunc(messages, func(m stored) bool { return m.block == 1 })
	last := slices.IndexFunc(messages, func(m stored) bool { return m.block == messages[len(messages)-1].block })
	if messages[last].block < 3 {
		t.Fatalf("got %d blocks, want 4", messages[last].block+1)
	}
	left := map[string]archive{"stopped": whole, "killed": whole.copied(t).killed(t)}
	for name, m := range map[string]stored{
		"the first message of all": messages[0], "one of the first block": messages[first/2], "the last of the first block": messages[first-1],
		"the first of the last block": messages[last], "the last of all": messages[len(messages)-1],
	} {
		for part, at := range map[string]int{
			"the length": m.start, "the high byte of the length": m.start + 3, "the number": m.start + 4, "the time": m.start + 12, "the length of the subject": m.start + 20,
			"the subject": m.start + recordStart + 3, "the data": (m.start + m.end) / 2, "the checksum": m.end - 1,
		} {
			for how, a := range left {
				t.Run(part+" of "+name+", "+how, func(t *testing.T) {
					a := a.copied(t)
					a.change(t, a.blockFile(m.block), flipped(at))
					f := a.recover(t)
					f.wantOthers(t, a, touched(messages, m.block, m.start, 1<<20))
					if f.missing(t) == 0 || !strings.Contains(f.log, "level=ERROR") {
						t.Errorf("got the log\n%swant an error with the number of the missing records", f.log)
					}
					again := a.recover(t)
					again.wantOthers(t, a, touched(messages, m.block, m.start, 1<<20))
					if n := again.missing(t); n != 0 {
						t.Errorf("the next start: got %d records missing by the log\n%swant it said once", n, again.log)
					}
				})
			}
		}
	}
}

func TestADamagedRecordIsSaidWhereAHubJoinsAClusterToo(t *testing.T) {
	tier.Full(t, "it runs three servers")
	a := archived(t)
	messages := a.messages(t)
	broken := messages[slices.IndexFunc(messages, func(m stored) bool { return m.block == 1 })/2]
	a.change(t, a.blockFile(broken.block), flipped((broken.start+broken.end)/2))
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	j := formed(t, func(o *nats.Options) { o.Dir, o.Name, o.Keep, o.Log = a.dir, "dragoman", small, logger })["a"]
	f := a.found(t, j, logger, &log)
	f.wantOthers(t, a, touched(messages, broken.block, broken.start, 1<<20))
	if f.missing(t) == 0 || !strings.Contains(f.log, "level=ERROR") {
		t.Errorf("got the log\n%swant an error with the number of the missing records", f.log)
	}
}

// The embedded server makes what describes its files again.
func TestADamagedDescriptionOfTheFilesLosesNothing(t *testing.T) {
	whole := archived(t)
	for _, name := range []string{"msgs/index.db", "meta.inf", "meta.sum"} {
		t.Run(name, func(t *testing.T) {
			a := whole.copied(t)
			a.change(t, a.file(name), flipped(10))
			f := a.recover(t)
			f.wantAll(t, a)
			if !strings.Contains(f.log, "level=WARN") && !strings.Contains(f.log, "level=ERROR") {
				t.Errorf("got the log\n%swant a report of it", f.log)
			}
			a.recover(t).wantAll(t, a)
		})
	}
}

// wantAll holds that all tasks are as they were, and those ended that were running.
func (f found) wantAll(t *testing.T, a archive) {
	t.Helper()
	if f.whole != len(a.tasks) || len(f.gaps) > 0 || len(f.absent) > 0 || len(f.again) > 0 {
		t.Errorf("got %d tasks as they were, %d with gaps, %d absent, %d to be asked again, want all %d as they were", f.whole, len(f.gaps), len(f.absent), len(f.again), len(a.tasks))
	}
	for task, code := range f.ended {
		if code != core.CodeUnreachable {
			t.Errorf("task %s: got the end %s, want unreachable: nothing is lost", task, code)
		}
	}
	if len(f.ended) != len(a.running) {
		t.Errorf("got %d tasks that were ended, want %d", len(f.ended), len(a.running))
	}
}

// smeared overwrites a part of a file.
func smeared(from, to int) func([]byte) []byte {
	return func(text []byte) []byte {
		copy(text[from:to], bytes.Repeat([]byte("smear"), to-from))
		return text
	}
}

// touched are the tasks of which a part of a block has something.
func touched(messages []stored, block, from, to int) map[core.TaskID]bool {
	tasks := map[core.TaskID]bool{}
	for _, m := range messages {
		if m.block == block && m.start < to && from < m.end {
			for _, task := range m.tasks {
				tasks[task] = true
			}
		}
	}
	return tasks
}

// wantOthers holds that all tasks but those that were touched are as they were, and that
// of no other than a running one is said that it may be asked again.
func (f found) wantOthers(t tester, a archive, touched map[core.TaskID]bool) {
	t.Helper()
	for task := range f.gaps {
		if !touched[task] {
			t.Errorf("task %s has a gap, want none: it was not touched", task)
		}
	}
	for _, task := range f.absent {
		if !touched[task] {
			t.Errorf("task %s is absent, want it: it was not touched", task)
		}
	}
	for task := range f.ended {
		if !touched[task] && !a.running[task] {
			t.Errorf("task %s was ended by the hub, want its own end: it was not touched", task)
		}
	}
	if least := len(a.tasks) - len(touched); f.whole < least {
		t.Errorf("got %d tasks as they were, want at least %d", f.whole, least)
	}
	if len(f.again) > 0 {
		t.Errorf("got %v done and told to be asked again, want none", f.again)
	}
}

func TestDamageEndsOnlyTasksOfTheRestOfItsFile(t *testing.T) {
	whole := archived(t)
	messages := whole.messages(t)
	last := messages[len(messages)-1].block
	for name, block := range map[string]int{"the first block": 0, "a block in the middle": 1, "the last block": last} {
		t.Run(name, func(t *testing.T) {
			a := whole.copied(t)
			i := slices.IndexFunc(messages, func(m stored) bool { return m.block == block && m.start > 0 && len(m.tasks) == 3 })
			m := messages[i]
			from, to := (m.start+m.end)/2, (m.start+m.end)/2+100
			a.change(t, a.blockFile(block), smeared(from, to))
			f := a.recover(t)
			lost := touched(messages, block, from, 1<<20)
			f.wantOthers(t, a, lost)
			for task := range lost {
				if code, ended := f.ended[task]; ended && code != core.CodeInternal {
					t.Errorf("task %s: got the end %s, want %s", task, code, core.CodeInternal)
				}
			}
			if n := f.missing(t); n == 0 {
				t.Errorf("got the log\n%swant it to say how many records are missing", f.log)
			}
			again := a.recover(t)
			again.wantOthers(t, a, lost)
			if len(again.ended) != len(f.ended) || again.missing(t) > 0 {
				t.Errorf("the next start: got %d tasks ended and the log\n%swant %d, and nothing said again", len(again.ended), again.log, len(f.ended))
			}
		})
	}
}

// TestAReaderGetsTheGapInTheMiddleOfATask damages the second of three messages of a task, with which its file ends.
func TestAReaderGetsTheGapInTheMiddleOfATask(t *testing.T) {
	dir, task := t.TempDir(), core.TaskID(core.NewID())
	a := archive{dir: dir}
	j := opened(t, nats.Options{Dir: dir, Keep: small})
	for _, part := range [][]core.Event{answered(1)[:2], answered(1)[2:4], answered(1)[4:]} {
		if part[0].Seq == 5 {
			must(t, j.Append(t.Context(), taskRecords("other", 40<<10)...)) // it fills the next file
		}
		if err := j.Append(t.Context(), recorded(task, part...)...); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	m := a.messages(t)[1]
	a.change(t, a.blockFile(0), smeared(m.end-60, m.end-30))
	j = opened(t, nats.Options{Dir: dir, Keep: small})
	events, err := j.Read(t.Context(), task, 0, 0)
	var gap *journal.GapError
	if !errors.As(err, &gap) || gap.From != 3 || gap.To != 4 || len(events) != 3 {
		t.Errorf("got %d events and %v, want 3 and a gap from 3 to 4", len(events), err)
	}
	heads := listed(t, j)
	if len(heads) != 2 || heads[0].Task != task || heads[0].End == 0 || heads[0].Damaged {
		t.Errorf("got the heads %+v, want that of a task that has ended, and of another", heads)
	}

	h := coretest.NewHub(t, hub.Options{Journal: j})
	s := h.Connect(hub.Identity{Principal: core.Principal{ID: "r"}})
	defer s.Close(nil)
	found, err := h.Task(t.Context(), core.Principal{ID: "r"}, task)
	if err != nil {
		t.Fatal(err)
	}
	if a := found.Answer(); a.End != core.KindDone || !a.Truncated {
		t.Errorf("got the answer %+v, want it done, and truncated", a)
	}
	if err := s.Watch(found, core.Cursor{}, nil); err != nil {
		t.Fatal(err)
	}
	var read []string
	for len(read) < 3 {
		b, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if b.Gap != nil {
			read = append(read, fmt.Sprint("gap ", *b.Gap))
		} else {
			read = append(read, fmt.Sprint(b.Events[0].Seq, " to ", b.Events[len(b.Events)-1].Seq))
		}
	}
	if d := cmp.Diff([]string{"1 to 2", "gap {3 4}", "5 to 5"}, read); d != "" {
		t.Errorf("what a reader is told (-want +got):\n%s", d)
	}
}

// TestAWriteThatWasCutOffIsAnOrdinaryStart has the last block end within a record, as
// after a loss of power: there is no index, since nobody closed the store, and no mark
// that is as late.
func TestAWriteThatWasCutOffIsAnOrdinaryStart(t *testing.T) {
	whole := archived(t)
	messages := whole.messages(t)
	m := messages[len(messages)-1]
	for name, how := range map[string]func([]byte) []byte{
		"within the head of a record": func(b []byte) []byte { return b[:m.start+10] },
		"within its data":             func(b []byte) []byte { return b[:(m.start+m.end)/2] },
		"one byte before its end":     func(b []byte) []byte { return b[:m.end-1] },
		"before it":                   func(b []byte) []byte { return b[:m.start] },
		"zeros in its place":          func(b []byte) []byte { clear(b[m.start:]); return b },
		"zeros from its middle on":    func(b []byte) []byte { clear(b[(m.start+m.end)/2:]); return b },
		"zeros after it":              func(b []byte) []byte { return append(b, make([]byte, 4096)...) },
	} {
		t.Run(name, func(t *testing.T) {
			a := whole.copied(t)
			for _, file := range []string{a.file("msgs", "index.db"), filepath.Join(a.dir, "nats", "marks.json")} {
				must(t, os.Remove(file))
			}
			a.change(t, a.blockFile(m.block), how)
			f := a.recover(t)
			if strings.Contains(f.log, "level=ERROR") {
				t.Errorf("got the log\n%swant no error", f.log)
			}
			if len(f.absent) > 0 || len(f.gaps) > 0 || f.whole < len(a.tasks)-len(m.tasks) {
				t.Errorf("got %d absent, %d gaps, %d tasks as they were, want none, none and at least %d", len(f.absent), len(f.gaps), f.whole, len(a.tasks)-len(m.tasks))
			}
			for task, code := range f.ended {
				if code != core.CodeUnreachable {
					t.Errorf("task %s: got the end %s, want it to be asked again", task, code)
				}
			}
		})
	}
}

// TestWhatAClosedStoreLacksIsNoticed cuts off what the index of a store that was closed
// says is there, and takes a block away.
func TestWhatAClosedStoreLacksIsNoticed(t *testing.T) {
	whole := archived(t)
	messages := whole.messages(t)
	m := messages[len(messages)-1]
	t.Run("the end of the last block", func(t *testing.T) {
		a := whole.copied(t)
		a.change(t, a.blockFile(m.block), func(b []byte) []byte { return b[:m.start] })
		f := a.recover(t)
		f.wantOthers(t, a, touched(messages, m.block, m.start, m.end))
		for _, task := range m.tasks {
			if f.ended[task] != core.CodeInternal {
				t.Errorf("task %s: got the end %q, want %q", task, f.ended[task], core.CodeInternal)
			}
		}
	})
	t.Run("a block", func(t *testing.T) {
		a := whole.copied(t)
		if err := os.Remove(a.blockFile(1)); err != nil {
			t.Fatal(err)
		}
		a.recover(t).wantOthers(t, a, touched(messages, 1, 0, 1<<20))
	})
}

// TestWhatFellToRetentionIsNoDamage has a store that was trimmed, emptied, and left by a
// process that was killed.
func TestWhatFellToRetentionIsNoDamage(t *testing.T) {
	for name, left := range map[string]func(*testing.T, *nats.Journal, string) string{
		"closed": func(t *testing.T, j *nats.Journal, dir string) string { return "" },
		"emptied and closed": func(t *testing.T, j *nats.Journal, dir string) string {
			if err := tasksOf(t, j).Purge(t.Context()); err != nil {
				t.Fatal(err)
			}
			return ""
		},
		"left": func(t *testing.T, j *nats.Journal, dir string) string {
			copied := t.TempDir()
			if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			return copied
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := archive{dir: t.TempDir()}
			j := opened(t, nats.Options{Dir: a.dir, Keep: journal.Retention{Bytes: 40_000}})
			running := core.TaskID(core.NewID())
			for i := range 60 {
				if err := j.Append(t.Context(), recorded(core.TaskID(core.NewID()), answered(i)...)...); err != nil {
					t.Fatal(err)
				}
				if i == 50 {
					if err := j.Append(t.Context(), recorded(running, answered(1)[:2]...)...); err != nil {
						t.Fatal(err)
					}
				}
			}
			dir := left(t, j, a.dir)
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			if dir != "" {
				a.dir = dir
			}
			var log bytes.Buffer
			j = opened(t, nats.Options{Dir: a.dir, Keep: journal.Retention{Bytes: 40_000}, Log: slog.New(slog.NewTextHandler(&log, nil))})
			for _, h := range listed(t, j) {
				if h.Damaged || h.End == 0 && h.Task != running {
					t.Errorf("got the head %+v, want no damage", h)
				}
			}
			if strings.Contains(log.String(), "level=ERROR") {
				t.Errorf("got the log\n%swant no error", log.String())
			}
		})
	}
}

// TestWhateverIsDamagedNoDoneTaskIsAskedAgain damages the store in any place, in any way.
func TestWhateverIsDamagedNoDoneTaskIsAskedAgain(t *testing.T) {
	whole := archived(t)
	messages := whole.messages(t)
	until := time.Now().Add(3 * time.Second)
	rapid.Check(t, func(r *rapid.T) {
		if time.Now().After(until) {
			return // there is time for no more
		}
		a := whole.copied(t)
		lost := map[core.TaskID]bool{}
		for range rapid.IntRange(1, 3).Draw(r, "places") {
			m := messages[rapid.IntRange(0, len(messages)-1).Draw(r, "message")]
			from := m.start + rapid.IntRange(0, m.end-m.start-1).Draw(r, "byte")
			size := rapid.SampledFrom([]int{0, 1, 3, 40, 4096}).Draw(r, "bytes")
			a.change(t, a.blockFile(m.block), func(text []byte) []byte {
				to := min(from+size, len(text))
				if size == 0 {
					text[from] ^= 1 << rapid.IntRange(0, 7).Draw(r, "bit")
					to = from + 1
				}
				maps.Copy(lost, touched(messages, m.block, from, 1<<20)) // the rest of the file may go
				for i := from; i < to && size > 0; i++ {
					text[i] ^= byte(rapid.IntRange(1, 255).Draw(r, "other"))
				}
				return text
			})
		}
		a.recover(r).wantOthers(r, a, lost)
	})
}

// No checksum covers the length of the header that parts of a long message have.
func TestAWrongLengthOfAHeaderKeepsNoHubFromStarting(t *testing.T) {
	whole := archived(t)
	for _, m := range whole.messages(t) {
		text, err := os.ReadFile(whole.blockFile(m.block))
		must(t, err)
		if text[m.start+3]&0x80 == 0 {
			continue
		}
		subject := int(binary.LittleEndian.Uint16(text[m.start+20:]))
		for i := range 4 {
			for _, bit := range []byte{1, 0x10, 0x80} {
				a := whole.copied(t)
				a.change(t, a.blockFile(m.block), func(text []byte) []byte {
					text[m.start+recordStart+subject+i] ^= bit
					return text
				})
				f := a.recover(t)
				f.wantOthers(t, a, touched(whole.messages(t), m.block, m.start, 1<<20))
				if f.whole == len(a.tasks) {
					t.Errorf("byte %d, bit %x: got all tasks, want one with a gap", i, bit)
				}
			}
		}
		return
	}
	t.Error("got no message with a header, want one")
}
