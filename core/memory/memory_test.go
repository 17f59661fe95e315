package memory_test

import (
	"sync"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAFullBudgetRefusesNewWorkAndCountsWhatRuns(t *testing.T) {
	b := memory.New(100)
	if !b.TryTake(memory.Logs, 60) || b.TryTake(memory.Bodies, 41) || !b.TryTake(memory.Bodies, 40) {
		t.Error("want 60 and 40 of 100 bytes taken, and 41 refused")
	}
	if !b.IsFull() {
		t.Error("got room, want none")
	}
	b.Take(memory.Logs, 50)
	if got := b.Held(); got != 150 {
		t.Errorf("got %d bytes held, want 150: what runs goes on", got)
	}
	b.Take(memory.Logs, -110)
	if b.HeldAs(memory.Logs) != 0 || b.IsFull() || !b.TryTake(memory.Inboxes, 60) {
		t.Errorf("got %d bytes of logs and full: %t, want none and room", b.HeldAs(memory.Logs), b.IsFull())
	}
}

func TestABudgetIsOverByAnEighthWithoutWhatHasEnded(t *testing.T) {
	for _, tt := range []struct {
		logs, ended int
		want        bool
	}{{900, 0, false}, {901, 0, true}, {900, 100, false}, {900, 101, true}, {0, 1000, false}, {0, 1001, true}} {
		b := memory.New(800)
		b.Take(memory.Logs, tt.logs)
		b.Take(memory.Ended, tt.ended)
		if got := b.IsOver(); got != tt.want {
			t.Errorf("%d bytes of what runs and %d of what has ended, with a limit of 800: got over: %t, want %t", tt.logs, tt.ended, got, tt.want)
		}
	}
	var none *memory.Budget
	if none.IsOver() || memory.New(0).IsOver() {
		t.Error("without a limit: got over, want never")
	}
}

func TestBytesBecomeThoseOfAnotherKind(t *testing.T) {
	b := memory.New(0)
	s := memory.Of(b, memory.Logs)
	s.Add(8 << 10)
	s.Add(100) // not told yet
	s.Become(memory.Ended)
	s.Add(8 << 10)
	if got, left := b.HeldAs(memory.Ended), b.HeldAs(memory.Logs); got != 16<<10+100 || left != 0 {
		t.Errorf("got %d bytes of what has ended and %d of what runs, want all and none", got, left)
	}
	s.Release()
	if got := b.Held(); got != 0 {
		t.Errorf("got %d bytes held once they were released, want none", got)
	}
}

func TestABudgetWithoutALimitOnlyCounts(t *testing.T) {
	b := memory.New(0)
	if !b.TryTake(memory.Logs, 1<<40) || b.IsFull() || b.Held() != 1<<40 {
		t.Errorf("got %d bytes held and full: %t, want them counted and room", b.Held(), b.IsFull())
	}
	var none *memory.Budget
	s := memory.Of(none, memory.Logs)
	none.Take(memory.Logs, 1)
	none.Refuse()
	s.Add(1 << 20)
	s.Release()
	if !none.TryTake(memory.Logs, 1<<40) || none.IsFull() || none.Held() != 0 || none.Limit() != 0 || none.Refused() != 0 {
		t.Error("a nil Budget counted something, want nothing")
	}
}

// Whatever its shares do, a Budget is at most 4 KiB per share from their sum.
func TestTheSumOfTheSharesIsKnown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := memory.New(rapid.Int64Range(0, 1<<20).Draw(t, "limit"))
		shares := make([]memory.Share, 3)
		for i := range shares {
			shares[i] = memory.Of(b, memory.Sending)
		}
		for range rapid.IntRange(0, 100).Draw(t, "steps") {
			s := &shares[rapid.IntRange(0, 2).Draw(t, "share")]
			before := s.Held()
			switch n := rapid.IntRange(0, 9000).Draw(t, "bytes"); rapid.IntRange(0, 3).Draw(t, "act") {
			case 0:
				s.Add(n)
			case 1:
				s.Add(-min(n, s.Held()))
			case 2:
				if !s.TryTake(n) && s.Held() != before {
					t.Fatalf("got %d bytes after a refusal, want %d", s.Held(), before)
				}
			case 3:
				s.Release()
			}
			sum := int64(0)
			for _, s := range shares {
				sum += int64(s.Held())
			}
			if got := b.Held(); got < sum-3*4096 || got > sum+3*4096 {
				t.Fatalf("got %d bytes held, want about %d", got, sum)
			}
		}
		for i := range shares {
			shares[i].Release()
		}
		if got := b.Held(); got != 0 {
			t.Fatalf("got %d bytes held after all were released, want 0", got)
		}
	})
}

func TestNewWorkOfManyNeverExceedsTheLimit(t *testing.T) {
	b := memory.New(1000)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 1000 {
				if b.TryTake(memory.Logs, 10) {
					b.Take(memory.Logs, -10)
				}
			}
		})
	}
	group.Wait()
	if got := b.Held(); got != 0 {
		t.Errorf("got %d bytes held, want 0", got)
	}
}

func BenchmarkShareAdd(b *testing.B) {
	s := memory.Of(memory.New(1<<40), memory.Logs)
	for b.Loop() {
		s.Add(208)
	}
}

// BenchmarkTask measures what the budget costs a task with a short answer.
func BenchmarkTask(b *testing.B) {
	m := memory.New(1 << 40)
	b.ReportAllocs()
	for b.Loop() {
		s := memory.Of(m, memory.Logs)
		if !s.TryTake(2400) {
			b.Fatal("got no room")
		}
		for range 4 {
			s.Add(240)
		}
		s.Release()
	}
}

// BenchmarkIsOver measures what every event of a task asks.
func BenchmarkIsOver(b *testing.B) {
	m := memory.New(1 << 40)
	b.ReportAllocs()
	for b.Loop() {
		if m.IsOver() {
			b.Fatal("got over, want room")
		}
	}
}
