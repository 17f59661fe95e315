package thread_test

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"weak"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/thread"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const plenty = 1 << 30

func turn(text string) core.Turn { return core.Turn{Role: core.RoleUser, Text: text} }

// cost returns the size of n turns of one letter.
func cost(n int) int { return n * turn("x").Size() }

func read(b *thread.Book, id core.ThreadID, bytes int) string {
	turns, ok := b.Turns(id, bytes)
	if !ok {
		return "unknown"
	}
	var out []string
	for _, t := range turns {
		out = append(out, t.Text)
	}
	return strings.Join(out, " ")
}

func TestTheTurnsOfAThreadAreReadOldestFirst(t *testing.T) {
	b := thread.NewBook(10, plenty)
	want := []core.Turn{
		{Role: core.RoleUser, Text: "hello", Task: "1"},
		{Role: core.RoleAssistant, Text: "hi", Agent: "a", Task: "1"},
		{Role: core.RoleUser, Text: "and now?", Task: "2"},
	}
	b.Add("t", want[:2]...)
	b.Add("other", turn("x"))
	b.Add("t", want[2])
	got, ok := b.Turns("t", plenty)
	if d := cmp.Diff(want, got); d != "" || !ok {
		t.Errorf("got %v (-want +got):\n%s", ok, d)
	}
	if got := read(b, "never", plenty); got != "unknown" {
		t.Errorf("an unknown thread: got %q, want it unknown", got)
	}
}

