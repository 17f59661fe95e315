package grpcserver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

func TestTheClientGetsTheCloseReasonOfTheServer(t *testing.T) {
	for _, c := range []struct {
		reason link.Reason
		code   codes.Code
	}{
		{link.Reason{Cause: link.Normal}, codes.OK},
		{link.Reason{Cause: link.PeerGone}, codes.OK},
		{link.Reason{Cause: link.ShuttingDown, Text: "back at nine"}, codes.Unavailable},
		{link.Reason{Cause: link.Protocol, Text: "first message must be RegisterAgent"}, codes.InvalidArgument},
		{link.Reason{Cause: link.TooLarge}, codes.ResourceExhausted},
		{link.Reason{Cause: link.Unauthorized}, codes.Unauthenticated},
		{link.Reason{Cause: link.Replaced}, codes.Aborted},
		{link.Reason{Cause: link.Slow}, codes.ResourceExhausted},
		{link.Reason{Cause: link.Unresponsive}, codes.DeadlineExceeded},
		{link.Reason{Cause: link.Overloaded}, codes.ResourceExhausted},
		{link.Reason{Cause: link.Internal}, codes.Internal},
		{link.Reason{Cause: link.Protocol, Text: "taken", Code: int(codes.AlreadyExists)}, codes.AlreadyExists},
		{link.Reason{Cause: link.Protocol, Code: 1008}, codes.InvalidArgument},
		{link.Reason{}, codes.Unknown},
	} {
		t.Run(fmt.Sprintf("%v %d", c.reason.Cause, c.reason.Code), func(t *testing.T) {
			if got := status.Code(grpcserver.Status(c.reason)); got != c.code {
				t.Errorf("Status: got %v, want %v", got, c.code)
			}
			server, client := pair(t, grpcserver.Options{}, grpcserver.DialOptions{})
			receiving := async(func() {
				_, err := server.Receive(context.Background())
				var r *link.Reason
				if !errors.As(err, &r) || *r != c.reason {
					t.Errorf("server: got %v, want the reason it was closed for, %v", err, &c.reason)
				}
			})
			server.Close(c.reason)
			within(t, receiving, "Receive to return while the handler still runs")
			_, err := client.Receive(testContext(t))
			if c.code == codes.OK {
				if err != io.EOF {
					t.Errorf("client: got %v, want EOF", err)
				}
				return
			}
			var r *link.Reason
			if !errors.As(err, &r) || r.Code != int(c.code) || !strings.Contains(r.Text, c.reason.Text) {
				t.Errorf("client: got %v, want code %v and text %q", err, c.code, c.reason.Text)
			}
		})
	}
}

func TestTheFirstCloseWins(t *testing.T) {
	server, client := pair(t, grpcserver.Options{}, grpcserver.DialOptions{})
	server.Close(link.Reason{Cause: link.Replaced, Text: "first"})
	server.Close(link.Reason{Cause: link.Internal, Text: "second"})
	if got := reasonOf(t, client); got.Cause != link.Replaced || got.Text != "first" {
		t.Errorf("got %v, want the first reason", got)
	}
}

func TestSentMessagesArriveBeforeTheClose(t *testing.T) {
	const n = 1000
	for _, from := range []string{"server", "client"} {
		t.Run(from, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // the client's Close waits for a second
				ctx := testContext(t)
				server, client := pipedPair(t)
				sender, reader := server, client
				if from == "client" {
					sender, reader = client, server
				}
				sent := async(func() {
					for i := range n {
						sender.Send(ctx, msg(fmt.Sprint(i)))
					}
					sender.Close(link.Reason{Cause: link.Normal})
				})
				for i := range n {
					if got := receive(ctx, t, reader); got != fmt.Sprint(i) {
						t.Fatalf("got %q, want %d", got, i)
					}
				}
				if _, err := reader.Receive(ctx); err != io.EOF {
					t.Errorf("end: got %v, want EOF", err)
				}
				reader.Close(link.Reason{Cause: link.Normal}) // lets a client's Close return
				within(t, sent, "Close to return")
			})
		})
	}
}

// chunk is the size of a message of fill.
const chunk = 1000

// fill sends to a peer that does not read until Send fails, and returns the error.
func fill(ctx context.Context, c *stream, sent *atomic.Int64) error {
	for {
		if err := c.Send(ctx, &message{Value: make([]byte, chunk)}); err != nil {
			return err
		}
		sent.Add(1)
	}
}

