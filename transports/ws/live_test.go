package ws_test

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

func TestAPeerThatReceivesAnswersAPing(t *testing.T) {
	server, client := pair(t, ws.AcceptOptions{}, ws.DialOptions{})
	go func() { _, _ = receive(server) }()
	go func() { _, _ = receive(client) }()
	if err := server.Ping(t.Context()); err != nil {
		t.Errorf("Ping: got %v, want an answer", err)
	}
	closeBoth(server, client)
}

func TestAPeerThatDoesNotReceiveAnswersNoPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, peer := pipedPair(t)
		go func() { _, _ = io.Copy(io.Discard, peer) }() // its socket takes the ping
		go func() { _, _ = receive(server) }()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := server.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() == nil {
			t.Errorf("Ping: got %v, want its deadline", err)
		}
	})
}

func TestAMessageThatArrivesSlowlyCountsAsAnAnswerToAPing(t *testing.T) {
	server, peer := rawPair(t, ws.AcceptOptions{})
	got := make(chan string, 1)
	go func() { m, _ := receive(server); got <- m }()
	whole := frame(text, strings.Repeat("x", 1000))
	for alive, at := false, 0; !alive; at++ {
		if at == len(whole)-1 {
			t.Fatal("Ping: got no answer while a message arrives byte by byte, want one")
		}
		ctx, cancel := context.WithCancel(t.Context())
		pinged := make(chan error)
		go func() { pinged <- server.Ping(ctx) }()
		if op, _ := peer.next(); op != ping {
			t.Errorf("frame: got %x, want a ping", op)
		}
		peer.send(whole[at : at+1])
		time.AfterFunc(20*time.Millisecond, cancel) // another byte follows if this one has not arrived then
		alive = <-pinged == nil
		cancel()
		if alive {
			peer.send(whole[at+1:])
		}
	}
	if m := <-got; len(m) != 1000 {
		t.Errorf("received: got %d bytes, want the message", len(m))
	}
}

func TestAPingDuringABlockedSendNeitherBlocksTheReaderNorEndsTheConnection(t *testing.T) {
	server, peer := rawPair(t, ws.AcceptOptions{})
	large := strings.Repeat("x", 16<<20) // more than the sockets hold
	sent := make(chan error)
	go func() { sent <- server.Send(context.Background(), []byte(large)) }()
	// The first bytes show that the Send runs; no more are read.
	if _, err := peer.r.Peek(1); err != nil {
		t.Fatal(err)
	}
	peer.send(frame(ping, "one"), frame(text, "first"), frame(ping, "two"), frame(text, "second"))
	for _, want := range []string{"first", "second"} {
		if got, err := receive(server); got != want {
			t.Errorf("received during a blocked Send: got %q %v, want %q", got, err, want)
		}
	}
	if op, payload := peer.next(); op != text || payload != large {
		t.Errorf("then: got frame %x of %d bytes, want the message", op, len(payload))
	}
	if err := <-sent; err != nil {
		t.Errorf("Send: got %v, want nil", err)
	}
	if op, payload := peer.next(); op != pong || payload != "two" {
		t.Errorf("after it: got frame %x %q, want the pong to the last ping", op, payload)
	}
}

func TestASlowPeerIsClosedWithNothingDroppedBefore(t *testing.T) {
	server, peer := rawPair(t, ws.AcceptOptions{})
	l := link.New(server, link.Options{WriteTimeout: time.Second}) // on a busy machine, the first messages take a while
	ended := make(chan link.Reason)
	go func() { ended <- l.Run(context.Background(), nil, nil) }()
	filler := strings.Repeat("x", 50_000)
	var taken sync.Map
	for i := 0; ; i++ {
		m := strconv.Itoa(i) + " " + filler
		if err := l.SendThen(t.Context(), []byte(m), len(m), func() { taken.Store(i, true) }); err != nil {
			break
		}
	}
	if r := <-ended; r.Cause != link.Slow {
		t.Errorf("Run: got %v, want slow", &r)
	}
	// The peer reads what the sockets still hold.
	next := 0
	for {
		op, payload := peer.nextOrEnd()
		if op != text {
			break
		}
		if n, _, _ := strings.Cut(payload, " "); n != strconv.Itoa(next) {
			t.Fatalf("message %d: got %s", next, n)
		}
		next++
	}
	if next == 0 {
		t.Error("messages received before the end: got none, want some")
	}
	if _, ok := taken.Load(next + 1); ok {
		t.Errorf("sent was called for message %d, which the transport never took whole", next+1)
	}
}

func TestALinkSendsItsErrorMessageBeforeItCloses(t *testing.T) {
	server, client := pair(t, ws.AcceptOptions{}, ws.DialOptions{})
	l := link.New(server, link.Options{})
	refuse := func(ctx context.Context, m []byte) error {
		_ = l.Send(ctx, []byte("who are you?"), 12)
		return link.Because(link.Unauthorized, "no token")
	}
	ended := make(chan link.Reason)
	go func() { ended <- l.Run(context.Background(), refuse, nil) }()
	_ = client.Send(t.Context(), []byte("hello"))
	if got, err := receive(client); got != "who are you?" {
		t.Errorf("received: got %q %v, want the error message first", got, err)
	}
	if _, err := receive(client); reasonOf(err).Code != 1008 || reasonOf(err).Text != "no token" {
		t.Errorf("then: got %v, want close 1008: no token", err)
	}
	<-ended
}

func TestABatchArrivesWholeAndInOrder(t *testing.T) {
	server, client := pair(t, ws.AcceptOptions{}, ws.DialOptions{})
	var ms [][]byte
	for i := range 2000 {
		ms = append(ms, []byte(strconv.Itoa(i)+strings.Repeat(".", i%300*i%200)))
	}
	for _, c := range []struct{ from, to *ws.Conn }{{client, server}, {server, client}} {
		go func() {
			if err := c.from.SendBatch(context.Background(), ms); err != nil {
				t.Error(err)
			}
		}()
		for i, want := range ms {
			if got, err := receive(c.to); got != string(want) {
				t.Fatalf("message %d: got %q %v, want %q", i, got, err, want)
			}
		}
	}
}
