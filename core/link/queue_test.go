package link_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

func TestMessagesArriveInTheOrderTheyWereSent(t *testing.T) {
	hub, peer := pipe(3)
	l := run(t, hub, link.Options{QueueBytes: 1 << 10}, nil, nil)
	go func() {
		for i := range 1000 {
			l.send(i+1, 100)
		}
		l.Close(link.Reason{Cause: link.Normal})
	}()

	got, end := collect(peer)
	if want := upTo(1000); !slices.Equal(got, want) {
		t.Errorf("received: got %d messages %v..., want 1 to 1000 in order", len(got), got[:min(len(got), 10)])
	}
	if !errors.Is(end, io.EOF) {
		t.Errorf("end of the connection: got %v, want EOF", end)
	}
	l.wait()
}

func TestEachOfManySendersKeepsItsOrder(t *testing.T) {
	const senders, each = 16, 200
	hub, peer := pipe(0)
	l := run(t, hub, link.Options{QueueBytes: 500}, nil, nil)
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			for i := range each {
				l.send(s*each+i, 90)
			}
		})
	}
	go func() { wg.Wait(); l.Close(link.Reason{}) }()

	got, _ := collect(peer)
	if len(got) != senders*each {
		t.Errorf("received: got %d messages, want %d", len(got), senders*each)
	}
	next := [senders]int{}
	for _, n := range got {
		s, i := n/each, n%each
		if i != next[s] {
			t.Fatalf("sender %d: got its message %d, want %d", s, i, next[s])
		}
		next[s]++
	}
	l.wait()
}

func TestAFullQueueSlowsItsSenderAndDropsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, peer := pipe(0)
		l := run(t, hub, link.Options{QueueBytes: 300}, nil, nil)
		sent := 0
		go func() {
			for i := range 10 {
				l.send(i+1, 100)
				sent++
			}
		}()

		synctest.Wait()
		if sent != 3 || l.Queued() != 300 {
			t.Errorf("before any was received: got %d sent and %d bytes queued, want 3 and 300", sent, l.Queued())
		}
		if _, err := peer.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if sent != 4 || l.Queued() != 300 {
			t.Errorf("after one was received: got %d sent and %d bytes queued, want 4 and 300", sent, l.Queued())
		}
		for range 9 {
			_, _ = peer.Receive(t.Context())
		}
		synctest.Wait()
		if sent != 10 || l.Queued() != 0 {
			t.Errorf("after all were received: got %d sent and %d bytes queued, want 10 and 0", sent, l.Queued())
		}
		l.Close(link.Reason{})
		l.wait()
	})
}

func TestAWaitingSenderIsWokenByItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, peer := pipe(0)
		l := run(t, hub, link.Options{QueueBytes: 100}, nil, nil)
		l.send(1, 100)

		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("gave up"))
		defer cancel()
		if err := l.Send(ctx, number(2), 100); err == nil || err.Error() != "gave up" {
			t.Errorf("Send to a full queue: got %v, want the cause of its context", err)
		}
		l.Close(link.Reason{})
		if got, _ := collect(peer); !slices.Equal(got, []int{1}) {
			t.Errorf("received: got %v, want only the message that was queued", got)
		}
		l.wait()
	})
}

func TestDrainWaitsUntilAllIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, peer := pipe(0)
		l := run(t, hub, link.Options{QueueBytes: 100}, nil, nil)
		if err := l.Drain(t.Context()); err != nil {
			t.Errorf("nothing is queued: got %v, want none", err)
		}
		l.send(1, 100)
		go l.send(2, 100) // waits for room
		drained := make(chan error, 2)
		for range cap(drained) {
			go func() { drained <- l.Drain(t.Context()) }()
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("gave up"))
		defer cancel()
		if err := l.Drain(ctx); err == nil || err.Error() != "gave up" {
			t.Errorf("a peer that reads nothing: got %v, want the cause of the context", err)
		}
		for n := 1; n <= 2; n++ {
			if len(drained) > 0 {
				t.Errorf("got all taken before the peer read message %d", n)
			}
			_, _ = peer.Receive(t.Context())
			synctest.Wait()
		}
		for range cap(drained) {
			if err := <-drained; err != nil {
				t.Errorf("got %v, want none", err)
			}
		}
		l.send(3, 100)
		go func() { drained <- l.Drain(t.Context()) }()
		synctest.Wait()
		l.Close(link.Reason{Cause: link.Replaced})
		if err := <-drained; causeOf(err) != link.Replaced {
			t.Errorf("a closed link: got %v, want the close reason", err)
		}
		if got, _ := collect(peer); !slices.Equal(got, []int{3}) {
			t.Errorf("got %v, want the message that was queued", got)
		}
		l.wait()
	})
}

func TestAWaitingSenderIsWokenByTheClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, _ := pipe(0)
		l := run(t, hub, link.Options{QueueBytes: 100}, nil, nil)
		l.send(1, 100)
		refused := make(chan error)
		go func() { refused <- l.Send(context.Background(), number(2), 100) }()
		synctest.Wait()

		l.Close(link.Reason{Cause: link.Replaced})
		if err := <-refused; causeOf(err) != link.Replaced {
			t.Errorf("the waiting Send: got %v, want the close reason", err)
		}
		if err := l.Send(t.Context(), number(3), 1); causeOf(err) != link.Replaced {
			t.Errorf("a later Send: got %v, want the close reason", err)
		}
		l.wait()
	})
}

func TestWaitingSendersAreServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, peer := pipe(0)
		l := run(t, hub, link.Options{QueueBytes: 100}, nil, nil)
		// The third is small enough to fit, and must not overtake.
		for i, size := range []int{100, 100, 64, 1000, 64} {
			go l.send(i+1, size)
			synctest.Wait()
		}
		var got []int
		for range 5 {
			m, err := peer.Receive(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, numberOf(m))
		}
		if !slices.Equal(got, upTo(5)) {
			t.Errorf("received: got %v, want %v", got, upTo(5))
		}
		l.Close(link.Reason{})
		l.wait()
	})
}

func TestASmallMessageIsAdmittedWhenTheLargeOneBeforeItGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, peer := pipe(0)
		l := run(t, hub, link.Options{QueueBytes: 200}, nil, nil)
		l.send(1, 100)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = l.Send(ctx, number(2), 500) }()
		synctest.Wait()
		go l.send(3, 100)
		synctest.Wait()
		if got := l.Queued(); got != 100 {
			t.Errorf("after a large message: got %d bytes queued, want 100", got)
		}
		cancel()
		synctest.Wait()
		if got := l.Queued(); got != 200 {
			t.Errorf("after the large one gave up: got %d bytes queued, want 200", got)
		}
		l.Close(link.Reason{})
		if got, _ := collect(peer); !slices.Equal(got, []int{1, 3}) {
			t.Errorf("received: got %v, want [1 3]", got)
		}
		l.wait()
	})
}

func TestAMessageLargerThanTheBoundPassesThroughAnEmptyQueue(t *testing.T) {
	hub, peer := pipe(0)
	l := run(t, hub, link.Options{QueueBytes: 100}, nil, nil)
	l.send(1, 1_000_000)
	m, err := peer.Receive(t.Context())
	if err != nil || numberOf(m) != 1 {
		t.Errorf("received: got %v %v, want message 1", m, err)
	}
	l.Close(link.Reason{})
	l.wait()
}

func TestEmptyMessagesAreBoundedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, peer := pipe(0)
		l := run(t, hub, link.Options{QueueBytes: 640}, nil, nil)
		sent := 0
		go func() {
			for range 11 {
				l.send(0, 0)
				sent++
			}
		}()
		synctest.Wait()
		if sent != 10 {
			t.Errorf("empty messages in a queue of 640 bytes: got %d, want 10", sent)
		}
		_, _ = peer.Receive(t.Context())
		synctest.Wait()
		l.Close(link.Reason{})
		_, _ = collect(peer)
		l.wait()
	})
}