func TestCloseUnblocksSend(t *testing.T) {
	for _, end := range []string{"server", "client"} {
		t.Run(end, func(t *testing.T) {
			ctx := testContext(t)
			server, client := pair(t, grpcserver.Options{}, grpcserver.DialOptions{})
			from, to := server, client
			if end == "client" {
				from, to = client, server
			}
			var sent atomic.Int64
			var err error
			blocked := async(func() { err = fill(context.Background(), from, &sent) })
			for sent.Load()*chunk < 256<<10 { // the window is full, the queue almost
				select {
				case <-blocked:
					t.Fatalf("Send: got %v, want it to wait for the reader", err)
				default:
					runtime.Gosched()
				}
			}
			from.Close(link.Reason{Cause: link.Slow, Text: "read faster"})
			within(t, blocked, "Send to return")
			var r *link.Reason
			if !errors.As(err, &r) || r.Cause != link.Slow {
				t.Errorf("Send: got %v, want cause %v", err, link.Slow)
			}
			if end == "client" {
				return // a client cannot send a reason
			}
			for got := int64(0); ; got++ {
				_, err := to.Receive(ctx)
				if err == nil {
					continue
				}
				if !errors.As(err, &r) || r.Code != int(codes.ResourceExhausted) {
					t.Errorf("reader: got %v, want code %v", err, codes.ResourceExhausted)
				}
				if got < sent.Load() {
					t.Errorf("reader: got %d messages, want all %d that Send accepted", got, sent.Load())
				}
				return
			}
		})
	}
}

func TestASendThatTakesTooLongClosesTheStreamAsSlow(t *testing.T) {
	server, client := pair(t, grpcserver.Options{}, grpcserver.DialOptions{})
	var r *link.Reason
	for err := error(nil); r == nil; { // until the time is over during a Send, not before one
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		var sent atomic.Int64
		err = fill(ctx, server, &sent)
		cancel()
		if !errors.As(err, &r) && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Send: got %v, want cause %v", err, link.Slow)
		}
	}
	if r.Cause != link.Slow {
		t.Errorf("Send: got %v, want cause %v", r, link.Slow)
	}
	if got := reasonOf(t, client); got.Code != int(codes.ResourceExhausted) {
		t.Errorf("reader: got code %d, want %d", got.Code, codes.ResourceExhausted)
	}
}

func TestAReceiveEndsWithItsContext(t *testing.T) {
	for _, end := range []string{"server", "client"} {
		t.Run(end, func(t *testing.T) {
			server, client := pair(t, grpcserver.Options{}, grpcserver.DialOptions{})
			reader := server
			if end == "client" {
				reader = client
			}
			ctx, cancel := context.WithCancelCause(context.Background())
			var err error
			receiving := async(func() { _, err = reader.Receive(ctx) })
			cancel(&link.Reason{Cause: link.Replaced, Text: "moved"})
			within(t, receiving, "Receive to return")
			var r *link.Reason
			if !errors.Is(err, context.Canceled) && (!errors.As(err, &r) || r.Cause != link.Replaced) {
				t.Errorf("got %v, want the cause of the context", err)
			}
		})
	}
}

func TestAContextThatEndsBetweenCallsDoesNotCloseTheStream(t *testing.T) {
	server, client := pair(t, grpcserver.Options{}, grpcserver.DialOptions{})
	for i := range 200 {
		ctx, cancel := context.WithCancel(context.Background())
		if err := client.Send(ctx, msg(fmt.Sprint(i))); err != nil {
			t.Fatalf("Send %d: got %v, want nil", i, err)
		}
		m, err := server.Receive(ctx)
		if err != nil || string(m.Value) != fmt.Sprint(i) {
			t.Fatalf("Receive %d: got %v, %v, want the message", i, m, err)
		}
		cancel()
		if err := client.Send(ctx, msg("too late")); !errors.Is(err, context.Canceled) {
			t.Fatalf("Send with a context that has ended: got %v, want %v", err, context.Canceled)
		}
	}
}

func TestASenderGetsTheStatusOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the sender waits a second for the reader
		server, client := pipedPair(t)
		server.Close(link.Reason{Cause: link.Protocol, Text: "agent a already registered", Code: int(codes.AlreadyExists)})
		reading := async(func() { reasonOf(t, client) })
		var sent atomic.Int64
		err := fill(context.Background(), client, &sent)
		within(t, reading, "the reader to end")
		var r *link.Reason
		if !errors.As(err, &r) || r.Code != int(codes.AlreadyExists) {
			t.Errorf("Send: got %v, want code %v", err, codes.AlreadyExists)
		}
	})
}

func TestALongReasonIsCutToFitAHeader(t *testing.T) {
	server, client := pair(t, grpcserver.Options{}, grpcserver.DialOptions{})
	server.Close(link.Reason{Cause: link.Internal, Text: strings.Repeat("x", 1<<20)})
	if got := reasonOf(t, client); got.Cause != link.Internal || len(got.Text) > 2048 {
		t.Errorf("got cause %v and %d bytes of text, want %v and at most 2048", got.Cause, len(got.Text), link.Internal)
	}
}
