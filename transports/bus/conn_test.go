package bus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/bus"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lossy is a bus in memory that loses, doubles and delays messages. The zero value does not.
type lossy struct {
	mu       sync.Mutex
	handlers map[string]func([]byte, func([]byte))
	random   *rand.Rand
	lose     float64 // the part of messages that is lost, and of those that come twice
	cut      bool    // all are lost
	sent     int
}

func (l *lossy) Publish(subject string, data []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent++
	times := 1
	if l.random != nil {
		if l.random.Float64() < l.lose {
			times = 0
		} else if l.random.Float64() < l.lose {
			times = 2
		}
	}
	h := l.handlers[subject]
	if h == nil || l.cut {
		return nil
	}
	for range times {
		own := bytes.Clone(data)
		time.AfterFunc(time.Millisecond, func() { h(own, nil) })
	}
	return nil
}

func (l *lossy) Request(context.Context, string, []byte) ([]byte, error) {
	return nil, io.ErrNoProgress
}

func (l *lossy) Subscribe(subject string, handle func([]byte, func([]byte))) (func(), error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.handlers == nil {
		l.handlers = map[string]func([]byte, func([]byte)){}
	}
	l.handlers[subject] = handle
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.handlers, subject)
	}, nil
}

func (l *lossy) setCut(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
}

func (l *lossy) published() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent
}

// The lives of the two hubs of a test.
var one, other = bus.Life{Hub: "a", Epoch: 1}, bus.Life{Hub: "b", Epoch: 7}

// connected returns the two ends of a connection over the bus.
func connected(t *testing.T, b *lossy) (a, c *bus.Conn) {
	t.Helper()
	n, m := nodes(t, b)
	a, c = n.Connect(other), m.Connect(one)
	t.Cleanup(func() {
		_ = a.Close(link.Reason{})
		_ = c.Close(link.Reason{})
	})
	return a, c
}

// nodes returns the two hubs, before they connect.
func nodes(t *testing.T, b *lossy) (n, m *bus.Node) {
	t.Helper()
	listen := func(l bus.Life) *bus.Node {
		n, err := bus.Listen(b, l)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	n, m = listen(one), listen(other)
	t.Cleanup(func() {
		n.Close()
		m.Close()
	})
	return n, m
}

func frame(i, size int) []byte { return append(fmt.Appendf(nil, "%d:", i), make([]byte, size)...) }

func TestFramesArriveWholeAndInOrderOverABusThatLosesThem(t *testing.T) {
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			b := &lossy{random: rand.New(rand.NewPCG(seed, 1)), lose: 0.2}
			one, other := connected(t, b)
			const frames = 100
			send := func(c *bus.Conn) func() {
				return func() {
					for i := range frames {
						if err := c.Send(t.Context(), frame(i, i*i%50000)); err != nil {
							t.Errorf("sending frame %d: %v", i, err)
							return
						}
					}
				}
			}
			var sending sync.WaitGroup
			sending.Go(send(one))
			sending.Go(send(other))
			for _, c := range []*bus.Conn{one, other} {
				for i := range frames {
					got, err := c.Receive(t.Context())
					if want := frame(i, i*i%50000); err != nil || !bytes.Equal(got, want) {
						t.Fatalf("frame %d: got %d bytes and %v, want %d bytes", i, len(got), err, len(want))
					}
				}
			}
			sending.Wait()
		})
	}
}

func TestAReaderThatDoesNotReadStopsTheSenderAfterAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, other := connected(t, &lossy{})
		var sent int
		var sending sync.WaitGroup
		sending.Go(func() {
			for range 100 {
				if err := one.Send(t.Context(), make([]byte, 100<<10)); err != nil {
					t.Errorf("sending: %v", err)
				}
				sent++
			}
		})
		time.Sleep(time.Minute)
		synctest.Wait()
		if sent < 40 || sent > 42 {
			t.Errorf("got %d frames of 100 KiB sent, want those of a window of 4 MiB", sent)
		}
		for range 100 {
			if _, err := other.Receive(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		sending.Wait()
	})
}

