package link_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

func TestTheFirstCloseReasonWins(t *testing.T) {
	for range 50 {
		hub, peer := pipe(0)
		refuse := func(context.Context, []byte) error { return link.Because(link.Protocol, "receive") }
		l := run(t, hub, link.Options{}, refuse, nil)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() { l.Close(link.Reason{Cause: link.Normal, Code: i}) })
		}
		wg.Go(func() { l.cancel(link.Because(link.Overloaded, "context")) })
		wg.Go(func() { _ = peer.Send(context.Background(), number(1)) })
		wg.Go(func() { _ = peer.Close(link.Reason{Cause: link.PeerGone}) })
		<-l.Done()
		first := l.Reason()
		wg.Wait()
		if got := l.wait(); got != first {
			t.Fatalf("Run: got %v, want the first reason %v", &got, &first)
		}
		if got := hub.Reason(); got != first {
			t.Fatalf("sent to the peer: got %v, want the first reason %v", &got, &first)
		}
	}
}

func TestAGracefulCloseFlushesWhatIsQueued(t *testing.T) {
	for cause := link.Normal; cause <= link.Internal; cause++ {
		t.Run(cause.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hub, peer := pipe(0)
				l := run(t, hub, link.Options{}, nil, nil)
				for i := range 5 {
					l.send(i+1, 8)
				}
				synctest.Wait()
				l.Close(link.Reason{Cause: cause})
				want := upTo(5)
				if cause == link.PeerGone || cause == link.Slow || cause == link.Unresponsive {
					want = nil
					synctest.Wait() // the socket is closed at once
				}
				if got, _ := collect(peer); !slices.Equal(got, want) {
					t.Errorf("received after the close: got %v, want %v", got, want)
				}
				if r := l.wait(); r.Cause != cause {
					t.Errorf("Run: got %v, want %v", &r, cause)
				}
			})
		})
	}
}

func TestAFlushIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, peer := pipe(0)
		l := run(t, hub, link.Options{}, nil, nil)
		l.send(1, 8)
		l.send(2, 8)
		began := time.Now()
		l.Close(link.Reason{Cause: link.ShuttingDown})
		if r := l.wait(); r.Cause != link.ShuttingDown {
			t.Errorf("Run: got %v, want shutting down", &r)
		}
		if got := time.Since(began); got != 2*time.Second {
			t.Errorf("flush to a peer that takes nothing: got %v, want 2s", got)
		}
		if _, err := peer.Receive(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("the peer: got %v, want EOF", err)
		}
	})
}

func TestAnAbruptCloseUnblocksAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, _ := pipe(0)
		l := run(t, hub, link.Options{}, nil, nil)
		l.send(1, 8)
		synctest.Wait()
		began := time.Now()
		l.Close(link.Reason{Cause: link.PeerGone})
		l.wait()
		if got := time.Since(began); got != 0 {
			t.Errorf("time to close: got %v, want none", got)
		}
	})
}

func TestALinkShutsDownWhenItsContextEnds(t *testing.T) {
	hub, peer := pipe(0)
	l := run(t, hub, link.Options{}, nil, nil)
	l.cancel(nil)
	if r := l.wait(); r.Cause != link.ShuttingDown || r.Text == "" || !errors.Is(&r, context.Canceled) {
		t.Errorf("Run: got %v, want shutting down, because of the canceled context", &r)
	}
	if _, err := peer.Receive(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("the peer: got %v, want EOF", err)
	}
}

func TestTheCauseOfTheContextIsTheReason(t *testing.T) {
	hub, peer := pipe(0)
	l := run(t, hub, link.Options{}, nil, nil)
	l.cancel(link.Because(link.Replaced, "by a newer one"))
	if r := l.wait(); r.Cause != link.Replaced || r.Text != "by a newer one" {
		t.Errorf("Run: got %v, want replaced: by a newer one", &r)
	}
	if _, err := peer.Receive(t.Context()); causeOf(err) != link.Replaced {
		t.Errorf("the peer: got %v, want replaced", err)
	}
}

