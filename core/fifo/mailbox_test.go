package fifo_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/dragoman-hub/dragoman/core/fifo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAMailboxIsBoundedByTheSizesOfWhatWaits(t *testing.T) {
	m := fifo.NewMailbox(10, func(n int) int { return n })
	for _, c := range []struct {
		size int
		want bool
	}{{20, true}, {1, false}} {
		if got := m.Offer(c.size); got != c.want {
			t.Errorf("%d with %d before it: got %t, want %t", c.size, m.Len(), got, c.want)
		}
	}
	if !m.Put(5) { // whatever waits
		t.Error("got a value refused, want it put")
	}
	if v, ok := m.Poll(); v != 20 || !ok {
		t.Errorf("got %d, %t, want the first", v, ok)
	}
	if !m.Offer(5) || m.Offer(1) {
		t.Error("got no room for 5 or some for 1 more, want 10 in all")
	}
	if !m.Remove(func(v int) bool { return v == 5 }) || m.Remove(func(v int) bool { return v == 6 }) || !m.Offer(4) {
		t.Error("got a value not removed, or its room not given back")
	}
	if got := m.PollAll(); !slices.Equal(got, []int{5, 4}) || !m.Offer(10) {
		t.Errorf("got %v, want 5 and 4, and all the room", got)
	}
}

func TestAPutWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := fifo.NewMailbox(1, func(int) int { return 1 })
		ctx, cancel := context.WithCancel(t.Context())
		put := func(v int) <-chan bool {
			done := make(chan bool, 1)
			go func() { done <- m.PutWithin(ctx, v) }()
			synctest.Wait()
			return done
		}
		if first := put(1); !<-first {
			t.Error("the first: got it refused, want it put")
		}
		for name, take := range map[string]func(){"Poll": func() { m.Poll() }, "PollAll": func() { m.PollAll() }, "Remove": func() { m.Remove(func(int) bool { return true }) }} {
			second := put(2)
			if len(second) > 0 {
				t.Errorf("%s: got a second one put, want it to wait", name)
			}
			take()
			if !<-second || m.Len() != 1 {
				t.Errorf("%s: got it refused, or %d that wait, want it put", name, m.Len())
			}
		}
		ended := put(3)
		cancel()
		if <-ended {
			t.Error("got a value put whose context has ended, want it refused")
		}
	})
}

func TestWhatAMailboxHeldIsReturnedAsItCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := fifo.NewMailbox(1, func(int) int { return 1 })
		m.Put(1)
		waits := make(chan bool, 1)
		go func() { waits <- m.PutWithin(t.Context(), 2) }()
		synctest.Wait()
		if got := m.Close(); !slices.Equal(got, []int{1}) {
			t.Errorf("got %v, want what waited", got)
		}
		if <-waits || m.Put(3) || m.Offer(4) || m.Len() != 0 {
			t.Error("got a value put after the end, want it dropped")
		}
	})
}

func TestEveryValueIsTakenOnceByTheGoroutinesThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const values, takers = 1000, 3
		m := fifo.NewMailbox[int](0, nil)
		ended := errors.New("it has ended")
		owner, end := context.WithCancelCause(context.Background())
		var all []int
		var mu sync.Mutex
		var running sync.WaitGroup
		for range takers {
			running.Go(func() {
				for {
					v, err := m.Take(t.Context(), owner)
					if err != nil {
						if !errors.Is(err, ended) {
							t.Errorf("got %v, want %v", err, ended)
						}
						return
					}
					mu.Lock()
					all = append(all, v)
					mu.Unlock()
				}
			})
		}
		for v := range values {
			m.Put(v)
		}
		synctest.Wait()
		end(ended)
		running.Wait()
		slices.Sort(all)
		if len(all) != values || all[0] != 0 || len(slices.Compact(all)) != values {
			t.Errorf("got %d values taken, want each of %d once", len(all), values)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(ended)
		if _, err := m.Take(ctx, context.Background()); !errors.Is(err, ended) {
			t.Errorf("got %v, want the cause of the caller's context", err)
		}
	})
}
