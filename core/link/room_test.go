package link

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// taker accepts everything at once and receives nothing.
type taker struct{ closed chan struct{} }

func (c taker) Receive(context.Context) (int, error)   { <-c.closed; return 0, context.Canceled }
func (c taker) Send(context.Context, int) error        { return nil }
func (c taker) SendBatch(context.Context, []int) error { return nil }
func (c taker) Close(Reason) error                     { close(c.closed); return nil }

func TestTheCapacityForABurstIsKeptWhileTheLinkIsBusyAndReleasedWhenItIsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New[int, int](taker{make(chan struct{})}, Options{})
		go l.Run(context.Background(), nil, nil)
		burst := func() {
			for range 4 * spareRoom {
				_ = l.Send(context.Background(), 1, 1)
			}
			synctest.Wait()
		}
		capacity := func() int {
			l.mu.Lock()
			defer l.mu.Unlock()
			return cap(l.queue.messages) + cap(l.taken.messages)
		}
		for range maxIdleEnds + 2 {
			burst()
		}
		if got := capacity(); got < 4*spareRoom {
			t.Errorf("between two bursts: got a capacity of %d messages, want at least %d", got, 4*spareRoom)
		}
		<-time.After(2 * DefaultWriteTimeout)
		if got := capacity(); got > spareRoom {
			t.Errorf("when the link was idle for long: got a capacity of %d messages, want at most %d", got, spareRoom)
		}
		l.Close(Reason{})
		synctest.Wait()
	})
}