func TestAnErrorOfReceiveClosesTheLink(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want link.Reason
	}{
		{"a reason", link.Because(link.Unauthorized, "who are you"), link.Reason{Cause: link.Unauthorized, Text: "who are you"}},
		{"anything else", io.ErrNoProgress, link.Reason{Cause: link.Internal, Text: "internal error", Err: io.ErrNoProgress}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			hub, peer := pipe(1)
			l := run(t, hub, link.Options{}, func(context.Context, []byte) error { return tt.err }, nil)
			_ = peer.Send(t.Context(), number(1))
			if got := l.wait(); got != tt.want {
				t.Errorf("Run: got %+v, want %+v", got, tt.want)
			}
			if got := hub.Reason(); got != tt.want {
				t.Errorf("passed to the transport: got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestNothingIsReceivedAfterTheClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, peer := pipe(10)
		var got []int
		var l *running
		l = run(t, hub, link.Options{}, func(_ context.Context, m []byte) error {
			got = append(got, numberOf(m))
			l.Close(link.Reason{})
			return nil
		}, nil)
		synctest.Wait()
		for i := range 3 {
			_ = peer.Send(t.Context(), number(i+1))
		}
		l.wait()
		if !slices.Equal(got, []int{1}) {
			t.Errorf("received: got %v, want [1], received before the close", got)
		}
	})
}

func TestACallbackIsWokenByTheCloseAndJoinedByRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, peer := pipe(1)
		left := false
		l := run(t, hub, link.Options{}, func(ctx context.Context, _ []byte) error {
			<-ctx.Done()
			if !hubDown(hub) {
				<-hub.Closed() // the socket is closed before the callback cleans up
			}
			elapse(time.Minute)
			left = true
			return ctx.Err()
		}, nil)
		_ = peer.Send(t.Context(), number(1))
		synctest.Wait()
		l.Close(link.Reason{Cause: link.Normal})
		r := l.wait()
		if !left || r.Cause != link.Normal {
			t.Errorf("Run: got %v with the callback ended: %v, want normal and true", &r, left)
		}
	})
}

func hubDown(e *coretest.End[[]byte, []byte]) bool {
	select {
	case <-e.Closed():
		return true
	default:
		return false
	}
}

func TestTheEndOfTheConnectionIsTheReason(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  link.Reason
		want link.Cause
	}{
		{"the peer closed", link.Reason{Cause: link.Normal}, link.Normal},
		{"the network cut it", link.Reason{Cause: link.PeerGone}, link.PeerGone},
		{"the peer gave a reason", link.Reason{Cause: link.Overloaded, Code: 1013}, link.Overloaded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			hub, peer := pipe(1)
			l := run(t, hub, link.Options{}, nil, nil)
			_ = peer.Close(tt.end)
			if r := l.wait(); r.Cause != tt.want || r.Code != tt.end.Code {
				t.Errorf("Run: got %+v, want cause %v and code %d", r, tt.want, tt.end.Code)
			}
		})
	}
}

func TestALinkThatWasClosedBeforeItRanEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, _ := pipe(0)
		l := link.New(hub, link.Options{PingEvery: time.Hour})
		l.Close(link.Reason{Cause: link.Normal})
		began := time.Now()
		l.Run(t.Context(), func(context.Context, []byte) error { return nil }, nil)
		if took := time.Since(began); took != 0 {
			t.Errorf("Run: returned after %v, want at once", took)
		}
	})
}

