package nats_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/core"
)

// emptied leaves nothing of a file.
func emptied([]byte) []byte { return nil }

// saysMissing matches what the log says of records that are missing.
var saysMissing = regexp.MustCompile(`records of the journal are missing.*stream=(\S+) records=(\d+)`)

// missing returns how many records of the tasks are missing by the log.
func (f found) missing(t *testing.T) (n int) {
	t.Helper()
	for _, said := range saysMissing.FindAllStringSubmatch(f.log, -1) {
		if said[1] == "dragoman-tasks" {
			records, err := strconv.Atoi(said[2])
			if err != nil {
				t.Fatal(err)
			}
			n += records
		}
	}
	return n
}

// killed is the archive as a hub leaves it that is killed a while after it has written it: without the index that
// a server writes when it is stopped.
func (a archive) killed(t *testing.T) archive {
	t.Helper()
	return a.killedAfter(t, func(*nats.Journal) {})
}

// killedAfter is killed for a hub that has written more to the archive.
func (a archive) killedAfter(t *testing.T, write func(*nats.Journal)) archive {
	t.Helper()
	j := opened(t, nats.Options{Dir: a.dir, Keep: small})
	write(j)
	j.Mark()
	left := a.copied(t)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(left.file("msgs", "index.db")); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return left
}

func TestAnEmptiedFileIsSaidOnceWithHowManyRecordsItHad(t *testing.T) {
	full := archived(t)
	messages := full.messages(t)
	last := messages[len(messages)-1].block
	for left, a := range map[string]archive{"stopped": full, "killed": full.copied(t).killed(t)} {
		for name, block := range map[string]int{"the first one": 0, "one in the middle": 1, "the last one": last} {
			t.Run(left+", "+name, func(t *testing.T) {
				a := a.copied(t)
				a.change(t, a.blockFile(block), emptied)
				in := func(m stored) bool { return m.block != block }
				had, lost := slices.DeleteFunc(slices.Clone(messages), in), touched(messages, block, 0, 1<<20)
				f := a.recover(t)
				f.wantOthers(t, a, lost)
				// Messages without tasks say who writes.
				if n := f.missing(t); n < len(had) || n > len(had)+3 {
					t.Errorf("got %d records missing by the log\n%swant %d", n, f.log, len(had))
				}
				if !strings.Contains(f.log, "level=ERROR") {
					t.Errorf("got the log\n%swant an error", f.log)
				}
				again := a.recover(t)
				again.wantOthers(t, a, lost)
				if n := again.missing(t); n != 0 {
					t.Errorf("the next start: got %d records missing by the log\n%swant it said once", n, again.log)
				}
				j := opened(t, nats.Options{Dir: a.dir, Keep: small})
				defer j.Close()
				later := taskRecords("later", 10)
				must(t, j.Append(t.Context(), later...))
				whole(t, j, later)
			})
		}
	}
}

// The file that was the first and the last one is emptied, or removed.
func TestAJournalThatHasNothingLeftIsSaid(t *testing.T) {
	for name, take := range map[string]func(file string) error{
		"emptied": func(file string) error { return os.Truncate(file, 0) },
		"removed": os.Remove,
	} {
		t.Run(name, func(t *testing.T) { hasNothingLeft(t, take) })
	}
}

func hasNothingLeft(t *testing.T, take func(file string) error) {
	dir := t.TempDir()
	j := opened(t, nats.Options{Dir: dir})
	for i := range 20 {
		must(t, j.Append(t.Context(), recorded(core.TaskID(core.NewID()), answered(i)...)...))
	}
	must(t, j.Close())
	a := archive{dir: dir}
	must(t, take(a.blockFile(0)))
	if n := a.recover(t).missing(t); n != 21 { // and one that says who writes
		t.Errorf("got %d records missing by the log, want 21", n)
	}
	if n := a.recover(t).missing(t); n != 0 {
		t.Errorf("the next start: got %d records missing by the log, want it said once", n)
	}
}

// A stream that has nothing left begins again, with the places of what is missing.
func TestWhatIsMissingOfAJournalThatBeganAgainIsSaidToo(t *testing.T) {
	dir := t.TempDir()
	write := func(j *nats.Journal, tasks int) {
		t.Helper()
		for i := range tasks {
			events := answered(i)
			events[3].Body = core.Text{Text: strings.Repeat("because ", 300)} // so that a few fill a block
			must(t, j.Append(t.Context(), recorded(core.TaskID(core.NewID()), events...)...))
		}
	}
	j := opened(t, nats.Options{Dir: dir, Keep: small})
	write(j, 10)
	must(t, j.Close())
	a := archive{dir: dir}
	must(t, os.Remove(a.blockFile(0)))
	for name, tasks := range map[string]int{"fewer records than it had": 5, "more records than it had": 20} {
		t.Run(name, func(t *testing.T) {
			a := a.copied(t).killedAfter(t, func(j *nats.Journal) { write(j, tasks) })
			blocks, err := filepath.Glob(a.file("msgs", "*.blk"))
			if err != nil || len(blocks) == 0 {
				t.Fatalf("got the files %v and %v, want some", blocks, err)
			}
			must(t, os.Truncate(blocks[0], 0))
			if n := a.recover(t).missing(t); n < 5 {
				t.Errorf("got %d records missing by the log, want at least 5", n)
			}
			if n := a.recover(t).missing(t); n != 0 {
				t.Errorf("the next start: got %d records missing by the log, want it said once", n)
			}
		})
	}
}

// A journal without marks, or with broken ones, is as good as that of a version that wrote none.
func TestAJournalWithoutMarksOpensAndSaysNothing(t *testing.T) {
	whole := archived(t)
	for name, how := range map[string]func(file string) error{
		"none":    os.Remove,
		"broken":  func(file string) error { return os.WriteFile(file, []byte(`{"streams":`), 0o600) },
		"empty":   func(file string) error { return os.Truncate(file, 0) },
		"another": func(file string) error { return os.WriteFile(file, []byte(`{"streams":{"dragoman-tasks":{}}}`), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			a := whole.copied(t)
			must(t, how(filepath.Join(a.dir, "nats", "marks.json")))
			f := a.recover(t)
			f.wantAll(t, a)
			if strings.Contains(f.log, "level=ERROR") {
				t.Errorf("got the log\n%swant no error", f.log)
			}
		})
	}
}
