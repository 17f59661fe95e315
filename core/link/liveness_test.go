package link_test

import (
	"context"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

func TestAPeerThatReadsNothingIsClosedAsSlowAndNothingBeforeIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, peer := pipe(0)
		c := coretest.Break(hub, coretest.Fault{}, coretest.Fault{Stall: 6})
		l := run(t, c, link.Options{QueueBytes: 800, WriteTimeout: 30 * time.Second}, nil, nil)
		began := time.Now()
		refused := make(chan error, 1)
		go func() {
			for i := range 100 {
				if err := l.Send(context.Background(), number(i+1), 100); err != nil {
					refused <- err
					return
				}
			}
		}()
		got, _ := collect(peer)
		if !slices.Equal(got, upTo(5)) {
			t.Errorf("taken before the stall: got %v, want %v", got, upTo(5))
		}
		if r := l.wait(); r.Cause != link.Slow {
			t.Errorf("Run: got %v, want slow", &r)
		}
		if got := time.Since(began); got != 30*time.Second {
			t.Errorf("time until a peer that reads nothing is closed: got %v, want 30s", got)
		}
		if err := <-refused; causeOf(err) != link.Slow {
			t.Errorf("the sender: got %v, want slow", err)
		}
	})
}

func TestTheWriteTimeoutBeginsWithTheBlockedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, peer := pipe(0)
		l := run(t, hub, link.Options{WriteTimeout: 30 * time.Second}, nil, nil)
		l.send(1, 8)
		_, _ = peer.Receive(t.Context())
		elapse(20 * time.Second)
		l.send(2, 8)
		began := time.Now()
		if r := l.wait(); r.Cause != link.Slow {
			t.Errorf("Run: got %v, want slow", &r)
		}
		if got := time.Since(began); got != 30*time.Second {
			t.Errorf("time until the second write timed out: got %v, want 30s", got)
		}
	})
}

func TestAPeerThatReadsALittleIsNotClosedAsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, peer := pipe(0)
		c := coretest.Break(hub, coretest.Fault{}, coretest.Fault{Delay: 29 * time.Second})
		l := run(t, c, link.Options{QueueBytes: 200, WriteTimeout: 30 * time.Second}, nil, nil)
		go func() {
			for i := range 20 {
				l.send(i+1, 100)
			}
			l.Close(link.Reason{})
		}()
		got, _ := collect(peer)
		if len(got) < 18 { // the last two may be lost when the drain timeout ends
			t.Errorf("taken one every 29 seconds: got %d, want at least 18 of 20", len(got))
		}
		if r := l.wait(); r.Cause != link.Normal {
			t.Errorf("Run: got %v, want normal", &r)
		}
	})
}

// metered is a Conn whose peer takes ten pieces of a message, one every 25 seconds, and of a long
// message nothing more.
type metered struct {
	link.Conn[[]byte, []byte]
	taken  atomic.Int64
	closed chan struct{}
}

func (m *metered) Close(r link.Reason) error {
	close(m.closed)
	return m.Conn.Close(r)
}

func (m *metered) Written() int64 { return m.taken.Load() }

func (m *metered) Send(ctx context.Context, message []byte) error {
	for range 10 {
		time.Sleep(25 * time.Second)
		m.taken.Add(1)
	}
	if len(message) > 100 {
		<-m.closed
		return net.ErrClosed
	}
	return m.Conn.Send(ctx, message)
}

func TestAPeerThatReadsALongMessageSlowlyIsNotClosedAsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, peer := pipe(0)
		l := run(t, &metered{Conn: hub, closed: make(chan struct{})}, link.Options{WriteTimeout: 30 * time.Second}, nil, nil)
		l.send(1, 8)
		if got, err := peer.Receive(t.Context()); err != nil || !slices.Equal(got, number(1)) {
			t.Errorf("after 250 seconds: got %q and %v, want the message", got, err)
		}
		began := time.Now()
		_ = l.Send(t.Context(), make([]byte, 1000), 8)
		if r := l.wait(); r.Cause != link.Slow {
			t.Errorf("Run: got %v, want slow", &r)
		}
		if got := time.Since(began); got < 280*time.Second || got > 310*time.Second {
			t.Errorf("time until it is closed after it took the last piece at 250s: got %v, want 280s to 310s", got)
		}
	})
}

