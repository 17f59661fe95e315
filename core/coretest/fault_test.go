package coretest_test

import (
	"context"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

// through sends 1 to n from the far end and returns what a Faulty receives.
func through(t *testing.T, n int, in coretest.Fault) ([]int, error) {
	near, far := coretest.Pipe[int, int](n)
	for i := range n {
		_ = far.Send(t.Context(), i+1)
	}
	_ = far.Close(link.Reason{Cause: link.Normal})
	return drain(t.Context(), coretest.Break(near, in, coretest.Fault{}))
}

func drain(ctx context.Context, c link.Conn[int, int]) (got []int, end error) {
	for {
		m, err := c.Receive(ctx)
		if err != nil {
			return got, err
		}
		got = append(got, m)
	}
}

func TestWithoutAFaultEverythingPasses(t *testing.T) {
	if got, end := through(t, 3, coretest.Fault{}); !slices.Equal(got, []int{1, 2, 3}) || end != io.EOF {
		t.Errorf("received: got %v %v, want [1 2 3] and EOF", got, end)
	}
}

func TestACutLosesTheConnectionAtBothEnds(t *testing.T) {
	near, far := coretest.Pipe[int, int](5)
	f := coretest.Break(near, coretest.Fault{}, coretest.Fault{Cut: 2})
	var err error
	for i := 1; err == nil; i++ {
		err = f.Send(t.Context(), i)
	}
	if _, again := f.Receive(t.Context()); again == nil || again == io.EOF {
		t.Errorf("the near end after the cut: got %v, want a loss", again)
	}
	if got, end := drain(t.Context(), far); !slices.Equal(got, []int{1, 2}) || end == io.EOF {
		t.Errorf("the far end: got %v and then %v, want [1 2] and then a loss, not an end", got, end)
	}
	if got, end := through(t, 3, coretest.Fault{Cut: 1}); !slices.Equal(got, []int{1}) || end == io.EOF {
		t.Errorf("cut on the way in: got %v and then %v, want [1] and then a loss", got, end)
	}
}

func TestADuplicatePassesTwice(t *testing.T) {
	if got, _ := through(t, 3, coretest.Fault{Duplicate: 2}); !slices.Equal(got, []int{1, 2, 2, 3}) {
		t.Errorf("received: got %v, want [1 2 2 3]", got)
	}
	near, far := coretest.Pipe[int, int](5)
	f := coretest.Break(near, coretest.Fault{}, coretest.Fault{Duplicate: 1})
	_ = f.Send(t.Context(), 1)
	_ = f.Close(link.Reason{Cause: link.Normal})
	if got, _ := drain(t.Context(), far); !slices.Equal(got, []int{1, 1}) {
		t.Errorf("sent: got %v, want [1 1]", got)
	}
}

func TestADelayIsTakenForEveryMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if got, _ := through(t, 3, coretest.Fault{Delay: time.Minute}); len(got) != 3 {
			t.Errorf("received: got %v, want three", got)
		}
		if got := time.Since(began); got != 3*time.Minute {
			t.Errorf("time taken: got %v, want 3m", got)
		}
	})
}

func TestAStallLastsUntilTheRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := coretest.Pipe[int, int](5)
		f := coretest.Break(near, coretest.Fault{}, coretest.Fault{Stall: 2})
		go func() {
			for i := range 3 {
				_ = f.Send(t.Context(), i+1)
			}
			_ = f.Close(link.Reason{Cause: link.Normal})
		}()
		if m, _ := far.Receive(t.Context()); m != 1 {
			t.Errorf("before the stall: got %d, want 1", m)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if m, err := far.Receive(ctx); err == nil {
			t.Errorf("during the stall: got %d, want nothing for an hour", m)
		}
		f.Release()
		if got, _ := drain(t.Context(), far); !slices.Equal(got, []int{2, 3}) {
			t.Errorf("after the release: got %v, want [2 3]", got)
		}
	})
}

func TestAClosedConnectionStallsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, _ := coretest.Pipe[int, int](5)
		f := coretest.Break(near, coretest.Fault{}, coretest.Fault{Stall: 1})
		sent := make(chan error)
		go func() { sent <- f.Send(context.Background(), 1) }()
		synctest.Wait()
		_ = f.Close(link.Reason{Cause: link.Normal})
		if err := <-sent; err == nil {
			t.Error("the stalled Send: got nil, want an error")
		}
	})
}
