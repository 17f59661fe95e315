package link_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core/link"
)

// checkedConn is a Conn that checks how it is used: one writer at a time, none after
// Close, and one call of Close.
type checkedConn struct {
	t         rapid.TB
	writers   atomic.Int32
	closed    chan struct{}
	closes    atomic.Int32
	mu        sync.Mutex
	taken     []int
	slow      int // the peer is slow in each slow-th write; 0 means never
	failAfter int
}

func (c *checkedConn) Receive(context.Context) (int, error) {
	<-c.closed
	return 0, io.EOF
}

func (c *checkedConn) Send(_ context.Context, m int) error { return c.take([]int{m}) }

func (c *checkedConn) take(ms []int) error {
	if c.writers.Add(1) != 1 {
		c.t.Errorf("got two writers at once, want one")
	}
	defer c.writers.Add(-1)
	select {
	case <-c.closed:
		return errors.New("closed")
	default:
	}
	c.mu.Lock()
	c.taken = append(c.taken, ms...)
	n := len(c.taken)
	c.mu.Unlock()
	if c.failAfter > 0 && n > c.failAfter {
		return io.ErrClosedPipe
	}
	if c.slow > 0 && n%c.slow == 0 {
		runtime.Gosched()
	}
	return nil
}

func (c *checkedConn) Close(link.Reason) error {
	if c.closes.Add(1) != 1 {
		c.t.Errorf("got a second Close, want one")
	}
	close(c.closed)
	return nil
}

type checkedBatcher struct{ *checkedConn }

func (c checkedBatcher) SendBatch(_ context.Context, ms []int) error { return c.take(ms) }

func TestALinkWritesEachMessageOnceAndInOrderWhileItsWriterLoopStartsAndEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &checkedConn{t: t, closed: make(chan struct{}), slow: rapid.IntRange(0, 5).Draw(t, "slow"), failAfter: rapid.SampledFrom([]int{0, 0, 0, 40}).Draw(t, "fail")}
		var conn link.Conn[int, int] = c
		if rapid.Bool().Draw(t, "batches") {
			conn = checkedBatcher{c}
		}
		l := link.New(conn, link.Options{
			QueueBytes:   rapid.SampledFrom([]int{64, 512, 1 << 20}).Draw(t, "queue"),
			WriteTimeout: rapid.SampledFrom([]time.Duration{20 * time.Microsecond, time.Hour}).Draw(t, "timeout"),
		})
		senders, each := rapid.IntRange(1, 3).Draw(t, "senders"), rapid.IntRange(0, 60).Draw(t, "each")
		pauses := rapid.SliceOfN(rapid.IntRange(0, 3), 1, 8).Draw(t, "pauses")
		cause := rapid.SampledFrom([]link.Cause{link.Normal, link.PeerGone, link.ShuttingDown}).Draw(t, "cause")
		early := rapid.Bool().Draw(t, "early")

		done := make(chan link.Reason, 1)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var all sync.WaitGroup
		sent := make([]int, senders) // how many each has queued
		var reported atomic.Int32
		for i := range senders {
			all.Go(func() {
				for n := range each {
					if l.SendThen(ctx, i*1000+n, 8, func() { reported.Add(1) }) != nil {
						return
					}
					sent[i] = n + 1
					for range pauses[n%len(pauses)] {
						runtime.Gosched()
					}
				}
			})
		}
		go func() { done <- l.Run(ctx, func(context.Context, int) error { return nil }, nil) }()
		if !early {
			all.Wait()
		}
		if cause == link.ShuttingDown {
			cancel()
		} else {
			l.Close(link.Reason{Cause: cause})
		}
		reason := <-done
		all.Wait()

		next := make([]int, senders)
		for _, m := range c.taken {
			if got, want := m%1000, next[m/1000]; got != want {
				t.Fatalf("sender %d: got message %d, want %d", m/1000, got, want)
			}
			next[m/1000]++
		}
		whole := c.failAfter == 0 && (reason.Cause == link.Normal || reason.Cause == link.ShuttingDown)
		for i := range senders {
			if whole && next[i] != sent[i] {
				t.Errorf("sender %d: got %d written, want all %d that were queued before the close as %v", i, next[i], sent[i], reason.Cause)
			}
			if next[i] > sent[i] {
				t.Errorf("sender %d: got %d written, want no more than the %d queued", i, next[i], sent[i])
			}
		}
		if whole && int(reported.Load()) != len(c.taken) {
			t.Errorf("got %d reported as sent, want %d", reported.Load(), len(c.taken))
		}
		if c.closes.Load() != 1 {
			t.Errorf("got %d calls of Close, want 1", c.closes.Load())
		}
	})
}