func TestASilentPeerThatAnswersPingsStaysConnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, peer := pipe(0)
		l := run(t, hub, link.Options{PingEvery: 30 * time.Second, PingTimeout: 10 * time.Second}, nil, nil)
		go func() { _, _ = collect(peer) }()
		elapse(time.Hour)
		if r := l.Reason(); r.Cause != 0 {
			t.Errorf("after an hour: got %v, want it open", &r)
		}
		l.Close(link.Reason{})
		l.wait()
	})
}

func TestAPeerThatDoesNotAnswerAPingIsUnresponsive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, _ := pipe(0) // the peer does not receive
		began := time.Now()
		l := run(t, hub, link.Options{PingEvery: 30 * time.Second, PingTimeout: 10 * time.Second}, nil, nil)
		if r := l.wait(); r.Cause != link.Unresponsive {
			t.Errorf("Run: got %v, want unresponsive", &r)
		}
		if got := time.Since(began); got != 40*time.Second {
			t.Errorf("time until a dead peer is closed: got %v, want 40s", got)
		}
	})
}

func TestAnyMessageCountsAsAnAnswerToAPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, peer := pipe(0) // the peer sends, and answers no ping
		l := run(t, hub, link.Options{PingEvery: 30 * time.Second, PingTimeout: 10 * time.Second}, nil, nil)
		for i := range 100 {
			elapse(time.Duration(25+i%15) * time.Second) // before a ping, and during one
			_ = peer.Send(t.Context(), number(1))
		}
		if r := l.Reason(); r.Cause != 0 {
			t.Errorf("while it sends: got %v, want it open", &r)
		}
		silent := time.Now()
		l.wait()
		if got := time.Since(silent); got != 40*time.Second {
			t.Errorf("after it fell silent: got %v, want 40s", got)
		}
	})
}

func TestABusyReaderLoopDoesNotMakeThePeerUnresponsive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, peer := pipe(1)
		l := run(t, &receivingPinger{End: hub}, link.Options{PingEvery: 30 * time.Second, PingTimeout: 10 * time.Second},
			func(context.Context, []byte) error { elapse(time.Hour); return nil }, nil)
		elapse(25 * time.Second)
		_ = peer.Send(t.Context(), number(1))
		elapse(time.Hour)
		if r := l.Reason(); r.Cause != 0 {
			t.Errorf("after an hour in which the reader loop was busy: got %v, want it open", &r)
		}
		receiving := time.Now()
		if r := l.wait(); r.Cause != link.Unresponsive {
			t.Errorf("Run: got %v, want unresponsive, since the peer answers nothing now", &r)
		}
		if got := time.Since(receiving); got < 40*time.Second || got > 70*time.Second {
			t.Errorf("time until it is closed once the reader loop is idle: got %v, want 40s to 70s", got)
		}
	})
}

// receivingPinger answers a ping only during a Receive, as a WebSocket does.
type receivingPinger struct {
	*coretest.End[[]byte, []byte]
	receiving atomic.Bool
}

func (c *receivingPinger) Receive(ctx context.Context) ([]byte, error) {
	c.receiving.Store(true)
	defer c.receiving.Store(false)
	return c.End.Receive(ctx)
}

func (c *receivingPinger) Ping(ctx context.Context) error {
	if !c.receiving.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return c.End.Ping(ctx)
}