func TestNetworkErrorsAreHiddenFromOtherPeers(t *testing.T) {
	broken := &net.OpError{Op: "read", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 49152}, Err: io.ErrUnexpectedEOF}
	hub, _ := pipe(1)
	l := run(t, unreadable{hub, broken}, link.Options{}, nil, nil)
	r := l.wait()
	if r.Cause != link.PeerGone || strings.Contains(r.Text, "127.0.0.1") || !errors.Is(&r, broken) {
		t.Errorf("Run: got %+v, want peer gone with the error as the detail and not as the text", r)
	}
	seen := map[string]link.Cause{}
	for cause := link.Normal; cause <= link.Internal; cause++ {
		r := link.Reason{Cause: cause, Text: "read tcp 127.0.0.1:49152: what the transport said", Err: broken}
		f := r.Fault()
		if f.Code != core.CodeUnreachable || !f.Retryable || f.Message == "" || strings.Contains(f.Message, "127.0.0.1") {
			t.Errorf("%v: got %+v, want unreachable, with a message that depends only on the cause", cause, f)
		}
		if !errors.Is(f, broken) {
			t.Errorf("%v: got no detail for the log, want the error of the transport", cause)
		}
		if other, ok := seen[f.Message]; ok {
			t.Errorf("%v: got %q, the message for %v", cause, f.Message, other)
		}
		seen[f.Message] = cause
	}
}

func TestAReasonNamesItsCauseOnce(t *testing.T) {
	for want, r := range map[string]link.Reason{
		"Server shutting down":              {Cause: link.ShuttingDown, Text: "Server shutting down"},
		"shutting down":                     {Cause: link.ShuttingDown},
		"shutting down: the hub stopped: x": {Cause: link.ShuttingDown, Text: "the hub stopped: x"},
		"slow: it took nothing":             {Cause: link.Slow, Text: "it took nothing"},
	} {
		if got := r.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	stopping := link.Reason{Cause: link.ShuttingDown, Text: "the hub stopped: shutdown"}
	if f := stopping.Fault(); errors.Unwrap(f) != nil {
		t.Errorf("an agent that left a hub which is stopping: got the detail %v, want none besides %q", errors.Unwrap(f), f.Message)
	}
}

// unreadable is a connection whose Receive fails.
type unreadable struct {
	*coretest.End[[]byte, []byte]
	err error
}

func (c unreadable) Receive(context.Context) ([]byte, error) { return nil, c.err }

func TestAWriteToALostConnectionEndsIt(t *testing.T) {
	hub, _ := pipe(2)
	// The reader does not notice the cut; only the write does.
	c := coretest.Break(hub, coretest.Fault{Stall: 1}, coretest.Fault{Cut: 2})
	l := run(t, c, link.Options{}, nil, nil)
	for i := range 3 {
		_ = l.Send(t.Context(), number(i), 8)
	}
	if r := l.wait(); r.Cause != link.PeerGone || !errors.Is(&r, net.ErrClosed) {
		t.Errorf("Run: got %v, want peer gone", &r)
	}
}

func TestTheEndOfTheInputLeavesTheOutputOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, stdin := pipe(1)
		out, stdout := pipe(0)
		ended := false
		l := run(t, twoWay{in, out}, link.Options{EOF: func() { ended = true }, PingEvery: time.Second}, nil, nil)
		_ = stdin.Close(link.Reason{Cause: link.Normal})
		synctest.Wait()
		if !ended || l.Reason().Cause != 0 {
			t.Errorf("after the end of the input: got EOF %v and reason %v, want EOF called and the link open", ended, l.Reason().Cause)
		}
		l.send(1, 8)
		l.Close(link.Reason{Cause: link.Normal, Text: "all answered"})
		if got, _ := collect(stdout); !slices.Equal(got, []int{1}) {
			t.Errorf("received after the end of the input: got %v, want [1]", got)
		}
		if r := l.wait(); r.Text != "all answered" {
			t.Errorf("Run: got %v, want normal: all answered", &r)
		}
	})
}

// twoWay is a connection of two separate directions, as stdin and stdout are.
type twoWay struct{ in, out *coretest.End[[]byte, []byte] }

func (c twoWay) Receive(ctx context.Context) ([]byte, error) { return c.in.Receive(ctx) }

func (c twoWay) Send(ctx context.Context, m []byte) error { return c.out.Send(ctx, m) }

func (c twoWay) Close(r link.Reason) error { return errors.Join(c.in.Close(r), c.out.Close(r)) }
