package link_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core/link"
)

func TestFlushWritesTheQueueInTheCallingGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, peer := pipe(8)
		l := run(t, hub, link.Options{}, nil, nil)
		synctest.Wait() // what was queued before Run is written first
		l.Hold()
		l.send(1, 8)
		l.send(2, 8)
		synctest.Wait()
		if got := l.Queued(); got != 2*64 {
			t.Errorf("bytes queued before a Flush: got %d, want %d", got, 2*64)
		}
		l.Flush()
		if got := l.Queued(); got != 0 || writers() != 0 {
			t.Errorf("after a Flush: got %d bytes queued and %d writer loops, want neither", got, writers())
		}
		l.send(3, 8) // nothing is held any more
		l.send(4, 8)
		synctest.Wait()
		l.Hold()
		l.send(5, 8)
		l.send(6, 100<<10) // more than Flush writes by itself
		synctest.Wait()
		if got := l.Queued(); got != 0 {
			t.Errorf("bytes queued after a large message: got %d, want none", got)
		}
		l.Hold()
		l.send(7, 8)
		l.Close(link.Reason{Cause: link.Normal}) // flushes too
		if got, _ := collect(peer); !slices.Equal(got, upTo(7)) {
			t.Errorf("got %v, want %v", got, upTo(7))
		}
		l.wait()
		l.Flush() // does nothing
	})
}

func TestAFlushAmongConcurrentSendersLosesNothingAndKeepsTheirOrder(t *testing.T) {
	const senders, each = 4, 2000
	hub, peer := pipe(16)
	l := run(t, hub, link.Options{QueueBytes: 4 << 10}, nil, nil)
	var sending sync.WaitGroup
	for s := range senders {
		sending.Go(func() {
			for i := range each {
				n := s*each + i
				if s == 0 && i%3 == 0 {
					l.Hold()
				}
				if l.send(n, 8); s == 0 && (i%3 == 2 || i == each-1) {
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

func TestABlockedFlushEndsWithItsLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, _ := pipe(0) // the peer never reads
		l := run(t, hub, link.Options{WriteTimeout: time.Minute}, nil, nil)
		synctest.Wait()
		l.Hold()
		l.send(1, 8)
		began := time.Now()
		l.Flush()
		if took := time.Since(began); took != time.Minute {
			t.Errorf("Flush took %v, want the write timeout %v", took, time.Minute)
		}
		if got := l.wait(); got.Cause != link.Slow {
			t.Errorf("got the link closed as %v, want slow", got.Cause)
		}
	})
}