func TestAPingBlockedByAWriteDoesNotCloseTheLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, peer := pipe(0)
		l := run(t, hub, link.Options{PingEvery: 5 * time.Second, PingTimeout: 5 * time.Second, WriteTimeout: time.Minute}, nil, nil)
		l.send(1, 8)
		elapse(50 * time.Second)
		if got, err := peer.Receive(t.Context()); err != nil || numberOf(got) != 1 {
			t.Errorf("received after 50s: got %v %v, want message 1", got, err)
		}
		go func() { _, _ = collect(peer) }()
		elapse(time.Hour)
		if r := l.Reason(); r.Cause != 0 {
			t.Errorf("after the write went through: got %v, want it open", &r)
		}
		l.Close(link.Reason{})
		l.wait()
	})
}

func TestAPingThatWasBlockedByAWriteDoesNotCloseTheLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, peer := pipe(0)
		l := run(t, hub, link.Options{PingEvery: 5 * time.Second, PingTimeout: 5 * time.Second}, nil, nil)
		elapse(time.Second)
		l.send(1, 8)
		elapse(7 * time.Second) // the ping is 3 seconds old and has 2 left
		if got, err := peer.Receive(t.Context()); err != nil || numberOf(got) != 1 {
			t.Errorf("received: got %v %v, want message 1", got, err)
		}
		elapse(4 * time.Second)
		go func() { _, _ = collect(peer) }()
		elapse(time.Hour)
		if r := l.Reason(); r.Cause != 0 {
			t.Errorf("after the write went through: got %v, want it open", &r)
		}
		l.Close(link.Reason{})
		l.wait()
	})
}

func TestAPingThatFindsTheConnectionLostLeavesTheReasonToTheReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, peer := pipe(0)
		l := run(t, lost{hub}, link.Options{PingEvery: time.Second}, nil, nil)
		elapse(time.Minute)
		_ = peer.Close(link.Reason{Cause: link.Overloaded})
		if r := l.wait(); r.Cause != link.Overloaded {
			t.Errorf("Run: got %v, want the reason of the peer", &r)
		}
	})
}

// lost fails every ping at once.
type lost struct {
	*coretest.End[[]byte, []byte]
}

func (lost) Ping(context.Context) error { return net.ErrClosed }

func TestClosingEndsAPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, _ := pipe(0)
		l := run(t, hub, link.Options{PingEvery: 10 * time.Second, PingTimeout: time.Hour}, nil, nil)
		elapse(15 * time.Second)
		l.Close(link.Reason{Cause: link.Normal})
		began := time.Now()
		l.wait()
		if got := time.Since(began); got != 0 {
			t.Errorf("time to close: got %v, want none", got)
		}
	})
}

func TestARejectedMessageLeavesTheConnectionOpen(t *testing.T) {
	hub, peer := pipe(0)
	var got []any
	c := &refusing{End: hub, refuse: 2}
	l := run(t, c, link.Options{},
		func(_ context.Context, m []byte) error { got = append(got, numberOf(m)); return nil },
		func(_ context.Context, r *link.Reject) error { got = append(got, r.Size); return nil })
	for i := range 3 {
		_ = peer.Send(t.Context(), number(i+1))
	}
	_ = peer.Close(link.Reason{Cause: link.Normal})
	l.wait()
	if want := []any{1, 5000, 3}; !slices.Equal(got, want) {
		t.Errorf("received: got %v, want %v", got, want)
	}
}

func TestARejectedMessageWithoutAHandlerClosesTheConnection(t *testing.T) {
	hub, peer := pipe(1)
	l := run(t, &refusing{End: hub, refuse: 1}, link.Options{}, nil, nil)
	_ = peer.Send(t.Context(), number(1))
	if r := l.wait(); r.Cause != link.TooLarge || r.Text != "too large" {
		t.Errorf("Run: got %v, want too large", &r)
	}
}

// refusing refuses one message.
type refusing struct {
	*coretest.End[[]byte, []byte]
	refuse, seen int
}

func (c *refusing) Receive(ctx context.Context) ([]byte, error) {
	m, err := c.End.Receive(ctx)
	if c.seen++; err == nil && c.seen == c.refuse {
		return nil, &link.Reject{Cause: link.TooLarge, Text: "too large", Size: 5000, Limit: 1000}
	}
	return m, err
}