func TestAMessageSentBeforeRunIsDelivered(t *testing.T) {
	hub, peer := pipe(1)
	l := link.New[[]byte, []byte](hub, link.Options{})
	if err := l.Send(t.Context(), number(1), 8); err != nil {
		t.Fatal(err)
	}
	l.Close(link.Reason{Cause: link.Unauthorized})
	r := l.Run(t.Context(), nil, nil)
	if r.Cause != link.Unauthorized {
		t.Errorf("Run: got %v, want unauthorized", &r)
	}
	got, end := collect(peer)
	if !slices.Equal(got, []int{1}) || causeOf(end) != link.Unauthorized {
		t.Errorf("received: got %v and then %v, want [1] and then unauthorized", got, end)
	}
}

// batching is a Conn that takes batches, and may lose the connection in one.
type batching struct {
	*coretest.End[[]byte, []byte]
	mu    sync.Mutex
	sizes []int
	fail  int // the batch that fails, from 1
}

func (b *batching) SendBatch(ctx context.Context, ms [][]byte) error {
	b.mu.Lock()
	b.sizes = append(b.sizes, len(ms))
	failing := len(b.sizes) == b.fail
	b.mu.Unlock()
	for i, m := range ms {
		if failing && i == 1 {
			return io.ErrClosedPipe
		}
		if err := b.Send(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

func TestQueuedMessagesAreWrittenInOneBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, peer := pipe(0)
		c := &batching{End: hub}
		l := run(t, c, link.Options{}, nil, nil)
		l.send(1, 100)
		synctest.Wait() // the first blocks the writer loop
		for i := range 500 {
			l.send(i+2, 1000)
		}
		l.Close(link.Reason{})
		if got, _ := collect(peer); !slices.Equal(got, upTo(501)) {
			t.Errorf("received: got %d messages, want 1 to 501 in order", len(got))
		}
		l.wait()
		if got := slices.Max(c.sizes); got != 65 {
			t.Errorf("largest batch of messages of 1000 bytes: got %d, want 65, the most in 64 KiB", got)
		}
	})
}

func TestASuccessReceiptMeansThatTheTransportTookTheMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, peer := pipe(0)
		l := run(t, hub, link.Options{}, nil, nil)
		var sent []int
		for i := range 3 {
			if err := l.SendThen(t.Context(), number(i), 8, func() { sent = append(sent, i) }); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if len(sent) != 0 {
			t.Errorf("sent before anything was taken: got %v, want none", sent)
		}
		_, _ = peer.Receive(t.Context())
		synctest.Wait()
		if !slices.Equal(sent, []int{0}) {
			t.Errorf("sent after one was taken: got %v, want [0]", sent)
		}
		l.Close(link.Reason{Cause: link.PeerGone})
		l.wait()
		if !slices.Equal(sent, []int{0}) {
			t.Errorf("sent after the close: got %v, want [0] still", sent)
		}
	})
}

func TestSentIsNotCalledForABatchThatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, peer := pipe(0)
		c := &batching{End: hub, fail: 1}
		l := run(t, c, link.Options{}, nil, nil)
		l.send(1, 8) // alone
		synctest.Wait()
		for i := range 3 {
			_ = l.SendThen(t.Context(), number(i+2), 8, func() { t.Errorf("sent called for message %d of a lost batch", i+2) })
		}
		_, _ = peer.Receive(t.Context())
		_, _ = peer.Receive(t.Context())
		if r := l.wait(); r.Cause != link.PeerGone || !errors.Is(&r, io.ErrClosedPipe) {
			t.Errorf("Run: got %v, want peer gone because of the closed pipe", &r)
		}
	})
}