func TestASenderGoesOnThatWasNotToldWhatWasRead(t *testing.T) {
	for _, waits := range []bool{true, false} { // that it waits when the bus is cut
		synctest.Test(t, func(t *testing.T) {
			b := &lossy{}
			one, other := connected(t, b)
			full := make([]byte, 4<<20)
			if err := one.Send(t.Context(), full); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			var sending sync.WaitGroup
			send := func() {
				sending.Go(func() {
					if err := one.Send(ctx, []byte("more")); err != nil {
						t.Errorf("sending, waiting before the cut %t: got %v, want it to go on", waits, err)
					}
				})
			}
			if waits {
				send()
			}
			time.Sleep(time.Second) // all has arrived, and the sender was told that
			b.setCut(true)
			receive(t, other, full)
			time.Sleep(time.Second)
			b.setCut(false)
			if !waits {
				send()
			}
			sending.Wait()
			if !t.Failed() {
				receive(t, other, []byte("more"))
			}
		})
	}
}

func TestAConnectionOutlivesACutOfTheBus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &lossy{}
		one, other := connected(t, b)
		b.setCut(true)
		if err := one.Send(t.Context(), []byte("hello")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		b.setCut(false)
		if got, err := other.Receive(t.Context()); err != nil || string(got) != "hello" {
			t.Errorf("got %q and %v, want hello", got, err)
		}
	})
}

func TestAnIdleConnectionSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &lossy{}
		one, other := connected(t, b)
		if err := one.Send(t.Context(), []byte("hello")); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		before := b.published()
		time.Sleep(time.Hour)
		if n := b.published() - before; n != 0 {
			t.Errorf("got %d packets in an hour without frames, want none", n)
		}
	})
}

func TestTheOtherEndGetsTheEndBehindTheLastFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, other := connected(t, &lossy{})
		if err := one.Send(t.Context(), []byte("last")); err != nil {
			t.Fatal(err)
		}
		if err := one.Close(link.Reason{}); err != nil {
			t.Fatal(err)
		}
		if got, err := other.Receive(t.Context()); err != nil || string(got) != "last" {
			t.Errorf("got %q and %v, want the last frame", got, err)
		}
		if _, err := other.Receive(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want the end", err)
		}
		if err := other.Send(t.Context(), []byte("x")); err == nil {
			t.Error("sending after the end: got no error")
		}
	})
}

func TestAnEndThatConnectsAgainEndsTheConnectionOfTheOther(t *testing.T) {
	for _, told := range []bool{true, false} { // that the first connection was closed
		synctest.Test(t, func(t *testing.T) {
			b := &lossy{}
			n, m := nodes(t, b)
			a, c := n.Connect(other), m.Connect(one)
			if err := errors.Join(a.Send(t.Context(), frame(1, 10)), c.Send(t.Context(), frame(2, 10))); err != nil {
				t.Fatal(err)
			}
			receive(t, a, frame(2, 10))
			receive(t, c, frame(1, 10))
			b.setCut(!told)
			_ = a.Close(link.Reason{})
			time.Sleep(time.Second)
			b.setCut(false)
			a = n.Connect(other)
			defer a.Close(link.Reason{})
			if err := a.Send(t.Context(), frame(3, 10)); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Receive(t.Context()); !errors.Is(err, io.EOF) {
				t.Errorf("the end that was not told: got %v, want the end of the connection", err)
			}
			c = m.Connect(one)
			defer c.Close(link.Reason{})
			if err := c.Send(t.Context(), frame(4, 10)); err != nil {
				t.Fatal(err)
			}
			receive(t, a, frame(4, 10))
			receive(t, c, frame(3, 10))
		})
	}
}

func receive(t *testing.T, c *bus.Conn, want []byte) {
	t.Helper()
	if got, err := c.Receive(t.Context()); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %.20q and %v, want %.20q", got, err, want)
	}
}
