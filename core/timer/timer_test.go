package timer_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core/timer"
)

func TestATimerRingsWhenItWasSetToLastAndNotAfterItWasStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Without its deadline, which a bubble does not have.
		rapid.Check(struct{ rapid.TB }{t}, func(t *rapid.T) {
			var running sync.WaitGroup
			var rang atomic.Int32
			wantRang := int32(0)
			due := time.Time{} // zero: not set
			alarm := timer.New(&running, func() { rang.Add(1) })
			t.Repeat(map[string]func(*rapid.T){
				"set": func(t *rapid.T) {
					d := time.Duration(rapid.IntRange(1, 5).Draw(t, "seconds")) * time.Second
					alarm.Set(d)
					due = time.Now().Add(d)
				},
				"stop": func(t *rapid.T) {
					if got, want := alarm.Stop(), !due.IsZero(); got != want {
						t.Fatalf("stopped: got %t, want %t", got, want)
					}
					due = time.Time{}
				},
				"wait a second": func(*rapid.T) {
					time.Sleep(time.Second)
					synctest.Wait()
					if !due.IsZero() && !time.Now().Before(due) {
						due = time.Time{}
						wantRang++
					}
				},
				"": func(t *rapid.T) {
					if got := rang.Load(); got != wantRang {
						t.Fatalf("rang %d times, want %d", got, wantRang)
					}
				},
			})
			running.Wait()
			if !due.IsZero() {
				wantRang++
			}
			if got := rang.Load(); got != wantRang {
				t.Fatalf("rang %d times once it was waited for, want %d", got, wantRang)
			}
		})
	})
}

// A timer may be set while its function runs, by others and by the function itself: one
// call comes of both.
func TestATimerThatIsSetWhileItRingsIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			running sync.WaitGroup
			mu      sync.Mutex
			alarm   *timer.Timer
			rang    int
		)
		goOn := make(chan struct{})
		alarm = timer.New(&running, func() {
			if rang++; rang > 1 {
				return
			}
			<-goOn
			mu.Lock()
			defer mu.Unlock()
			alarm.Set(time.Minute)
		})
		alarm.Set(time.Second)
		time.Sleep(2 * time.Second)
		mu.Lock()
		alarm.Set(time.Hour)
		mu.Unlock()
		close(goOn)
		began := time.Now()
		running.Wait()
		if waited := time.Since(began); rang != 2 || waited != time.Minute {
			t.Errorf("rang %d times within %s, want 2 within a minute", rang, waited)
		}
	})
}

func TestACallThatHasBegunIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running sync.WaitGroup
		ended := false
		alarm := timer.After(&running, time.Second, func() {
			time.Sleep(time.Hour)
			ended = true
		})
		time.Sleep(time.Minute)
		if alarm.Stop() {
			t.Error("got it stopped after it began, want it not stopped")
		}
		running.Wait()
		if !ended {
			t.Error("got the call under way, want it ended")
		}
		if (*timer.Timer)(nil).Stop() {
			t.Error("nil: got it stopped")
		}
	})
}

func BenchmarkSetAndStop(b *testing.B) {
	var running sync.WaitGroup
	t := timer.New(&running, func() {})
	b.ReportAllocs()
	for b.Loop() {
		t.Set(time.Hour)
		t.Stop()
	}
}
