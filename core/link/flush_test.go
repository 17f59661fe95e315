package link_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core/link"
)

// queue queues number n for the next Flush.
func (r *running) queue(n, size int) {
	r.t.Helper()
	if err := r.QueueThen(context.Background(), number(n), size, nil); err != nil {
		r.t.Errorf("QueueThen of message %d: got %v, want it queued", n, err)
	}
}

func TestWhatIsQueuedIsWrittenByTheOneWhoFlushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, peer := pipe(8)
		l := run(t, hub, link.Options{}, nil, nil)
		synctest.Wait() // what is queued before is written when it begins
		l.queue(1, 8)
		l.queue(2, 8)
		synctest.Wait()
		if got := l.Queued(); got != 2*64 {
			t.Errorf("bytes queued before a Flush: got %d, want %d", got, 2*64)
		}
		l.Flush()
		if got := l.Queued(); got != 0 || writers() != 0 {
			t.Errorf("behind a Flush: got %d bytes queued and %d writer loops, want neither", got, writers())
		}
		l.queue(3, 8)
		l.send(4, 8) // which writes what was queued before it, too
		synctest.Wait()
		l.queue(5, 8)
		l.queue(6, 100<<10) // too much to be written by the one who flushes
		synctest.Wait()
		if got := l.Queued(); got != 0 {
			t.Errorf("bytes queued behind a large message: got %d, want none", got)
		}
		l.queue(7, 8)
		l.Close(link.Reason{Cause: link.Normal}) // flushes too
		if got, _ := collect(peer); !slices.Equal(got, upTo(7)) {
			t.Errorf("got %v, want %v", got, upTo(7))
		}
		l.wait()
		l.Flush() // does nothing
	})
}

func TestAFlushBesideSendersLosesNothingAndKeepsTheirOrder(t *testing.T) {
	const senders, each = 4, 2000
	hub, peer := pipe(16)
	l := run(t, hub, link.Options{QueueBytes: 4 << 10}, nil, nil)
	var sending sync.WaitGroup
	for s := range senders {
		sending.Go(func() {
			for i := range each {
				n := s*each + i
				if s%2 == 0 {
					l.send(n, 8)
					continue
				}
				if l.queue(n, 8); i%3 == 0 || i == each-1 {
					l.Flush()
				}
			}
		})
	}
	go func() {
		sending.Wait()
		l.Close(link.Reason{Cause: link.Normal})
	}()
	got, _ := collect(peer)
	l.wait()
	next := make([]int, senders)
	for _, n := range got {
		if s := n / each; n%each != next[s] {
			t.Fatalf("sender %d: got its message %d, want %d", s, n%each, next[s])
		} else {
			next[s]++
		}
	}
	if len(got) != senders*each {
		t.Errorf("got %d messages, want %d", len(got), senders*each)
	}
}

func TestAFlushThatIsStuckEndsWithItsLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, _ := pipe(0) // of which nobody reads
		l := run(t, hub, link.Options{WriteTimeout: time.Minute}, nil, nil)
		synctest.Wait()
		l.queue(1, 8)
		began := time.Now()
		l.Flush()
		if took := time.Since(began); took != time.Minute {
			t.Errorf("got a Flush that took %v, want the %v of a write", took, time.Minute)
		}
		if got := l.wait(); got.Cause != link.Slow {
			t.Errorf("got the link closed as %v, want slow", got.Cause)
		}
	})
}