func TestTurnsOfSeveralTasksComeEachAtItsPlaceAndOnce(t *testing.T) {
	b := thread.NewBook(10, plenty)
	of := func(task core.TaskID) []core.Turn {
		return []core.Turn{{Text: "asked " + string(task), Task: task}, {Text: "answered " + string(task), Task: task}}
	}
	b.Add("t", of("3")...)
	b.Add("t", slices.Concat(of("1"), of("3"), of("4"), of("2"))...)
	if got, want := read(b, "t", plenty), "asked 1 answered 1 asked 2 answered 2 asked 3 answered 3 asked 4 answered 4"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAThreadKeepsItsLatestTurnsWithinItsBytes(t *testing.T) {
	b := thread.NewBook(10, cost(3))
	for i := range 5 {
		b.Add("t", turn(fmt.Sprint(i)))
	}
	if got := read(b, "t", plenty); got != "2 3 4" {
		t.Errorf("got %q, want %q", got, "2 3 4")
	}
	b.Add("u", turn("0"), turn("1"), turn("2"), turn("3"))
	if got := read(b, "u", plenty); got != "1 2 3" {
		t.Errorf("added at once: got %q, want %q", got, "1 2 3")
	}
}

func TestTheLatestTurnIsKeptEvenIfItIsTooLarge(t *testing.T) {
	b := thread.NewBook(10, cost(2))
	long := strings.Repeat("x", 10*cost(1))
	b.Add("t", turn("a"), turn(long))
	if got := read(b, "t", plenty); got != long {
		t.Errorf("got %d bytes, want the %d of the latest turn", len(got), len(long))
	}
	b.Add("t", turn("b"))
	if got := read(b, "t", plenty); got != "b" {
		t.Errorf("got %d bytes, want only the turn after it", len(got))
	}
}

func TestOnlyTheTurnsThatFitAreRead(t *testing.T) {
	b := thread.NewBook(10, plenty)
	b.Add("t", turn("a"), turn("b"), turn("c"))
	for bytes, want := range map[int]string{
		-1: "", 0: "", cost(1) - 1: "", cost(1): "c", cost(2) - 1: "c", cost(2): "b c", cost(3): "a b c", plenty: "a b c",
	} {
		if got := read(b, "t", bytes); got != want {
			t.Errorf("within %d bytes: got %q, want %q", bytes, got, want)
		}
	}
	b.Add("t", turn(strings.Repeat("x", 1000)))
	if got := read(b, "t", cost(2)); got != "" {
		t.Errorf("when the latest does not fit: got %q, want nothing, and no earlier turn", got)
	}
}

func TestTheThreadWhoseLastTurnIsTheOldestIsDropped(t *testing.T) {
	b := thread.NewBook(2, plenty)
	b.Add("a", turn("1"))
	b.Add("b", turn("1"))
	b.Add("a", turn("2"))
	b.Add("c", turn("1"))
	for id, want := range map[core.ThreadID]string{"a": "1 2", "b": "unknown", "c": "1"} {
		if got := read(b, id, plenty); got != want {
			t.Errorf("thread %s: got %q, want %q", id, got, want)
		}
	}
}

func TestAForgottenThreadStartsEmpty(t *testing.T) {
	b := thread.NewBook(2, plenty)
	b.Add("a", turn("1"))
	b.Forget("a")
	b.Forget("a")
	b.Forget("never")
	if got := read(b, "a", plenty); got != "unknown" {
		t.Errorf("got %q, want it unknown", got)
	}
	b.Add("a", turn("2"))
	b.Add("b", turn("1"))
	if got := read(b, "a", plenty); got != "2" {
		t.Errorf("got %q, want only the new turn", got)
	}
}

func TestTurnsThatWereReadDoNotChange(t *testing.T) {
	b := thread.NewBook(2, cost(8))
	var read [][]core.Turn
	var want [][]string
	var added []string
	for i := range 100 {
		added = append(added, string(rune('a'+i%26)))
		b.Add("t", turn(added[i]))
		turns, _ := b.Turns("t", plenty)
		_ = append(turns, turn("of the reader"))
		read, want = append(read, turns), append(want, added[max(0, i-7):i+1])
	}
	for i, turns := range read {
		var got []string
		for _, turn := range turns {
			got = append(got, turn.Text)
		}
		if !slices.Equal(got, want[i]) {
			t.Fatalf("what was read at %d: got %q, want %q", i, got, want[i])
		}
	}
}

func TestATurnIsEncodedOnceForAllLaterRequests(t *testing.T) {
	b, encoded := thread.NewBook(2, plenty), 0
	for i := range 10 {
		b.Add("t", turn(fmt.Sprint(i)))
		turns, _ := b.Turns("t", plenty)
		written := core.WriteTurns(nil, turns, "test", func(turn core.Turn) []byte {
			encoded++
			return []byte(turn.Text)
		})
		if want := "0,1,2,3,4,5,6,7,8,9"[:2*i+1]; string(written) != want {
			t.Errorf("got %s, want %s", written, want)
		}
	}
	if encoded != 10 {
		t.Errorf("ten turns: got %d encodings, want 10", encoded)
	}
}

func TestABookStaysWithinItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const threads, bytes = 3, 500
		b := thread.NewBook(threads, bytes)
		ids := rapid.SampledFrom([]core.ThreadID{"a", "b", "c", "d", "e"})
		added := map[core.ThreadID][]string{}
		for range rapid.IntRange(0, 40).Draw(t, "turns") {
			id, text := ids.Draw(t, "thread"), rapid.StringN(0, 100, 100).Draw(t, "text")
			if _, ok := b.Turns(id, plenty); !ok {
				added[id] = nil
			}
			b.Add(id, turn(text))
			added[id] = append(added[id], text)
		}
		known := 0
		for id, all := range added {
			turns, ok := b.Turns(id, plenty)
			if !ok {
				continue
			}
			known++
			size := 0
			for i, turn := range turns {
				size += turn.Size()
				if want := all[len(all)-len(turns)+i]; turn.Text != want {
					t.Fatalf("thread %s: got %q at %d of %d, want %q", id, turn.Text, i, len(turns), want)
				}
			}
			if size > bytes {
				t.Fatalf("thread %s: got %d bytes, want at most %d", id, size, bytes)
			}
		}
		if known > threads {
			t.Fatalf("got %d threads, want at most %d", known, threads)
		}
	})
}

func TestABookIsSafeForConcurrentUse(t *testing.T) {
	b := thread.NewBook(3, cost(5))
	var group sync.WaitGroup
	for i := range 6 {
		id := core.ThreadID(fmt.Sprint(i % 4))
		group.Go(func() {
			for range 200 {
				b.Add(id, turn("x"))
				b.Turns(id, cost(2))
				if i == 0 {
					b.Forget(id)
				}
			}
		})
	}
	group.Wait()
	if turns, ok := b.Turns("1", plenty); ok && len(turns) > 5 {
		t.Errorf("got %d turns, want at most 5", len(turns))
	}
}

// What was attached is handed over to who goes on with a conversation; of what is too much for that the names are.
func TestTheLatestFilesOfAThreadAreKeptAndTheNamesOfOthers(t *testing.T) {
	b := thread.NewBook(2, 1<<20)
	add := func(task core.TaskID, files ...core.File) {
		b.Add("t", core.Turn{Role: core.RoleUser, Task: task, Files: files}, core.Turn{Role: core.RoleAssistant, Task: task})
	}
	large := bytes.Repeat([]byte("x"), thread.FileBytes*2/3)
	add("1", core.File{Name: "first", Data: large})
	before, _ := b.Turns("t", 1<<20)
	add("2", core.File{Name: "second", Data: large})
	add("3", append(slices.Repeat([]core.File{{Name: "one of many", Data: []byte("x")}}, 1000), core.File{Name: strings.Repeat("n", 1<<20)})...)
	got, _ := b.Turns("t", 1<<20)
	if f := got[0].Files; len(f) != 1 || f[0].Name != "first" || f[0].Data != nil {
		t.Errorf("got %+v, want the name of the oldest file alone", f)
	}
	if f := got[2].Files; len(f) != 1 || len(f[0].Data) != len(large) {
		t.Errorf("got %d files, want the latest one whole", len(f))
	}
	if f := got[4].Files; len(f) != 64 || f[63].Name != "one of many" {
		t.Errorf("got %d files of a turn, want 64", len(f))
	}
	if f := before[0].Files; len(f[0].Data) != len(large) {
		t.Error("got a turn changed that somebody has, want it as it was")
	}
}

func TestAFileThatNeverFitsCostsNoOtherFile(t *testing.T) {
	b := thread.NewBook(2, plenty)
	b.Add("t", core.Turn{Task: "1", Files: slices.Repeat([]core.File{{Name: "small", Data: []byte("x")}}, 10)})
	b.Add("t", core.Turn{Task: "2", Files: []core.File{{Name: "large", Data: make([]byte, 2*thread.FileBytes)}}})
	got, _ := b.Turns("t", plenty)
	for _, f := range got[0].Files {
		if string(f.Data) != "x" {
			t.Errorf("got %q in a small file, want what was in it", f.Data)
		}
	}
	if f := got[1].Files; len(f) != 1 || f[0].Name != "large" || f[0].Data != nil {
		t.Errorf("got %d files of the latest turn, want the name of the large one", len(f))
	}
}

func TestAFileBeyondTheNumberOfATurnIsNotHeld(t *testing.T) {
	b := thread.NewBook(2, plenty)
	files := slices.Repeat([]core.File{{Name: "small"}}, 65)
	files[64].Data = make([]byte, 1<<16)
	last := weak.Make(&files[64].Data[0])
	b.Add("t", core.Turn{Task: "1", Files: files})
	runtime.GC()
	if last.Value() != nil {
		t.Error("got the 65th file of a turn in memory, want it gone")
	}
	runtime.KeepAlive(b)
}

func TestManyFilesWithoutContentHaveABound(t *testing.T) {
	b := thread.NewBook(2, plenty)
	for i := range 1000 {
		b.Add("t", core.Turn{Task: core.TaskID(fmt.Sprintf("%04d", i)), Files: make([]core.File, 64)})
	}
	got, _ := b.Turns("t", plenty)
	n := 0
	for _, t := range got {
		n += len(t.Files)
	}
	if n == 0 || n > thread.FileBytes/56 {
		t.Errorf("got %d files, want the latest that fit into %d bytes", n, thread.FileBytes)
	}
}

func TestAThreadIsOfTheOnlyAgentThatHasAnswered(t *testing.T) {
	b := thread.NewBook(10, 1000)
	if !b.IsOf("t", "a") {
		t.Error("a thread without turns: got that it is of another agent too")
	}
	b.Add("t", core.Turn{Task: "1", Role: core.RoleUser}, core.Turn{Task: "1", Role: core.RoleAssistant, Agent: "a"})
	if !b.IsOf("t", "a") || b.IsOf("t", "b") {
		t.Errorf("after an answer of a: got %t for a and %t for b, want it of a", b.IsOf("t", "a"), b.IsOf("t", "b"))
	}
	b.Add("t", core.Turn{Task: "2", Role: core.RoleAssistant, Agent: "b"})
	b.Add("t", core.Turn{Task: "3", Role: core.RoleAssistant, Agent: "a"})
	if b.IsOf("t", "a") || b.IsOf("t", "b") {
		t.Error("after answers of both: got that it is of one")
	}
}
